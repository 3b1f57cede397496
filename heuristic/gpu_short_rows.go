package heuristic

import (
	"fmt"

	"tgc/kernel/plan"
)

// Short rows: a few threads of a warp have a row's reduces and its points, next ones next
// elements, and a block many rows. A block of its own for each row has threads for most of its
// points only, and one warp.
const (
	shortRow       = 128 // points; longer ones have warps of their own
	shortRowPoints = 8   // of a thread, at most
	shortRowWarps  = 2   // of a multiprocessor, at least: fewer rows have warps of their own
)

// gpuShortRows plans stores of points that share reduces over a short row, of any extent.
func gpuShortRows(a *analysis, axes []int) (opts []plan.Opt, why string, record Record, ok bool) {
	p := a.plan()
	results := p.reduceResults()
	inner, longest := -1, int64(1)
	short := func(i int) bool {
		longest = max(longest, p.size(i))
		return p.constant(i) && p.size(i) <= shortRow && !p.dotAxis(i) && !p.insideReduce(i)
	}
	for _, i := range axes {
		if !short(i) {
			return nil, "", Record{}, false
		}
	}
	stores := p.axesOf(plan.StoreAxis)
	for _, i := range stores {
		if !results.Has(i) {
			if inner >= 0 || !short(i) || !p.laneSafe(i) || !p.everyStore(i) {
				return nil, "", Record{}, false
			}
			inner = i
		}
	}
	if inner < 0 || len(p.stages) > 0 {
		return nil, "", Record{}, false
	}
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
