package algebra

import (
	"slices"

	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/schedule/expr"
	"tgc/schedule/state"
)

// hasIntegerFactor reports a sum of products with integers that are no weights:
// a factor that widens narrow integers, itself or as a factor of the pointwise
// value that it reads.
func hasIntegerFactor(s *state.State, u *ir.UOp) bool {
	for _, f := range analyse.Factors(u.Src[0]) {
		if isWidened(s.Exprs, f) {
			return true
		}
		if p, ok := s.IsRead(f); ok && s.IsPointwise(p) && !s.FactsOf(p.Body).Weights && slices.ContainsFunc(analyse.Factors(p.Body), func(u *ir.UOp) bool { return isWidened(s.Exprs, u) }) {
			return true
		}
	}
	return false
}

// isWidened reports narrow integers converted to float, or a sum of such with
// constant factors.
func isWidened(s *expr.Exprs, f *ir.UOp) bool {
	switch f.Op {
	case ir.OpCast:
		x := f.Src[0]
		return x.DType.IsInt() && x.DType.Size() <= 2 && !s.ReadsField(x)
	case ir.OpAdd, ir.OpSub:
		return isWidened(s, f.Src[0]) && isWidened(s, f.Src[1])
	case ir.OpMul:
		return isWidened(s, f.Src[0]) && f.Src[1].Op == ir.OpConst
	}
	return false
}

// splitsSum reports a sum of v that the packed-sum rules may take apart. Of a
// matrix product on a CPU they may not: its decoded rows are staged once for all
// tokens, and a step of a group's sum costs more than one of f32.
func splitsSum(s *state.State, v *state.Value, u *ir.UOp) bool {
	if !analyse.IsFloatSum(u) {
		return false
	}
	p := &s.Opt.Profile
	return !p.IntegerSums || hasIntegerFactor(s, u) && (p.TileReuse == 0 || s.WeightReuse(v) <= p.TileReuse)
}
