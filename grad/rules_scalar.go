package grad

import (
	"math"

	"tgc/ir"
	"tgc/tensor"
)

// The elementwise ops. Where the result y says it shorter than the source, it
// is used: it is there already. Comparisons, integers, bits and rounding have no
// rule.
var scalarRules = map[ir.Op]rule{
	ir.OpAdd:   {"a: g, b: g", []adjoint{pass, pass}},
	ir.OpSub:   {"a: g, b: -g", []adjoint{pass, negated}},
	ir.OpNeg:   {"a: -g", []adjoint{negated}},
	ir.OpMul:   {"a: g*b, b: g*a", []adjoint{timesB, timesA}},
	ir.OpFma:   {"a: g*b, b: g*a, c: g", []adjoint{timesB, timesA, pass}},
	ir.OpFDiv:  {"a: g/b, b: -g*y/b", []adjoint{quotientA, quotientB}},
	ir.OpRecip: {"a: -g*y*y", []adjoint{func(s *step) *tensor.Tensor { return times(negative(s.g), s.y()).Mul(s.y()) }}},
	ir.OpSqrt:  {"a: g/(2y)", []adjoint{func(s *step) *tensor.Tensor { return s.g.Div(s.y().MulScalar(2)) }}},
	ir.OpRsqrt: {"a: -g/2 * y^3", []adjoint{func(s *step) *tensor.Tensor {
		return times(s.g.MulScalar(-0.5), s.y().Mul(s.y()).Mul(s.y()))
	}}},
	ir.OpExp2:  {"a: g*y*ln 2, y no more than the largest number", []adjoint{exponential}},
	ir.OpLog2:  {"a: g/(a*ln 2)", []adjoint{func(s *step) *tensor.Tensor { return s.g.Div(s.a().MulScalar(math.Ln2)) }}},
	ir.OpSin:   {"a: g*cos a", []adjoint{func(s *step) *tensor.Tensor { return times(s.g, s.a().Cos()) }}},
	ir.OpAbs:   {"a: g*sign(a), which is a itself at 0 and NaN", []adjoint{absolute}},
	ir.OpMax:   {"a: g where b<a, g/2 where equal, and as much for b", []adjoint{larger(0, 1), larger(1, 0)}},
	ir.OpMin:   {"a: g where a<b, g/2 where equal, and as much for b", []adjoint{smaller(0, 1), smaller(1, 0)}},
	ir.OpWhere: {"b: g where a, else 0; c: 0 where a, else g", []adjoint{nil, chosen, refused}},
	ir.OpCast:  {"a: g as a's dtype", []adjoint{func(s *step) *tensor.Tensor { return s.g.Cast(s.a().DType()) }}},
}

func negated(s *step) *tensor.Tensor   { return negative(s.g) }
func timesA(s *step) *tensor.Tensor    { return times(s.g, s.a()) }
func timesB(s *step) *tensor.Tensor    { return times(s.g, s.b()) }
func quotientA(s *step) *tensor.Tensor { return s.g.Div(s.b()) }
func quotientB(s *step) *tensor.Tensor { return times(negative(s.g), s.y()).Div(s.b()) }

// exponential keeps an adjoint of 0 where the result overflowed: it says that
// the overflow does not matter (1/(1+2^a), say), and 0 times infinity would be
// NaN.
func exponential(s *step) *tensor.Tensor {
	y := s.y()
	if most, ok := largest[y.DType()]; ok {
		y = y.ClampMax(most)
	}
	return times(s.g, y.MulScalar(math.Ln2))
}

// largest is the largest number of a float dtype.
var largest = map[ir.DType]float64{ir.F8E5M2: 57344, ir.F16: 65504, ir.BF16: 0xff * 0x1p120, ir.F32: math.MaxFloat32, ir.F64: math.MaxFloat64}

func absolute(s *step) *tensor.Tensor {
	zero, one := s.scalar(0), s.scalar(1)
	sign := zero.Lt(s.a()).Where(one, s.a().Lt(zero).Where(one.Neg(), s.a()))
	return times(s.g, sign)
}

// larger is the part of a maximum's adjoint for source i; its rival is source
// j. A NaN on either side lets the adjoint through to both.
func larger(i, j int) adjoint {
	return func(s *step) *tensor.Tensor { return winner(s, s.src(i).Lt(s.src(j))) }
}

// smaller is larger for a minimum.
func smaller(i, j int) adjoint {
	return func(s *step) *tensor.Tensor { return winner(s, s.src(j).Lt(s.src(i))) }
}

func winner(s *step, lost *tensor.Tensor) *tensor.Tensor {
	half := s.a().Eq(s.b()).Where(s.g.MulScalar(0.5), s.g)
	return lost.Where(s.scalar(0), half)
}

func chosen(s *step) *tensor.Tensor  { return s.a().Where(s.g, s.scalar(0)) }
func refused(s *step) *tensor.Tensor { return s.a().Where(s.scalar(0), s.g) }
