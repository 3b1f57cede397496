package heuristic

import (
	"cmp"
	"math"

	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/kernel/plan"
)

// The price of a mapping of a matrix-vector product to threads: an analytic model of
// one kernel in a chain of kernels. A multiprocessor has some blocks at once, limited
// by threads and registers. The busiest one decides: it reads its share of the weights
// at its share of the bandwidth, or, if its threads have too few bytes in flight, at
// what a load's latency lets through (Little's law); it issues the operations on
// weights, points past the end of rows included; or one thread's chain of loads and
// operations is longer than both. Before its rows, a block stages the activations.

// work is what of a kernel decides the prices of its mappings.
type work struct {
	rows, points float64 // of each matrix
	bytes        float64 // of all matrices
	operations   float64 // on weights, for one row of all matrices
	decoding     float64 // those of them that all uses of a weight share
	uses         float64 // of a weight: a thread makes the results of all
	sums         float64 // of a row, for each use
	lookups      float64 // what look-ups in tables cost, in operations, likewise
	scales       float64 // those of the operations that all weights of a group share
	activations  float64 // bytes that all rows share
	element      float64 // bytes of an activation that a thread holds
	tile         float64 // rows that one block makes, for values that depend on all of them; 1: it may make any
	sharers      int64   // weights that have bytes in common
	row          int     // axis of the innermost rows; -1: rows are points of stages
	everyRow     bool    // all stores have that axis
	stages       []int   // axes of stages among the rows
	beside       []int   // axes of rows of sums beside a tile's: a block that had one point of them would make the tile for each
	staged       bool    // a block makes the activations in shared memory first
	extract      float64 // of the operations, for each time that the bytes of a weight are read again
	reading      float64 // ns a byte of an activation that a thread reads
}

// price is what a mapping is expected to cost, and of what it is made.
type price struct {
	total                           float64 // ns
	memory, issue, serial, prologue float64
}

// workOf measures a kernel.
func (a *analysis) workOf(weights []*operand) *work {
	w := weights[0]
	all := a.ownRows(weights)
	k := &work{
		rows: float64(a.points(all.List())), points: float64(a.points(w.chain)), activations: float64(a.partnerBytes(w)),
		element: 4, tile: 1, sharers: 1, extract: a.desc.Threads.Extract,
	}
	seen := make(map[int]bool)
	for _, o := range weights {
		if !seen[o.slot()] {
			k.bytes += float64(o.bytes)
		}
		seen[o.slot()] = true
	}
	k.operations, k.decoding, k.lookups = a.operationsOfRow(weights)
	k.scales = a.scalesOfRow(weights)
	k.uses, k.sums = float64(a.points(a.usesOf(weights).List())), float64(len(weights))
	if a.dotAxis(w.chain[len(w.chain)-1]) {
		k.element, k.extract = 1, a.desc.Threads.ExtractBytes
		k.operations *= a.desc.Threads.Dot
		k.decoding *= a.desc.Threads.Dot
	}
	k.reading = a.desc.Threads.Reading
	if _, k.staged = a.invariantAxis(w); k.staged {
		k.reading = a.desc.Threads.ReadingShared
	}
	k.row = a.lastStore(all.List())
	k.everyRow = k.row >= 0 && a.everyStore(k.row)
	for _, z := range a.axesOf(plan.StageAxis) {
		if !all.Has(z) || !a.constant(z) {
			continue
		}
		k.stages = append(k.stages, z)
		if a.size(z) > maxStageCopies {
			k.tile *= float64(a.size(z))
		}
	}
	k.beside = a.besideTile(weights)
	k.rows /= float64(a.points(k.beside))
	for _, i := range w.chain[:len(w.chain)-1] {
		if a.constant(i) && a.sharesBytes(w, i) && k.sharers*a.size(i) <= gpuSharedCopies {
			k.sharers *= a.size(i)
		}
	}
	return k
}

// besideTile are the store axes that rows of some weights have, but not those of weights
// that make a tile.
func (a *analysis) besideTile(weights []*operand) []int {
	var beside, tile analyse.RangeSet
	for _, w := range weights {
		made := false
		for _, i := range w.rows {
			made = made || a.axes[i].Kind == plan.StageAxis && a.constant(i) && a.size(i) > maxStageCopies
		}
		for _, i := range w.rows {
			if made {
				tile = tile.With(i)
			} else if a.axes[i].Kind == plan.StoreAxis && a.constant(i) {
				beside = beside.With(i)
			}
		}
	}
	if tile.Empty() {
		return nil
	}
	return beside.Minus(tile).List()
}

// blocks is the number of blocks of some rows each.
func (k *work) blocks(rows int64) int64 { return ceil(int64(k.rows), rows) }

// operationsOfRow counts the operations on weights for one row, those of them that all
// uses share, and the look-ups in tables. Operations on bytes are made on four at a time.
func (a *analysis) operationsOfRow(weights []*operand) (operations, decoding, lookups float64) {
	counted, uses := make(map[*ir.UOp]bool), a.usesOf(weights)
	for _, w := range weights {
		chain, rows := setOf(w.chain), setOf(w.rows)
		each := 1.0
		if a.dotAxis(w.chain[len(w.chain)-1]) {
			each /= dotLanes
		}
		for _, u := range ofSum(w.sum) {
			free := a.free.Of(u)
			if counted[u] || !u.Op.IsElementwise() && u.Op != ir.OpLoad && u.Op != ir.OpField || u.DType == ir.Idx || free.Meet(rows).Empty() {
				continue
			}
			counted[u] = true
			n := float64(a.points(free.Meet(chain.Union(uses)).List()))
			if u.Op == ir.OpLoad && u.Src[0].Op == ir.OpTable {
				lookups += n * a.lookup(w, u)
				continue
			}
			operations += each * n
			if free.Meet(uses).Empty() {
				decoding += each * n
			}
		}
	}
	return operations, decoding, lookups
}

// setOf is a list of axes as a set.
func setOf(axes []int) analyse.RangeSet {
	var s analyse.RangeSet
	for _, i := range axes {
		s = s.With(i)
	}
	return s
}

// scalesOfRow counts the operations of one row that do not depend on the innermost axis
// along which bytes differ.
func (a *analysis) scalesOfRow(weights []*operand) float64 {
	scales, counted := 0.0, make(map[*ir.UOp]bool)
	for _, w := range weights {
		chain, rows := setOf(w.chain), setOf(w.rows)
		for _, u := range ofSum(w.sum) {
			free := a.free.Of(u)
			if counted[u] || !u.Op.IsElementwise() || u.DType == ir.Idx || free.Meet(rows).Empty() || free.Has(a.byteAxis(w)) {
				continue
			}
			counted[u] = true
			scales += float64(a.points(free.Meet(chain).List()))
		}
	}
	return scales
}

// lookup is what a value costs that is looked up in a table: permutes select among few
// bytes, the values of an entry are loaded together.
func (a *analysis) lookup(w *operand, load *ir.UOp) float64 {
	t := &a.desc.Threads
	if n := len(load.Src[0].Arg.(ir.TableArg).Data); n <= permutedBytes && load.DType.Size() == 1 {
		return t.Permuted
	}
	entry := 1.0
	for i := len(w.chain) - 1; w.chain[i] != a.byteAxis(w); i-- {
		entry *= float64(a.size(w.chain[i]))
	}
	return t.Table / entry
}

// permutedBytes is the longest table in which permutes look up.
const permutedBytes = 16

// Limits of a multiprocessor of every architecture that is priced.
const (
	unitRegisters   = 65536
	unitThreads     = 2048
	unitBlocks      = 32
	threadRegisters = 240                          // more than these are partly spilled
	usualThreads    = 512                          // that share the registers of a multiprocessor, at least
	heldRegisters   = unitRegisters / usualThreads // more weights and activations than these do not fit
)

// estimate prices a mapping.
func (c *mapped) estimate(k *work) price {
	t, cost := &c.desc.Threads, &c.desc.Cost
	units, warp := float64(cost.Workers), float64(c.desc.WarpSize)
	rate := 1e6 / (2 * float64(cost.Op) * units) // multiply-adds a ns of a multiprocessor
	active := float64(c.sharing * c.groups)
	threads := math.Ceil(active/warp) * warp
	atOnce, rows := float64(c.atOnce), float64(c.rows)
	turns, blocks := float64(c.turns), math.Ceil(k.rows/float64(c.rows*c.groups*c.turns))
	if k.tile > 1 {
		turns, blocks = math.Ceil(k.tile/float64(c.rows*c.groups)), math.Ceil(k.rows/k.tile)
	}
	point := k.bytes / (k.rows * k.points)
	operations := k.operations / k.points * (1 + k.extract*(float64(k.sharers)/float64(c.shared)-1))
	operations += k.scales / k.points * float64(c.scaled-1)
	padding := float64(c.sharing*c.iterations*c.loaded) / k.points
	guard := 1.0
	if c.sharing*c.iterations*c.loaded > int64(k.points) {
		guard += t.Guard
	}

	registers, limit := t.Registers+rows*(atOnce*point/4+t.Decoded*operations), float64(threadRegisters)
	if k.uses > 1 { // a thread holds what it has of all sums
		registers = t.Registers + rows*(atOnce*point/4+t.Decoded*k.decoding/k.points+t.Held*k.uses*k.sums)
		limit = unitRegisters / max(threads, usualThreads)
	}
	registers = max(registers, 32)
	held := rows*float64(c.loaded)*point/4 + float64(c.loaded)*k.element/4
	operations += k.lookups / k.points
	spilled := max((registers-limit)/limit, held/heldRegisters-1, 0)
	resident := max(math.Floor(min(unitRegisters/(min(registers, 255)*threads), unitThreads/threads, unitBlocks)), 1)
	each := blocks / (units * cmp.Or(c.knobs.Share, 1))
	together, busiest := min(resident, math.Ceil(each)), each+0.5
	if each <= 2*resident {
		busiest = math.Ceil(each)
	}
	waves := math.Ceil(each / together)

	var p price
	flight := together * active * rows * atOnce * point
	p.memory = busiest * k.bytes / blocks / min(1e6*t.Bandwidth/float64(cost.ByteDRAM)/units/max(1, c.read*t.Sectors), flight/t.Latency)
	warps := together * threads / warp
	sums := busiest * k.rows / blocks * k.points * padding * threads / active
	p.issue = sums*operations/(rate*t.Issue*min(1, warps/t.Busy)) + sums/rows*k.element*k.reading*k.uses
	p.serial = waves * turns * float64(c.iterations) * t.Iteration
	p.prologue = t.Launch*busiest*threads/warp + t.First
	if k.staged {
		p.prologue = t.Launch*busiest*threads/warp + waves*(t.Prologue+t.Staging*k.activations/threads) + busiest*t.Crowding*k.activations
	}
	if c.sharing > int64(c.desc.WarpSize) {
		p.prologue += turns * t.Barrier
	}
	overlapped := math.Pow(math.Pow(p.memory, t.Overlap)+math.Pow(p.issue, t.Overlap)+math.Pow(p.serial, t.Overlap), 1/t.Overlap)
	p.total = t.Start + p.prologue + guard*overlapped + t.Spill*spilled*p.memory + t.Code*rows*atOnce*operations
	return p
}
