package expr

import (
	"math"

	"tgc/ir"
)

// JoinStep is a factor that adds one of two steps to a code, as a weight's bits choose, as one integer:
//
//	f(q) + (bit ? c : -c)  ->  f(q*2^n + (bit ? c*2^n : -c*2^n)) * 2^-n
//
// where no such integer is larger than most. Otherwise what is added has a sum of activations of its own, for as
// many points as share a bit. Others stay.
func (s *Exprs) JoinStep(f *ir.UOp, most int64) *ir.UOp {
	if f.Op != ir.OpAdd || f.Src[1].Op != ir.OpWhere || !s.isFieldsOnly(f) {
		return f
	}
	q, step := s.IntegerOf(f.Src[0]), f.Src[1]
	set, okSet := step.Src[1].Float()
	clear, okClear := step.Src[2].Float()
	if q == nil || !okSet || !okClear {
		return f
	}
	for n := range stepBits {
		scale := math.Ldexp(1, n)
		if set*scale != math.Trunc(set*scale) || clear*scale != math.Trunc(clear*scale) {
			continue
		}
		number := func(x float64) *ir.UOp { return s.A.ConstInt(q.DType, int64(x*scale)) }
		code := s.A.Add(s.A.Mul(q, number(1)), s.A.Where(step.Src[0], number(set), number(clear)))
		if !s.Bounds.Of(code).Within(-most, most) {
			return f
		}
		return s.A.Mul(s.A.Cast(code, f.DType), s.A.Const(f.DType, 1/scale))
	}
	return f
}

// stepBits bounds the fraction of a step.
const stepBits = 8
