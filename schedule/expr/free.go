package expr

import (
	"slices"

	"tgc/ir"
	"tgc/ir/analyse"
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

// FactorRanges are the ranges on which the two factors of what a sum, or a sum of sums, adds up depend; ok is false where
// that is no product.
func (s *Exprs) FactorRanges(sum *ir.UOp) (x, y []*ir.UOp, ok bool) {
	for ; analyse.IsSum(sum); sum = sum.Src[0] {
		if product := sum.Src[0]; product.Op == ir.OpMul {
			return s.Free.Of(product.Src[0]), s.Free.Of(product.Src[1]), true
		}
	}
	return nil, nil, false
}
