package gpu

import (
	"math"

	"tgc/ir"
)

// Reciprocals of f32, correctly rounded without a branch, as roots are. Operands at both ends are scaled. The
// reciprocal of a subnormal one is exact to scale back, that of one past 2^126 is subnormal and so has
// fewer digits: it is rounded once more, to a multiple of the least number. That would round twice where the first
// rounding ends between two of those, so what the first one lost is added before the second.

const (
	leastNormal  = 0x1p-126
	leastNumber  = 0x1p-149
	inverseScale = 0x1p64
	whole        = 0x1p23 // a sum with it is a whole number
)

// inverse is RECIP of x.
func (s *Selector) inverse(x Operand) Operand {
	f := s.singles()
	x = s.print.Hold(x, F32)
	size := f.do(ir.OpAbs, x)
	small := s.print.Compare(ir.OpCmpLt, f.number, size, f.constant(leastNormal))
	large := s.print.Compare(ir.OpCmpLt, f.number, f.constant(1/leastNormal), size)
	scale := s.print.Choose(small, f.constant(inverseScale), f.either(large, 1/inverseScale, 1), F32)
	scaled := f.do(ir.OpMul, x, scale) // exact
	guess := s.print.Guess(ir.OpRecip, scaled)
	one := f.constant(1)
	near := f.do(ir.OpFma, guess, f.residual(scaled, guess, one), guess) // 1/scaled, rounded

	lost := f.residual(scaled, near, one)
	result := s.print.Choose(large, f.subnormal(x, near, lost), f.do(ir.OpMul, near, scale), F32)
	ends, _ := s.print.Logic(ir.OpOr, []Operand{f.is(x, 0), f.is(size, math.Inf(1))})
	return s.print.Choose(ends, guess, result, F32)
}

// subnormal is near*(1+lost)/inverseScale of the sign of x, in leastNumbers, rounded.
func (s singles) subnormal(x, near, lost Operand) Operand {
	negative := s.print.Compare(ir.OpCmpLt, s.number, x, s.constant(0))
	far := s.either(negative, -whole, whole)
	count := s.do(ir.OpMul, near, s.constant(1/(inverseScale*leastNumber)))
	shifted := s.do(ir.OpAdd, count, far)
	rest := s.do(ir.OpFma, count, lost, s.do(ir.OpSub, count, s.do(ir.OpSub, shifted, far)))
	count = s.do(ir.OpSub, s.do(ir.OpAdd, shifted, rest), far)
	return s.do(ir.OpMul, count, s.constant(leastNumber))
}
