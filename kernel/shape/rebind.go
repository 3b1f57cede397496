package shape

import "tgc/ir"

// rebind finds the ranges of plans again after a substitution: a range whose
// extent mentions another one, such as the chunk of a split reduce, is a new
// node when that one is split. Its id stays.
func rebind(sink *ir.UOp, plans []Axis) []Axis {
	byID := make(map[int]*ir.UOp)
	for _, u := range ir.Toposort(sink) {
		if u.Op == ir.OpRange {
			byID[u.Arg.(ir.RangeArg).ID] = u
		}
	}
	out := append([]Axis(nil), plans...)
	for i := range out {
		if r, ok := byID[out[i].Axis.Range.Arg.(ir.RangeArg).ID]; ok {
			out[i].Axis.Range = r
		}
	}
	return out
}
