package heuristic

import (
	"fmt"

	"tgc/kernel/plan"
)

// groupLoad is how many neighbouring elements of a group a thread takes: 16 bytes.
const groupLoad = 4

// gpuGroups plans stores of points that share a short reduce over neighbouring
// elements, and of its result: groups of 32 activations that are divided by their
// largest, heads that are normed. A group is a few threads' work. They hold the same
// elements for the reduce and for the stores behind it, so that each is loaded once,
// and a block takes many groups: one of a warp for each group of a prompt of 512
// tokens took 41 us for 1M points on an H200, 314 us for 8.3M.
func gpuGroups(a *analysis, axes []int) (opts []plan.Opt, why string, record Record, ok bool) {
	p := a.plan()
	results := p.reduceResults()
	if len(p.stages) > 0 {
		return nil, "", Record{}, false
	}
	lanes := int64(1)
	share := func(kind plan.OptKind, i int) bool {
		n := p.size(i)
		if !p.constant(i) || n < 2*groupLoad || n > groupLoad*int64(p.desc.WarpSize) || n != powerOfTwoDivisor(n, n) || !p.laneSafe(i) || !p.unitStride(i) {
			return false
		}
		p.split(plan.VECTOR, i, groupLoad)
		p.split(kind, i, p.left(i))
		p.done[i] = true
		lanes = max(lanes, n/groupLoad)
		return true
	}
	for _, i := range axes {
		if !p.plainReduce(i) || p.dotAxis(i) || !share(plan.WARP, i) {
			return nil, "", Record{}, false
		}
	}
	stores := p.axesOf(plan.StoreAxis)
	for _, i := range stores {
		if !results.Has(i) && !share(plan.LOCAL, i) {
			return nil, "", Record{}, false
		}
	}
	threads := lanes
	for k := len(stores) - 1; k >= 0; k-- {
		if i := stores[k]; !p.done[i] && p.constant(i) && threads < gpuReduceThreads {
			n := divisor(p.left(i), gpuReduceThreads/threads)
			p.split(plan.LOCAL, i, n)
			threads *= n
		}
		p.done[stores[k]] = true
	}
	p.fma()
	how := fmt.Sprintf("%d threads a group of %d, %d threads a block", lanes, p.size(axes[0]), threads)
	record = Record{Axis: a.axes[axes[0]].Name, Value: a.size(axes[0]), Applied: true, Reason: "groups", Detail: how}
	return p.opts, fmt.Sprintf("%d ranges of up to %d points; %s", len(axes), a.size(axes[0]), how), record, true
}

// gpuShortSums plans so many short sums over what lies side by side that none is
// worth more than one thread: 16 bytes of rows each, with all loads in flight. What
// a token of a prompt of 512 gets from 8 experts took 43 us on an H200 with a sum
// shared by 8 threads.
func gpuShortSums(a *analysis, weights []*operand, row int) (opts []plan.Opt, why string, record Record, ok bool) {
	p, w := a.plan(), weights[0]
	points := a.points(a.rowsOf(weights).Meet(a.storeSet()).List())
	if len(w.chain) != 1 || len(weights) > 1 || !a.constant(w.chain[0]) || a.size(w.chain[0]) > gpuShortSum || points < gpuBlocksPerUnit*gpuReduceThreads*int64(a.desc.Cost.Workers) || !a.laneSafe(row) {
		return nil, "", Record{}, false
	}
	p.split(plan.VECTOR, row, powerOfTwoDivisor(p.size(row), lanesOf(a.desc)))
	n := a.threads(p.left(row), gpuBlockThreads)
	p.split(plan.LOCAL, row, n)
	p.split(plan.UNROLL, w.chain[0], p.size(w.chain[0]))
	p.done[row], p.done[w.chain[0]] = true, true
	p.aroundRows(a.rowsOf(weights), n)
	how := "16 bytes of rows a thread, with a whole sum each"
	return p.opts, fmt.Sprintf("%s streamed once; %s", a.describe(weights), how), appliedTo(w, "streams-weight", how), true
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
func gpuShortRows(a *analysis, axes []int) (opts []plan.Opt, why string, record Record, ok bool) {
	inner, longest, ok := a.shortRows(axes)
	if !ok {
		return nil, "", Record{}, false
	}
	p := a.plan()
	results, stores := p.reduceResults(), p.axesOf(plan.StoreAxis)
	lanes := powerOfTwo(ceil(longest, shortRowPoints/2)-1, 1, int64(p.desc.WarpSize))
	all, least := satMul(p.points(results.Meet(p.storeSet()).List()), lanes), int64(p.desc.WarpSize)*shortRowWarps
	if all < least*int64(p.desc.Cost.Workers) {
		return nil, "", Record{}, false
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
	threads := lanes
	for k := len(stores) - 1; k >= 0; k-- {
		if i := stores[k]; !p.done[i] && p.constant(i) && threads < block {
			n := p.threads(p.left(i), block/threads)
			if lanes > 1 { // whole warps
				n = powerOfTwo(2*p.left(i)-1, 1, block/threads)
			}
			p.split(plan.LOCAL, i, n)
			threads *= n
		}
		p.done[stores[k]] = true
	}
	p.fma()
	how := fmt.Sprintf("%d threads a row of %d, %d threads a block", lanes, longest, threads)
	record = Record{Axis: a.axes[inner].Name, Value: a.size(inner), Applied: true, Reason: "short-rows", Detail: how}
	return p.opts, fmt.Sprintf("%d ranges of up to %d points; %s", len(axes), longest, how), record, true
}
