package algebra

import (
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/schedule/state"
)

// DistributeTerms distributes a sum over a packed weight of two terms (d*sc*q - dmin*m):
// REDUCE(ADD, y*(t1+t2)) -> REDUCE(ADD, y*t1) + REDUCE(ADD, y*t2), when a term
// has a factor of coarser granularity than the sum has. It must run before
// split-groups, which finds no coarse factor in the sum itself.
func DistributeTerms(s *state.State, v *state.Value) {
	body := s.RewriteReduces(v.Body, func(u *ir.UOp) *ir.UOp {
		if !splitsSum(s, v, u) {
			return u
		}
		list := analyse.Factors(u.Src[0])
		for i, f := range list {
			if isFieldSum(s.Exprs, f, u.ReduceRange()) {
				return splitSum(s.Exprs, u, list, i)
			}
		}
		return u
	})
	if body != v.Body {
		v.Body = body
		s.Record(v, true, "packed sum with a coarse factor")
	}
}
