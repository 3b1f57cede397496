package algebra

import (
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/schedule/state"
)

// DistributeDigits distributes a sum over the digits of integer activations:
// REDUCE(ADD, (c*f(hi) + f(lo))*q) -> REDUCE(ADD, c*f(hi)*q) + REDUCE(ADD,
// f(lo)*q), so that each is a sum of products of bytes.
func DistributeDigits(s *state.State, v *state.Value) {
	if !s.ReadsField(v.Body) {
		return
	}
	body := s.RewriteReduces(v.Body, func(u *ir.UOp) *ir.UOp {
		if !splitsSum(s, v, u) || s.Height(u.Src[0]) > 0 {
			return u
		}
		list := analyse.Factors(u.Src[0])
		for i, f := range list {
			if (f.Op == ir.OpAdd || f.Op == ir.OpSub) && isWidened(s.Exprs, f) {
				return splitSum(s.Exprs, u, list, i)
			}
		}
		return u
	})
	if body != v.Body {
		v.Body = body
		s.Record(v, true, "digits of integers")
	}
}
