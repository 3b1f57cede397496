package heuristic

import (
	"tgc/ir"

	"tgc/packed"
)

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
