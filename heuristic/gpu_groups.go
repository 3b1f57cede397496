package heuristic

import (
	"fmt"
	"slices"

	"tgc/internal/lists"
	"tgc/ir/analyse"
	"tgc/kernel/plan"
)

// groupLoad is how many neighbouring elements of a group, or words of a dot of bytes, a thread takes: 16 bytes.
const groupLoad = 4

// gpuGroups plans stores of points that share a short reduce over neighbouring
// elements, and of its result: groups of 32 activations that are divided by their
// largest, heads that are normed. A group is a few threads' work. They hold the same
// elements for the reduce and for the stores behind it, so that each is loaded once,
// and a block takes many groups: one of a warp for each group of a prompt of 512
// tokens took 41 us for 1M points on an H200, 314 us for 8.3M.
func gpuGroups(a *analysis) proposal {
	p, axes := a.plan(), a.axesOf(plan.ReduceAxis)
	results := p.reduceResults()
	short, long := p.foldsOfGroups(axes)
	if len(p.stages) > 0 || len(short) == 0 {
		return proposal{}
	}
	lanes := int64(1)
	share := func(kind plan.OptKind, i int) bool {
		n := p.size(i)
		if !p.constant(i) || n < 2*groupLoad || n > groupLoad*int64(p.desc.WarpSize) || n != powerOfTwoDivisor(n, n) || !p.laneSafe(i) || !p.unitStride(i) {
			return false
		}
		p.dot(i)
		p.split(plan.VECTOR, i, min(groupLoad, p.left(i)))
		lanes = max(lanes, p.left(i))
		p.split(kind, i, p.left(i))
		p.done[i] = true
		return true
	}
	for _, i := range short {
		if !p.plainReduce(i) || !share(plan.WARP, i) {
			return proposal{}
		}
	}
	stores := p.axesOf(plan.StoreAxis)
	for _, i := range stores {
		if !results.Has(i) && !share(plan.LOCAL, i) {
			return proposal{}
		}
	}
	if p.reuseAxis(axes) >= 0 || p.manyPoints(p.lastStore(stores)) {
		return proposal{}
	}
	threads := p.shareOut(lanes, gpuReduceThreads, func(i int, threads int64) int64 {
		most := gpuReduceThreads / threads
		switch {
		case len(long) == 0:
			return divisor(p.left(i), most)
		case p.rowsOfFolds(long).Has(i):
			return 1
		}
		return powerOfTwo(2*p.left(i)-1, 1, most) // whole warps, which fold the row
	})
	for _, i := range long {
		p.wholeBlock(i, threads)
	}
	p.fma()
	how := fmt.Sprintf("%d threads a group of %d, %d threads a block", lanes, p.size(short[0]), threads)
	return p.decidedBy(short[0], "groups", how).of("%d ranges of up to %d points", len(axes), slices.Max(lists.Map(axes, a.size)))
}

// foldsOfGroups parts reduces into those over groups and those of rows of groups, which all groups of a row share: the norm
// of activations. A block makes these for as many groups as it has threads. A group a block made the norm of 2,048
// elements of 24 rows 1,536 times (docs/bench/h200-heads.txt).
func (a *analysis) foldsOfGroups(axes []int) (short, long []int) {
	for _, i := range axes {
		row := a.constant(i) && a.size(i) > groupLoad*int64(a.desc.WarpSize) && a.laneSafe(i) && a.unitStride(i) && !a.insideReduce(i)
		if row && !a.reduceResults().Minus(a.rowsOfFolds([]int{i})).Meet(a.storeSet()).Empty() {
			long = append(long, i)
		} else {
			short = append(short, i)
		}
	}
	return short, long
}

// rowsOfFolds are the store axes on which some reduces depend.
func (a *analysis) rowsOfFolds(axes []int) (rows analyse.RangeSet) {
	for _, i := range axes {
		rows = rows.Union(a.around(i))
	}
	return rows.Meet(a.storeSet())
}

// gpuShortSums plans so many short sums over what lies side by side that none is
// worth more than one thread: 16 bytes of rows each, with all loads in flight. What
// a token of a prompt of 512 gets from 8 experts took 43 us on an H200 with a sum
// shared by 8 threads.
func gpuShortSums(a *analysis, weights []*operand, row int) proposal {
	p, w := a.plan(), weights[0]
	points := a.points(a.rowsOf(weights).Meet(a.storeSet()).List())
	if len(w.chain) != 1 || len(weights) > 1 || !a.constant(w.chain[0]) || a.size(w.chain[0]) > gpuShortSum || points < gpuBlocksPerUnit*gpuReduceThreads*int64(a.desc.Cost.Workers) || !a.laneSafe(row) {
		return proposal{}
	}
	p.split(plan.VECTOR, row, powerOfTwoDivisor(p.size(row), lanesOf(a.desc)))
	n := a.threads(p.left(row), gpuBlockThreads)
	p.split(plan.LOCAL, row, n)
	p.split(plan.UNROLL, w.chain[0], p.size(w.chain[0]))
	p.done[row], p.done[w.chain[0]] = true, true
	p.aroundRows(a.rowsOf(weights), n)
	how := "16 bytes of rows a thread, with a whole sum each"
	return p.decidedByWeight(w, "streams-weight", how).of("%s streamed once", a.describe(weights))
}

// gpuShortSum is the most terms of a sum that one thread loads at once.
const gpuShortSum = 16

// Short rows: a few threads of a warp have a row's reduces and its points, next ones next
// elements, and a block many rows. A block of its own for each row has threads for most of its
// points only, and one warp.
const (
	shortRow       = 128 // points; longer ones have warps of their own
	shortRowPoints = 8   // of a thread, at most
	shortRowWarps  = 2   // of a multiprocessor, at least: fewer rows have warps of their own
)

// shortRows finds the one axis along which points share their reduces, where all of these run over
// short rows, of any extent.
func (a *analysis) shortRows(axes []int) (inner int, longest int64, ok bool) {
	results := a.reduceResults()
	inner, longest = -1, 1
	short := func(i int) bool {
		longest = max(longest, a.size(i))
		return a.constant(i) && a.size(i) <= shortRow && !a.dotAxis(i) && !a.insideReduce(i)
	}
	for _, i := range axes {
		if !short(i) {
			return -1, 0, false
		}
	}
	for _, i := range a.axesOf(plan.StoreAxis) {
		if !results.Has(i) {
			if inner >= 0 || !short(i) || !a.laneSafe(i) || !a.everyStore(i) {
				return -1, 0, false
			}
			inner = i
		}
	}
	return inner, longest, inner >= 0 && len(a.stages) == 0
}

// gpuShortRows plans stores of points that share reduces over a short row.
func gpuShortRows(a *analysis) proposal {
	axes := a.axesOf(plan.ReduceAxis)
	inner, longest, ok := a.shortRows(axes)
	if !ok {
		return proposal{}
	}
	p := a.plan()
	lanes := powerOfTwo(ceil(longest, shortRowPoints/2)-1, 1, int64(p.desc.WarpSize))
	all, least := satMul(p.points(p.reduceResults().Meet(p.storeSet()).List()), lanes), int64(p.desc.WarpSize)*shortRowWarps
	if all < least*int64(p.desc.Cost.Workers) {
		return proposal{}
	}
	block := powerOfTwo(all/int64(p.desc.Cost.Workers), least, gpuReduceThreads)
	share := func(kind, rest plan.OptKind, i int) {
		p.split(kind, i, lanes)
		p.split(rest, i, p.left(i))
		p.done[i] = true
	}
	for _, i := range axes {
		share(plan.WARP, plan.UNROLL, i)
	}
	share(plan.LOCAL, plan.UPCAST, inner)
	threads := p.shareOut(lanes, block, func(i int, threads int64) int64 {
		if lanes > 1 { // whole warps
			return powerOfTwo(2*p.left(i)-1, 1, block/threads)
		}
		return p.threads(p.left(i), block/threads)
	})
	p.fma()
	how := fmt.Sprintf("%d threads a row of %d, %d threads a block", lanes, longest, threads)
	return p.decidedBy(inner, "short-rows", how).of("%d ranges of up to %d points", len(axes), longest)
}
