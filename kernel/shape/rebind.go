package shape

import (
	"slices"

	"tgc/ir"
	"tgc/ir/analyse"
)

// rebind finds the ranges of plans again after a substitution: a range whose
// extent mentions another one, such as the chunk of a split reduce, is a new
// node when that one is split. Its id stays.
func rebind(sink *ir.UOp, plans []Axis) []Axis {
	byID := make(map[int]*ir.UOp)
	for _, r := range analyse.RangesIn(sink) {
		byID[r.Arg.(ir.RangeArg).ID] = r
	}
	out := slices.Clone(plans)
	for i := range out {
		if r, ok := byID[out[i].Axis.Range.Arg.(ir.RangeArg).ID]; ok {
			out[i].Axis.Range = r
		}
	}
	return out
}
