package heuristic

import (
	"tgc/ir"

	"tgc/kernel/plan"
	"tgc/packed"
)

// How the threads of a GPU share one row of a matrix-vector product.
const (
	gpuRowWarps   = 4   // warps that share a long row
	gpuUnitWarps  = 8   // warps of a multiprocessor, below which long rows are shared
	gpuLanePoints = 128 // of a row that are much for a lane
	gpuHeldPoints = 256 // of sums of integers that a thread loads at once
	gpuGroupLoads = 2   // loads of a thread that hold one group of integers
)

// lanesOfRow splits the chain of sums of a weight: a thread's load along the
// innermost range, copies of what shares the bytes of a load, then threads. It
// returns the number of threads that share a row. threads is how many are wanted,
// sums the number of sums that the weight is in.
func (p *planner) lanesOfRow(w *operand, threads, sums int64) (sharing int64) {
	inner := w.chain[len(w.chain)-1]
	if p.constant(inner) && p.laneSafe(inner) {
		n := p.dot(inner)
		p.split(plan.VECTOR, inner, powerOfTwoDivisor(p.left(inner), p.loadElements(w)/n))
		if whole := p.left(inner); n > 1 && whole <= gpuGroupLoads && p.points(w.chain)/p.size(inner) >= threads {
			p.split(plan.UNROLL, inner, whole) // a scale costs as much for half of its group
		}
	}
	copies := int64(1)
	for j := len(w.chain) - 1; j >= 0; j-- {
		i := w.chain[j]
		if i != inner && p.constant(i) && p.sharesBytes(w, i) && copies*p.size(i) <= gpuSharedCopies {
			p.split(plan.UNROLL, i, p.size(i))
			copies *= p.size(i)
		}
	}
	warp := min(threads, int64(p.desc.WarpSize))
	sharing = 1
	for j := len(w.chain) - 1; j >= 0; j-- {
		i := w.chain[j]
		if p.constant(i) && sharing < warp {
			n := powerOfTwoDivisor(p.left(i), warp/sharing)
			p.split(plan.WARP, i, n)
			sharing *= n
		}
	}
	for _, i := range w.chain {
		if p.constant(i) && p.left(i) > 1 && warp == int64(p.desc.WarpSize) {
			sharing *= p.restOfRow(w, i, sharing, threads/warp, sums)
		}
		p.done[i] = true
	}
	return sharing
}

// fewRows reports rows that give each multiprocessor so few warps that their parts
// of a row may be small.
func (p *planner) fewRows(w *operand) bool {
	return p.points(w.rows)/gpuRowsPerThread < gpuUnitWarps*int64(p.desc.Cost.Workers)
}

// loadsNext reports rows of which the next are loaded ahead, if there is no loop along
// a row. H200, Qwen3 0.6B int8: 1991 -> 2108 tokens a second, 1.7B exact: 747 -> 809;
// rows of gathered matrices lose (OLMoE exact: 1102 -> 968).
func (p *planner) loadsNext(w *operand) bool {
	rows := p.storeRows(p.free.Of(w.sum))
	return len(rows) == 1 && powerOfTwoDivisor(p.points(rows), gpuBlockRows) == gpuBlockRows && p.points(w.chain) <= gpuAheadWeights*int64(p.desc.WarpSize)
}

// restOfRow divides what a warp leaves of a long row, and returns by how many warps.
// sharing is the number of threads that share the row already, warps how many warps
// a knob asked for (1: it did not).
//
// Where rows are few, four warps of a block share a row, or three where a lane would
// have much of it (H200, int8: rows of 6144 gain, 1441 -> 1513 tokens a second, rows of
// 3072 lose, 2114 -> 1976). Else a thread loads all of its part at once, if that is
// integers whose activations leave registers: a loop loads only its first part ahead of
// the wait (rows of 3072: 3.5 -> 3.3 us, three matrices of one input 4.9 -> 4.5).
func (p *planner) restOfRow(w *operand, i int, sharing, warps, sums int64) int64 {
	lanes := int64(p.desc.WarpSize)
	if warps > 1 {
		n := powerOfTwoDivisor(p.left(i), warps)
		if sharing == lanes && n == warps {
			p.split(plan.GROUP, i, n)
			return n
		}
		p.split(plan.UNROLL, i, n)
		return 1
	}
	if !p.fewRows(w) {
		if sharing == lanes && p.loadsNext(w) {
			p.split(plan.UNROLL, i, p.left(i))
		}
		return 1
	}
	if n := divisor(p.left(i), gpuRowWarps); sharing == lanes && (n == gpuRowWarps || n > 2 && p.points(w.chain) > gpuLanePoints*sharing) {
		p.split(plan.GROUP, i, n)
		return n
	}
	if p.dotAxis(w.chain[len(w.chain)-1]) && p.points(w.chain)*sums <= gpuHeldPoints*sharing {
		p.split(plan.UNROLL, i, divisor(p.left(i), gpuRowWarps))
	} else if sharing >= lanes {
		p.split(plan.UNROLL, i, powerOfTwoDivisor(p.left(i), gpuRowWarps))
	}
	return 1
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
		if u.Op == ir.OpField && u.DType.Size() <= 2 && a.free.Of(u).Has(inner) && !a.free.Of(u).Has(axis) {
			return true
		}
	}
	return false
}
