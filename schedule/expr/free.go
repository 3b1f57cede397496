package expr

import (
	"slices"

	"tgc/ir"
)

// Sorted returns ranges as a list in the order of lists of free ranges.
func Sorted(ranges []*ir.UOp) []*ir.UOp {
	out := slices.Clone(ranges)
	ir.SortNodes(out)
	return out
}

// DependsOn reports that u uses one of the ranges.
func (s *Exprs) DependsOn(u *ir.UOp, ranges ...*ir.UOp) bool {
	return slices.ContainsFunc(s.Free.Of(u), func(r *ir.UOp) bool { return slices.Contains(ranges, r) })
}
