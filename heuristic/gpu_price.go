package heuristic

import (
	"math"
	"slices"

	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/kernel/plan"
	"tgc/packed"
	"tgc/target"
)

// The price of a mapping of a matrix-vector product to threads: an analytic model of
// one kernel in a chain of kernels. A multiprocessor has some blocks at once, limited
// by threads and registers. The busiest one decides. It reads its share of the weights,
// which begins before the kernel has what the one before stores. Beside that a block
// makes the activations ready, and then its rows: the multiprocessor issues the
// operations on weights, points past the end of rows included, or one thread's chain
// of loads and sums is longer. Where weights are streamed in sums of bytes, blocks take
// the registers that an assembler gives them: those for which there is no room come in
// another wave, of which the last issues from fewer warps and has its chain to itself,
// and nothing is read beside the operations on a thread's last weights.

// work is what of a kernel decides the prices of its mappings.
type work struct {
	rows, points float64 // of each matrix
	bytes        float64 // of all matrices
	operations   float64 // on weights, for one row of all matrices
	decoding     float64 // those of them that all uses of a weight share
	uses         float64 // of a weight: a thread makes the results of all
	sums         float64 // of a row, for each use
	lookups      lookups // in tables, for one row of all matrices
	scales       float64 // those of the operations that all weights of a group share
	open         float64 // lines of memory from which a thread reads at once, for a row of all matrices
	ready        float64 // bytes that a block reads before its rows: activations, and what scales them
	dot          bool    // sums are of bytes, four at a time
	tile         float64 // rows that one block makes, for values that depend on all of them; 1: it may make any
	sharers      int64   // weights that have bytes in common
	row          int     // axis of the innermost rows; -1: rows are points of stages
	everyRow     bool    // all stores have that axis
	outer        []int   // axes of rows around that one, the outermost first
	stages       []int   // axes of stages among the rows
	beside       []int   // axes of rows of sums beside a tile's: a block that had one point of them would make the tile for each
	invariant    float64 // operations for one row that depend on no row: 0, if none is more than a load
	waits        bool    // a block computes something together before its rows, whatever the plan
	shared       bool    // activations lie in a stage
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
		rows: float64(a.points(all.List())), points: float64(a.points(w.chain)), open: a.openLines(weights), ready: a.readyBytes(weights), tile: 1, sharers: 1,
		uses: float64(a.points(a.usesOf(weights).List())), sums: float64(len(weights)), scales: a.scalesOfRow(weights),
		dot: a.dotAxis(w.chain[len(w.chain)-1]),
	}
	for _, o := range a.matricesOf(weights) {
		k.bytes += float64(o.bytes)
	}
	k.operations, k.decoding, k.lookups = a.operationsOfRow(weights)
	k.invariant, k.waits, k.shared = a.invariantOperations(weights), a.waitsBefore(weights), a.readsStage(weights)
	k.row = a.lastStore(all.List())
	k.everyRow = k.row >= 0 && a.everyStore(k.row)
	for _, i := range all.Minus(a.blockAxes(weights)).List() {
		if i < k.row && a.axes[i].Kind == plan.StoreAxis && a.constant(i) {
			k.outer = append(k.outer, i)
		}
	}
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

// readyBytes is what each block reads besides weights: what depends on no row.
func (a *analysis) readyBytes(weights []*operand) float64 {
	block, bytes := a.blockAxes(weights), int64(0)
	rows := a.ownRows(weights).Union(a.storeSet()).Minus(block)
	for _, u := range a.order {
		if free := a.free.Of(u).Minus(block); (u.Op == ir.OpLoad || u.Op == ir.OpField) && u.Src[0].Op == ir.OpParam && free.Meet(rows).Empty() {
			bytes += satMul(a.points(free.List()), int64(u.DType.Size()))
		}
	}
	return float64(bytes)
}

// openLines is how many lines of memory a thread reads from at once for a row of all matrices: one of each plane in which
// fields of packed blocks lie, or the share of one that all of a row's bytes there fill.
func (a *analysis) openLines(weights []*operand) (lines float64) {
	for _, w := range a.matricesOf(weights) {
		f, ok := packed.Lookup(w.param.Arg.(ir.ParamArg).Format)
		if !ok || f.IsPlain() || !a.desc.Planes {
			lines++
			continue
		}
		blocks := ceil(a.points(w.chain), int64(f.BlockElems))
		for _, fd := range f.Fields {
			lines += min(float64(blocks*int64(fd.Count*fd.DType.Size()))/gpuLine, 1)
		}
	}
	return lines
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

// invariantOperations counts the operations of sums that depend on no row, for one row and all that it is used for;
// none where they are casts and loads.
func (a *analysis) invariantOperations(weights []*operand) (operations float64) {
	if _, ok := a.invariantAxis(weights); !ok {
		return 0
	}
	counted, all := make(map[*ir.UOp]bool), a.rowsOf(weights).Union(a.storeSet()).Minus(a.blockAxes(weights))
	for _, w := range weights {
		chain, inner, uses := setOf(w.chain), w.chain[len(w.chain)-1], a.heldUses(w)
		stores := all.Minus(uses)
		for _, u := range ofSum(w.sum) {
			if factors, free := a.commonFactors(w, u, all); len(factors) > 1 && !counted[u] && !free.Meet(chain).Empty() {
				operations += float64(len(factors)-1) * float64(a.points(free.Meet(chain.Union(uses)).List()))
			}
			free := a.free.Of(u)
			if u.Op == ir.OpReduce { // a step for each point
				free = a.free.Of(u.ReduceValues()[0])
			} else if !u.Op.IsElementwise() || u.Op == ir.OpCast || u.DType == ir.Idx || u.DType == ir.Bool {
				continue
			}
			if counted[u] || !free.Meet(stores).Empty() || free.Meet(chain).Empty() {
				continue
			}
			counted[u] = true
			n := float64(a.points(free.Meet(chain.Union(uses)).List()))
			if free.Has(inner) && a.dotAxis(inner) {
				n /= dotLanes
			}
			operations += n
		}
	}
	return operations
}

// waitsBefore reports what a block computes together before its rows: stages that sums
// read, and sums that all rows share, of a norm for example.
func (a *analysis) waitsBefore(weights []*operand) bool {
	rows := a.rowsOf(weights).Union(a.storeSet()).Minus(a.blockAxes(weights))
	for _, w := range weights {
		rows = rows.Union(setOf(w.chain))
	}
	return slices.ContainsFunc(a.order, func(u *ir.UOp) bool {
		return u.Op == ir.OpStage || u.Op == ir.OpReduce && a.free.Of(u).Meet(rows).Empty()
	})
}

// readsStage reports sums over points that lie in a stage.
func (a *analysis) readsStage(weights []*operand) bool {
	return slices.ContainsFunc(weights, func(w *operand) bool {
		inner := w.chain[len(w.chain)-1]
		return slices.ContainsFunc(ofSum(w.sum), func(u *ir.UOp) bool {
			return u.Op == ir.OpLoad && u.Src[0].Op == ir.OpStage && a.free.Of(u).Has(inner)
		})
	})
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

// lineThreads are the threads whose loads of 16 bytes side by side are a line of memory.
const lineThreads = 8

// Limits of a multiprocessor of every architecture that is priced.
const (
	unitRegisters   = 65536
	unitThreads     = 2048
	unitBlocks      = 32
	threadRegisters = 240                             // more than these are partly spilled
	mostRegisters   = 255                             // of a thread
	residentThreads = 512                             // that share the registers of a multiprocessor, at least
	heldRegisters   = unitRegisters / residentThreads // more weights and activations than these do not fit
)

// Registers of a thread as an assembler gives them, where they are fewer than a block may
// have: of 625 plans with blocks of 512 threads 584 are on the right side of half of a
// multiprocessor's (docs/bench/h200-step-pairs.jsonl.gz).
const (
	kernelRegisters = 36   // addresses, sums
	heldRegister    = 1.15 // for each register of weights and activations that a thread reads in all
)

// fills reports blocks of which a multiprocessor has one at once: no part of it becomes free
// for one before the kernel before has left all of it.
func (c *mapped) fills(threads float64) bool {
	return threads*min(c.wanted, unitRegisters/max(threads, residentThreads)) > unitRegisters/2
}

// registersOf are those of a thread that has the weights of so many iterations at once, where
// nothing bounds them.
func (c *mapped) registersOf(k *work, iterations int64) float64 {
	weights := float64(c.rows*iterations) * k.bytes / (k.rows * k.points)
	return kernelRegisters + heldRegister*float64(c.atOnce)*(weights+k.element())/4
}

// registerLimit is how many registers a thread may have.
func (c *mapped) registerLimit(k *work, threads float64) float64 {
	switch n := float64(c.blocksWithRegisters()); {
	case (k.streamsBytes() || k.uses > 1) && n > 0:
		return min(unitRegisters/(threads*n), threadRegisters)
	case k.streamsBytes() || k.uses > 1:
		return unitRegisters / max(threads, residentThreads)
	}
	return min(unitRegisters/threads, threadRegisters)
}

// spills is by how much a thread wants more registers than it may have, and more for weights and
// activations than fit. Of a thread that streams bytes one round of loads is only issued later where
// they have no registers; those of several rounds leave none to the operations beside them.
func (c *mapped) spills(k *work, t *target.Threads, registers, limit, rounds float64) float64 {
	again := max(float64(c.loaded)*(float64(c.rows)*k.bytes/(k.rows*k.points)+k.uses*k.element())/4/heldRegisters-1, 0)
	switch {
	case !k.streamsBytes():
		return max(registers/limit-1, again)
	case rounds > 1:
		return max(t.SpillBytes/t.Spill*(c.registersOf(k, 1)/limit-1), again)
	}
	return again
}

// reread is by how much more lines of memory a multiprocessor with so many of the blocks at once has open than its cache holds: of all
// rows that its threads go along in several iterations, in each plane. A line that is gone when they come
// back is read again from the second cache, and those of all multiprocessors together from memory. IQ3_S with 4 threads a row,
// 1,024 rows a multiprocessor, read 615 MB of 228 in 193 us; with 16, 256 rows, 228 MB in 88 us (docs/bench/h200-open-lines.txt).
func (c *mapped) reread(k *work, t *target.Threads, blocks float64) float64 {
	if c.iterations == 1 { // each line is read once
		return 0
	}
	return max(blocks*float64(c.groups*c.rows)*k.open/t.OpenLines-1, 0)
}

// overflow is by how much more registers than it may have a thread needs for what it holds: weights that are on their
// way, activations, and its sums. What does not fit is spilled, and waited for.
func (c *mapped) overflow(k *work, t *target.Threads, limit float64) float64 {
	base := t.FloatBase
	if k.dot {
		base = t.ByteBase
	}
	weights := float64(c.rows) * k.bytes / (k.rows * k.points)
	held := float64(c.atOnce) * (t.HeldWeights*weights + t.HeldElements*k.uses*k.element()) / 4
	return max((base+held+t.HeldSums*k.uses*float64(c.rows)*k.sums)/limit-1, 0)
}

// streamsFloats reports sums of floats whose weights are used once.
func (k *work) streamsFloats() bool { return !k.dot && k.uses == 1 }

// streamsBytes reports sums of bytes whose weights are used once.
func (k *work) streamsBytes() bool { return k.dot && k.uses == 1 }

// blocksAtOnce is how many blocks of some threads a multiprocessor has at once.
func blocksAtOnce(threads, registers float64) float64 {
	return max(math.Floor(min(unitRegisters/(min(registers, mostRegisters)*threads), unitThreads/threads, unitBlocks)), 1)
}

// busiest is how many blocks fall to the busiest multiprocessor, where each would have some
// and has few of them at once: of many, the last ones are spread.
func busiest(each, resident float64) float64 {
	if each <= 2*resident {
		return math.Ceil(each)
	}
	return each + 0.5
}

// estimate prices a mapping by a target's numbers.
func (c *mapped) estimate(k *work, t *target.Threads) price {
	units, warp := float64(c.desc.Cost.Workers), float64(c.desc.WarpSize)
	active := float64(c.sharing * c.groups)
	threads := math.Ceil(active/warp) * warp
	rows, turns := float64(c.rows), float64(c.turns)
	blocks := max(math.Ceil(c.blocks), 1)
	passes := 1.0 // over the weights
	if k.tile > 1 {
		if turns = math.Ceil(k.tile / float64(c.rows*c.groups)); turns > 1 {
			passes = k.uses // each makes all of its tile before the next begins
		}
	}
	operations, registers := c.operations(k, t)
	limit := c.registerLimit(k, threads)
	if k.streamsBytes() {
		registers = min(c.wanted, limit)
	}
	resident, each := blocksAtOnce(threads, registers), blocks/(units*c.knobs.share())
	busiest := busiest(each, resident)
	waves := 1.0 // of blocks of a multiprocessor, one after the other
	if k.streamsBytes() {
		waves = math.Ceil(busiest / resident)
	}
	spilled := c.spills(k, t, registers, limit, turns*waves)

	var p price
	rate := 1e6 / (2 * float64(c.desc.Cost.Op) * units) // multiply-adds a ns of a multiprocessor
	p.memory = k.bytes * float64(c.desc.Cost.ByteDRAM) / 1e6 * max(1/c.knobs.share(), busiest/blocks*units/t.Unit)
	p.memory *= 1 + t.Line*max(math.Log2(lineThreads/float64(c.sharing)), 0)
	p.memory *= (1 + t.Apart*float64(c.apart-1)) * passes
	sums := busiest * k.rows / blocks * k.points * threads / active * math.Pow(float64(c.sharing*c.iterations*c.loaded)/k.points, t.Padding)
	issued := sums * (operations + (passes-1)*c.decoding(k, t))
	if !c.staged { // each thread computes what its rows share
		issued += sums / rows * k.invariant / k.points
	}
	if k.streamsFloats() {
		issued *= 1 + t.Lanes*max(math.Log2(warp/float64(c.sharing)), 0)
	}
	busy := func(blocks float64) float64 { return min(1, min(blocks, resident)*threads/warp/t.Busy) }
	rest := busiest - (waves-1)*resident // blocks of the last wave
	p.issue = issued/busiest*((busiest-rest)/busy(resident)+rest/busy(rest))/(rate*t.Issue) + sums/rows*k.element()*c.reading(k, t)*k.uses
	p.serial = turns * (passes*float64(c.iterations)*t.Iteration + rows*k.uses*k.sums*math.Log2(min(float64(c.sharing), warp))*t.Shuffle)
	block, whole := t.Block, 0.0
	if k.streamsBytes() {
		if block = t.BlockBytes; c.fills(threads) {
			whole = t.Whole
		}
	}
	p.prologue = t.Launch*busiest*threads/warp + block*blocks + t.Ready*k.ready/threads
	if c.sharing > int64(c.desc.WarpSize) {
		p.prologue += turns * t.Barrier
	}
	if c.staged && !k.waits {
		p.prologue += t.Stage
	}
	last := 0.0
	if rounds := turns * waves; k.streamsBytes() && rounds > 1 {
		last = t.Last*p.issue/(rounds*float64(c.iterations)) + p.serial*min(waves-1, 1)
	}
	p.total = t.Start + whole + last + t.Beside(p.memory, p.prologue+t.Beside(p.issue, p.serial)) + t.Spill*spilled*p.memory
	both := t.Beside(p.memory, p.issue)
	p.total += t.Reread * c.reread(k, t, min(resident, math.Ceil(blocks/units))) * both
	switch {
	case k.uses > 1:
		p.total += t.SpillUses * c.overflow(k, t, limit) * both
	case !k.dot:
		p.total += t.SpillFloats * c.overflow(k, t, limit) * both
	}
	return p
}

// decoding are those operations on a weight that all of its uses share.
func (c *mapped) decoding(k *work, t *target.Threads) float64 {
	if k.dot {
		return t.Dot * k.decoding / k.points
	}
	return k.decoding / k.points
}

// operations is what a thread executes for a weight, and the registers that it needs.
func (c *mapped) operations(k *work, t *target.Threads) (operations, registers float64) {
	each, extract := 1.0, t.Extract
	if k.dot {
		each, extract = t.Dot, t.ExtractBytes
	}
	counted := k.operations
	if !k.dot && k.uses > 1 {
		counted = t.Decoding*k.decoding + t.Using*(k.operations-k.decoding)
	}
	operations = each * counted * (1 + extract*math.Log2(float64(k.sharers)/float64(c.shared)))
	operations = (operations + t.Scale*k.scales*float64(c.scaled-1)) / k.points
	values := t.Decoded * operations
	if k.uses > 1 { // a thread holds what it has of all sums
		values = t.Decoded*c.decoding(k, t) + t.Held*k.uses*k.sums
	}
	registers = t.Registers + float64(c.rows)*(float64(c.atOnce)*k.bytes/(k.rows*k.points)/4+values)
	// A permute looks up all values of a word: threads that share the word look up each other's, too.
	permuted := k.lookups.permuted * float64(k.sharers) / float64(c.shared)
	return operations + (t.Permuted*permuted+t.Table*k.lookups.loaded)/k.points, max(registers, 32)
}

// element is the bytes of an activation that a thread holds.
func (k *work) element() float64 { return activationBytes(k.dot) }

// activationBytes are those of one that is rounded to a byte, or is a float.
func activationBytes(rounded bool) float64 {
	if rounded {
		return 1
	}
	return 4
}

// Loads of activations from memory.
const (
	loadBytes = 16 // of a thread, at once
	mostLines = 4  // of which lanes read parts at once, for as long as a thread's own run is: what is left of a line, they read next
	loadLanes = 8  // whose loads take a turn for each line that they read
	gpuLine   = 128
)

// laneStride is how many points of a row lie between lanes, of which there are so many.
type laneStride struct{ lanes, points int64 }

// lines is how many lines of memory lanes read activations from at once: those of a thread's own run, and where a thread has more
// than its run of what lies side by side, such as weights that share bytes, those in which the lanes that share a row begin. Bytes come in
// loads of whole groups, and a stage has no lines.
func (c *mapped) lines(k *work) float64 {
	run := min(max(float64(c.run)*k.element()/loadBytes, 1), mostLines)
	if k.dot || k.shared {
		return run
	}
	seen := make(map[int64]bool)
	for lane := range int64(loadLanes) {
		point := int64(0)
		for _, s := range c.strides {
			point += lane % s.lanes * s.points
			lane /= s.lanes
		}
		seen[point*int64(k.element())/gpuLine] = true
	}
	return max(run, float64(len(seen)))
}

// reading is what a byte of an activation takes that threads read: lanes whose loads do not
// lie side by side read from more lines for the same bytes.
func (c *mapped) reading(k *work, t *target.Threads) float64 {
	if c.staged || k.shared && !k.dot {
		return t.ReadingShared
	}
	return t.Reading * c.lines(k)
}
