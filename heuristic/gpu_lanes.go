package heuristic

import (
	"tgc/ir"
	"tgc/kernel"
	"tgc/packed"
)

// How the threads of a GPU share one row of a matrix-vector product.
const (
	gpuRowWarps   = 4 // warps that share a long row
	gpuUnitWarps  = 8 // warps of a multiprocessor, below which long rows are shared
	gpuGroupLoads = 2 // loads of a thread that hold one group of integers
)

// lanesOfRow splits the chain of sums of a weight: a thread's load along the
// innermost range, copies of what shares the bytes of a load, then threads.
func (p *planner) lanesOfRow(w *operand, threads int64) (got int64) {
	inner := w.chain[len(w.chain)-1]
	if p.constant(inner) && p.laneSafe(inner) {
		n := p.dot(inner)
		p.split(kernel.VECTOR, inner, powerOfTwoDivisor(p.left(inner), p.loadElements(w)/n))
		if whole := p.left(inner); n > 1 && whole <= gpuGroupLoads && p.points(w.chain)/p.size(inner) >= threads {
			p.split(kernel.UNROLL, inner, whole) // a scale costs as much for half of its group
		}
	}
	copies := int64(1)
	for j := len(w.chain) - 1; j >= 0; j-- {
		i := w.chain[j]
		if i != inner && p.constant(i) && p.sharesBytes(w, i) && copies*p.size(i) <= gpuSharedCopies {
			p.split(kernel.UNROLL, i, p.size(i))
			copies *= p.size(i)
		}
	}
	warp := min(threads, int64(p.desc.WarpSize))
	got = 1
	for j := len(w.chain) - 1; j >= 0; j-- {
		i := w.chain[j]
		if p.constant(i) && got < warp {
			n := powerOfTwoDivisor(p.left(i), warp/got)
			p.split(kernel.WARP, i, n)
			got *= n
		}
	}
	few := p.points(p.storeRows(p.free[w.sum]))/gpuRowsPerThread < gpuUnitWarps*int64(p.desc.Cost.Workers)
	rows := p.storeRows(p.free[w.sum])
	ahead := len(rows) == 1 && powerOfTwoDivisor(p.points(rows), gpuBlockRows) == gpuBlockRows && p.points(w.chain) <= gpuAheadWeights*warp
	warps := threads / warp // as asked for
	if warps == 1 && few {
		warps = gpuRowWarps
	}
	for _, i := range w.chain {
		// What is left of a long row is shared among the warps of a block.
		if p.constant(i) && p.left(i) > 1 && warp == int64(p.desc.WarpSize) && got == warp && warps > 1 {
			if n := powerOfTwoDivisor(p.left(i), warps); n == warps {
				p.split(kernel.GROUP, i, n)
				got *= n
			} else {
				p.split(kernel.UNROLL, i, n)
			}
		} else if p.constant(i) && got == warp && ahead {
			// Without a loop along the row, the next rows are loaded ahead. H200, Qwen3
			// 0.6B int8: 1991 -> 2108 tokens a second, 1.7B exact: 747 -> 809; rows of
			// gathered matrices lose (OLMoE exact: 1102 -> 968).
			p.split(kernel.UNROLL, i, p.left(i))
		}
		p.done[i] = true
	}
	return got
}

// loadElements is how many elements a thread loads at once along a row: 16
// bytes where rows are aligned so.
func (a *analysis) loadElements(w *operand) int64 {
	f, ok := packed.Lookup(w.param.Arg.(ir.ParamArg).Format)
	if !ok || f.IsPlain() {
		return int64(16 / max(w.param.DType.Size(), 2))
	}
	if a.desc.Planes {
		return 16
	}
	most := int64(4)
	for i := range f.Fields {
		if at := f.Fields[i]; at.Bytes() >= f.BlockBytes/2 {
			most = max(most, powerOfTwoDivisor(int64(f.BlockBytes), powerOfTwoDivisor(int64(at.Offset), 16)))
		}
	}
	return most
}

// sharesBytes reports an axis of a weight's sum along which some bytes that
// hold its integers stay the same: other bits of them are other weights.
func (a *analysis) sharesBytes(w *operand, axis int) bool {
	inner := w.chain[len(w.chain)-1]
	for _, u := range w.accesses {
		if u.Op == ir.OpField && u.DType.Size() <= 2 && a.free[u].has(inner) && !a.free[u].has(axis) {
			return true
		}
	}
	return false
}
