package heuristic

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"tgc/ir/analyse"
	"tgc/kernel/plan"
)

// Matrix-vector products of a GPU. How threads take rows is a mapping; all mappings of
// a kernel are priced (gpu_price.go), and the cheapest that the kernel accepts wins.

// mapping says how the threads of a block take the rows of a matrix-vector product.
type mapping struct {
	copies int64 // weights that one word holds which are copies of a thread
	lanes  int64 // of a warp that share a row
	warps  int64 // that share a row
	rest   int64 // iterations along a row that a thread unrolls; 0: all
	rows   int64 // of a thread
	block  int64 // threads
	turns  int64 // groups of rows that a block takes one after the other
	halves bool  // lanes share what one thread could load of a group that has a scale
	staged bool  // what depends on no row is computed once for a block, in shared memory
}

// Values of a mapping that are tried.
var (
	mapCopies = []int64{8, 4, 2, 1}
	mapLanes  = []int64{32, 16, 8, 4} // fewer read less than a line of memory of each row
	mapWarps  = []int64{1, 2, 3, 4, 5, 6, 7, 8}
	mapRest   = []int64{1, 2, 4, 0}
	mapRows   = []int64{1, 2, 4, 8}
	mapBlocks = []int64{64, 128, 256, 512}
	mapWaves  = []int64{0, 1, 2, 4} // blocks of each multiprocessor, where a block takes several groups; 0: it takes one
)

const (
	mostRest   = 8 // bounds what is unrolled along a row
	groupLoads = 2 // loads of a thread that hold one group of integers
)

// gpuMatvec streams weights past activations that stay: the cheapest mapping wins.
func gpuMatvec(a *analysis, weights []*operand) proposal {
	weights = a.longestFirst(weights)
	if a.lanesAlongRows(weights[0]) {
		return gpuMatvecRows(a, weights)
	}
	k := a.workOf(weights)
	list := a.mappings(weights, k)
	chosen := cmp.Or(firstAccepted(a, list, (*mapped).complete), list[0]) // refused, if none is accepted, and says why
	chosen.complete()
	c := chosen.streams(weights, chosen.String())
	c.priced = pricedBy(list, chosen, k.bytes, a.knobs)
	return c
}

// mapped is a mapping carried out on the axes of a kernel: what it became.
type mapped struct {
	*planner
	mapping
	weights []*operand

	sharing    int64        // threads that share a row
	groups     int64        // of threads of a block, each with rows of its own
	blocks     float64      // of the grid
	atOnce     int64        // points of a row of which a thread has the weights at once
	loaded     int64        // likewise, with those past the end of the row
	iterations int64        // of a thread along a row
	shared     int64        // weights that a thread has of those that share bytes
	scaled     int64        // threads that share a group, each of which computes its scale
	apart      int64        // loads of a thread side by side, so many times as far apart are those of lanes
	run        int64        // neighbouring points of a row that a thread loads at once
	strides    []laneStride // of the lanes that share a row, the lowest first
	price      price
	wanted     float64 // registers of a thread
	splits     []split // of the rows
	completed  bool    // its plan has what a kernel has besides its sums
}

// threads is the number of threads of a block: whole warps.
func (c *mapped) threads() int64 {
	warp := int64(c.desc.WarpSize)
	return ceil(c.sharing*c.groups, warp) * warp
}

func (c *mapped) cost() float64 { return c.price.total }

// filled is 1: its blocks share the bandwidth of memory, however few they are.
func (c *mapped) filled() float64 { return 1 }
func (c *mapped) byBytes() bool   { return true }

// String says how threads take rows.
func (c *mapped) String() string {
	s := fmt.Sprintf("%d threads a row, %d rows a thread, %d such groups a block", c.sharing, c.rows, c.groups)
	if c.turns > 1 {
		s += fmt.Sprintf(", %d of them one after the other", c.turns)
	}
	return s + fmt.Sprintf(": %.1f us", c.price.total/1000)
}

// mappings lists the mappings of a kernel, the cheapest first.
func (a *analysis) mappings(weights []*operand, k *work) []*mapped {
	var list []*mapped
	shares := make(map[string]bool)
	a.eachShare(a.halvesDiffer(weights), func(m mapping) {
		c := a.share(weights, m)
		if key := (plan.Plan{Opts: c.opts}).String(); !shares[key] {
			shares[key] = true
			list = append(list, c.withRows(k)...)
		}
	})
	slices.SortStableFunc(list, func(x, y *mapped) int { return cmp.Compare(x.price.total, y.price.total) })
	return a.fullFirst(list)
}

// Of parts of a grid that cost nearly the same, one whose blocks leave few multiprocessors of its share idle is taken: blocks of all parts are spread over
// all of them, which the price of one part does not see.
const (
	fullShare  = 0.75 // of the multiprocessors
	nearlySame = 1.04
)

// fullFirst puts the cheapest mapping of those first that leave few multiprocessors idle, where it costs nearly as little as any.
func (a *analysis) fullFirst(list []*mapped) []*mapped {
	full := func(c *mapped) bool { return c.blocks >= fullShare*a.knobs.share()*float64(a.desc.Cost.Workers) }
	if a.knobs.share() == 1 || len(list) == 0 || full(list[0]) {
		return list
	}
	i := slices.IndexFunc(list, full)
	if i < 0 || list[i].price.total > nearlySame*list[0].price.total {
		return list
	}
	chosen := list[i]
	return slices.Insert(slices.Delete(list, i, i+1), 0, chosen)
}

// share splits the rows of weights among threads as a mapping says.
func (a *analysis) share(weights []*operand, m mapping) *mapped {
	c := &mapped{planner: a.plan(), mapping: m, weights: weights, sharing: 1, atOnce: 1, iterations: 1, shared: 1, scaled: 1, apart: 1, run: 1}
	c.inBlock.counted = true
	for _, o := range weights {
		if !c.done[o.chain[len(o.chain)-1]] {
			c.shareRow(o)
		}
	}
	return c
}

// halvesDiffer reports weights of which lanes may share groups.
func (a *analysis) halvesDiffer(weights []*operand) bool {
	m := mapping{copies: gpuSharedCopies, lanes: 1, warps: 1, rest: 1}
	whole := a.share(weights, m)
	m.halves = true
	return !slices.Equal(whole.opts, a.share(weights, m).opts)
}

// eachShare goes through the ways of sharing a row. Knobs leave one value of theirs.
func (a *analysis) eachShare(halved bool, f func(m mapping)) {
	warp := int64(a.desc.WarpSize)
	lanes, warps := mapLanes, mapWarps
	if n := int64(a.knobs.ThreadsPerRow); n > 0 {
		lanes, warps = []int64{min(n, warp)}, []int64{ceil(n, warp)}
	}
	for _, copies := range mapCopies {
		for _, lane := range lanes {
			for _, n := range warps {
				for _, rest := range mapRest {
					for _, halves := range []bool{false, true} {
						if (n == 1 || lane == warp) && (halved || !halves) {
							f(mapping{copies: copies, lanes: lane, warps: n, rest: rest, halves: halves})
						}
					}
				}
			}
		}
	}
}

// withRows are the ways of taking rows with one way of sharing them.
func (c *mapped) withRows(k *work) []*mapped {
	var list []*mapped
	rows, blocks := mapRows, mapBlocks
	if n := c.knobs.RowsPerThread; n > 0 {
		rows = []int64{int64(n)}
	}
	if n := c.knobs.BlockSize; n > 0 {
		blocks = []int64{int64(n) * c.sharing}
	}
	type taken struct{ rows, groups, turns int64 }
	seen := make(map[taken]bool)
	for _, n := range rows {
		for _, block := range blocks {
			for _, waves := range mapWaves {
				d := *c
				d.rows, d.block, d.turns = n, block, 1
				if waves > 0 {
					group := max(n*block/c.sharing, 1)
					d.turns = (k.blocks(group)-1)/(waves*int64(d.desc.Cost.Workers)) + 1
				}
				d.takeRows(k)
				key := taken{d.rows, d.groups, d.turns}
				if d.sharing*d.groups <= max(block, int64(d.desc.WarpSize)) && !seen[key] {
					seen[key] = true
					list = append(list, d.stagings(k)...)
				}
			}
		}
	}
	return list
}

// stagings are a mapping with what depends on no row computed once for a block, where there
// is such a thing, and with all of it computed by each thread, where threads need not wait
// for a stage anyway.
func (c *mapped) stagings(k *work) []*mapped {
	list := []*mapped{c}
	if c.staged = k.invariant > 0; c.staged && !k.waits {
		alone := *c
		alone.staged = false
		list = append(list, &alone)
	}
	for _, d := range list {
		d.wanted = d.registersOf(k, d.iterations)
		d.price = d.estimate(k, &d.desc.Threads)
	}
	return list
}

// uses are the axes of results along which weights are used again: all of a thread's.
func (c *mapped) uses() analyse.RangeSet { return c.usesOf(c.weights) }

// complete adds what a kernel has besides its sums.
func (c *mapped) complete() []plan.Opt {
	if c.completed {
		return c.opts
	}
	c.completed, c.planner = true, c.planner.clone()
	for _, s := range c.splits {
		c.split(s.kind, s.axis, s.n)
		c.done[s.axis] = true
	}
	for _, i := range c.uses().List() {
		kind := plan.UPCAST
		if c.axes[i].Kind == plan.StageAxis {
			kind = plan.UNROLL
		}
		c.split(kind, i, c.size(i))
		c.done[i] = true
	}
	c.heldAxes = c.uses().Meet(c.storeSet()).Union(c.pointsOfBlock(c.weights))
	c.inBlock.counted = false
	if c.staged {
		c.stageInvariant(c.weights...)
	}
	c.aroundRows(c.rowsOf(c.weights), c.sharing*c.groups)
	c.preload(c.weights)
	c.takeRegisters()
	return c.opts
}

// takeRegisters gives threads more registers than 512 of them can have, where they want more and
// multiprocessors get fewer blocks. One that has all would keep the next kernel's from starting until it has
// left: H200, Qwen2.5 1.5B 5 to 7 % faster with three for the blocks of its gate and up in one run and as fast in another
// (docs/bench/h200-shapes.txt, end), Qwen3 4B 5 % slower with one for those of its projections.
func (c *mapped) takeRegisters() {
	if n := c.blocksWithRegisters(); n > 0 {
		c.add(plan.BLOCKS, "", n)
	}
}

// blocksWithRegisters is how many blocks a multiprocessor has at once whose threads get more registers; 0: they do not. In a launch
// with others they are those of the multiprocessors that are the kernel's share, if so many have the registers that they want: with
// those of all, a third of the blocks waited for the first ones (queries of a width of 5,120, 13.2 us instead of 9.3); with fewer
// registers than they want, threads took longer than that (docs/bench/h200-survey.txt).
func (c *mapped) blocksWithRegisters() int64 {
	on := func(units float64) int64 { return int64(math.Ceil(c.blocks / units)) }
	whole := float64(c.desc.Cost.Workers)
	blocks := on(whole * c.knobs.share())
	if float64(blocks*c.threads())*c.wanted > unitRegisters {
		blocks = on(whole)
	}
	if c.wanted > heldRegisters && blocks > 1 && blocks < residentThreads/c.threads() {
		return blocks
	}
	return 0
}

// shareRow splits the chain of sums of a weight: a thread's load along the innermost
// range, copies of what shares the bytes of a load, threads, and the rest.
func (c *mapped) shareRow(w *operand) {
	first := c.sharing == 1
	inner := c.byteAxis(w)
	switch entry := c.entryLanes(w, inner); {
	case c.shortRun(w, inner):
		c.fillWord(w, inner)
	case entry && c.constant(inner): // each point is an entry of its own
		c.split(plan.UNROLL, inner, powerOfTwoDivisor(c.left(inner), c.entriesOfWord(w, inner)))
	case c.constant(inner) && c.laneSafe(inner):
		n := c.dot(inner)
		c.split(plan.VECTOR, inner, powerOfTwoDivisor(c.left(inner), c.loadElements(w)/n))
		if whole := c.left(inner); n > 1 && whole > 1 && whole <= groupLoads && c.points(w.chain)/c.size(inner) >= c.lanes {
			if c.halves {
				c.scaled = whole // a scale costs as much for half of its group
			} else {
				c.split(plan.UNROLL, inner, whole)
				if !c.liesApart(w) {
					c.apart = whole
				}
			}
		}
	}
	if first {
		c.run = max(c.taken[inner], 1)
	}
	copies := int64(1)
	for _, i := range slices.Backward(w.chain) {
		if i != inner && c.taken[i] == 0 && c.constant(i) && c.sharesBytes(w, i) && copies*c.size(i) <= c.copies {
			c.split(plan.UNROLL, i, c.size(i))
			copies *= c.size(i)
			c.shared = max(c.shared, copies)
		}
	}
	sharing, padded := int64(1), false
	var strides []laneStride
	below := int64(1) // points of the axes within
	for _, i := range slices.Backward(w.chain) {
		if c.constant(i) && sharing < c.lanes {
			n := c.lanesAlong(i, c.lanes/sharing, &padded)
			strides = append(strides, laneStride{n, below * max(c.taken[i], 1)})
			c.split(plan.WARP, i, n)
			sharing *= n
		}
		below *= c.size(i)
	}
	warps, rest, iterations := c.warps, c.rest, int64(1)
	for _, i := range w.chain {
		if c.constant(i) && c.left(i) > 1 && warps > 1 && sharing == int64(c.desc.WarpSize) {
			n := min(warps, c.left(i))
			c.split(plan.GROUP, i, n)
			sharing, warps = sharing*n, 1
		}
		if c.constant(i) && c.left(i) > 1 && rest != 1 {
			n := c.left(i)
			if rest > 0 {
				n = min(n, rest)
			} else if n > mostRest {
				n = divisor(n, mostRest)
			}
			c.split(plan.UNROLL, i, n)
			if rest > 0 {
				rest = max(rest/n, 1)
			}
		}
		iterations *= c.left(i)
		c.done[i] = true
	}
	if first || sharing > c.sharing {
		c.sharing, c.iterations, c.strides = sharing, iterations, strides
		c.atOnce = ceil(c.points(w.chain), sharing*iterations)
		c.loaded = c.pointsOfThread(w) / sharing
	}
}

// pointsOfThread is how many points of a row Opts have taken: those that threads have at once.
func (c *mapped) pointsOfThread(w *operand) int64 {
	n := int64(1)
	for _, i := range w.chain {
		n *= max(c.taken[i], 1)
	}
	return n
}

// lanesAlong is how many of the lanes wanted an axis gives. One axis of a row may have
// lanes past its end: of several, points past the ends would multiply.
func (c *mapped) lanesAlong(i int, wanted int64, padded *bool) int64 {
	n, left := powerOfTwoDivisor(c.left(i), wanted), c.left(i)
	if *padded || n == wanted || n == left {
		return n
	}
	*padded = true
	for n < wanted && n < left {
		n *= 2
	}
	return n
}

// takeRows splits the rows: several a thread, groups of threads a block, and groups
// that a block takes one after the other. Rows of a tile that a block makes by itself
// are points of a stage. The splits are only noted: most mappings lose.
func (c *mapped) takeRows(k *work) {
	c.splits = nil
	rows, groups := c.shareTile(k)
	for _, i := range k.beside {
		n := divisor(c.size(i), groups)
		c.splits = append(c.splits, split{plan.LOCAL, i, n}, split{plan.ROLL, i, c.size(i) / n})
	}
	i, turns := k.row, int64(1)
	c.blocks = k.rows / max(k.tile, float64(rows))
	if i >= 0 && groups == 1 && k.tile == 1 { // else a tile is a block's work
		n := min(max(c.rows/rows, 1), c.size(i))
		left := ceil(c.size(i), n)
		groups = min(max(c.block/c.sharing, 1), left)
		c.splits = append(c.splits, split{plan.UPCAST, i, n}, split{plan.LOCAL, i, groups})
		if k.everyRow {
			turns = min(c.turns, ceil(left, groups))
			c.splits = append(c.splits, split{plan.ROLL, i, turns})
		}
		c.blocks = k.rows / float64(rows*c.size(i)) * float64(ceil(left, groups*turns))
		if groups == left {
			groups *= c.groupsOutside(k, groups)
		}
		rows *= n
	}
	c.rows, c.groups, c.turns = rows, groups, turns
}

// groupsOutside fills a block that has all rows of the innermost axis with those of axes around it: rows that are
// the groups of a longer row have axes of two points.
func (c *mapped) groupsOutside(k *work, groups int64) (more int64) {
	more = 1
	for _, i := range slices.Backward(k.outer) {
		n := divisor(c.size(i), max(c.block/(c.sharing*groups*more), 1))
		c.splits = append(c.splits, split{plan.LOCAL, i, n})
		c.blocks /= float64(n)
		if more *= n; n < c.size(i) {
			break
		}
	}
	return more
}

// split is a split of an axis that is noted.
type split struct {
	kind plan.OptKind
	axis int
	n    int64
}

// shareTile splits the rows of a tile.
func (c *mapped) shareTile(k *work) (rows, groups int64) {
	rows, groups = 1, 1
	for _, z := range k.stages {
		n := c.size(z)
		if n <= maxStageCopies {
			c.splits = append(c.splits, split{plan.UNROLL, z, n})
			rows *= n
			continue
		}
		each := powerOfTwoDivisor(n, max(c.rows/rows, 1))
		g := powerOfTwoDivisor(n/each, max(c.block/(c.sharing*groups), 1))
		c.splits = append(c.splits, split{plan.UNROLL, z, each}, split{plan.LOCAL, z, g})
		rows, groups = rows*each, groups*g
	}
	return rows, groups
}
