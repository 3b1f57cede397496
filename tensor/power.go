package tensor

import (
	"math"

	"tgc/ir"
)

// Pow is t**u. Integers wrap, and a negative exponent gives the truncated
// quotient. Floats follow C's pow: 1**u and t**0 are 1, a negative base needs a
// whole exponent. f32 is computed in f64. By a constant of 1/2 or of a whole number up to 8 it is
// a root or products; by such a constant there is no derivative.
func (t *Tensor) Pow(u *Tensor) *Tensor {
	x, y := t.together("pow", u)
	if !x.ok() {
		return t.bad()
	}
	if !x.DType().IsFloat() {
		return x.powInt(y)
	}
	if p, constant := y.node.Float(); constant && (p == 0.5 || isFewFactors(p)) {
		return x.exactly(x, func(x, _ *Tensor) *Tensor { return x.powConstant(p) })
	}
	return x.exactly(y, (*Tensor).powFloat)
}

// mostFactors is how many equal factors are multiplied instead of taking a logarithm. Each product rounds once:
// a logarithm and an exponential of f64 are further off at 8 factors.
const mostFactors = 8

// isFewFactors says that a power is a product of few factors.
func isFewFactors(p float64) bool { return p == math.Trunc(p) && p >= 1 && p <= mostFactors }

// powConstant is the power by 1/2 or by few factors. The derivative of the root at 0 is 0.
func (t *Tensor) powConstant(p float64) *Tensor {
	if p == 0.5 {
		infinite := t.scalar(math.Inf(1))
		return t.Eq(infinite.Neg()).Where(infinite, t.awayFromZero((*Tensor).Sqrt))
	}
	return t.factors(int(p))
}

// powerOf is a term of a p-norm, of which the root will be taken: by products in t's own type where they are few.
func (t *Tensor) powerOf(p float64) *Tensor {
	if isFewFactors(p) {
		return t.factors(int(p))
	}
	return t.Pow(t.scalar(p))
}

// factors is the product of n equal factors, of which there is one at least.
func (t *Tensor) factors(n int) *Tensor {
	if n == 1 {
		return t
	}
	square := t.factors(n / 2)
	if square = square.Mul(square); n%2 == 0 {
		return square
	}
	return square.Mul(t)
}

// powFloat is |t|^u with the sign that u's parity gives. At 0 the derivatives
// are 0, but for 1 of t^1.
func (t *Tensor) powFloat(u *Tensor) *Tensor {
	zero, one, two := t.scalar(0), t.scalar(1), t.scalar(2)
	size := t.Abs()
	plain := size.Eq(zero).Not()
	power := plain.Where(size, one).Log2().Mul(u)
	// 0 times infinity, and 1 to the power of anything.
	unit := size.Eq(one).And(u.IsInf().Or(t.Eq(one).And(u.IsNaN())))
	value := unit.Where(zero, power).Exp2()

	whole := u.Eq(u.Floor())
	half := u.Div(two)
	odd := whole.And(half.Ne(half.Floor()))
	negative := t.Lt(zero)
	value = negative.And(odd).Where(value.Neg(), value)
	infinite := t.scalar(math.Inf(1))
	pole := t.signBit().And(odd).Where(infinite.Neg(), infinite)
	value = plain.Where(value, u.Eq(one).Where(t, u.Lt(zero).Where(pole, u.nanOnly())))
	defined := negative.Not().Or(whole).Or(size.IsInf())
	value = defined.Where(value, t.scalar(math.NaN()))
	return u.Eq(zero).Where(one, value)
}

// powInt multiplies the squares of t that the bits of u choose.
func (t *Tensor) powInt(u *Tensor) *Tensor {
	if t.DType() == ir.Bool {
		return t.Or(u.Not())
	}
	zero, one := t.scalar(0), t.scalar(1)
	result, square := one, t
	for bit := range t.DType().Bits() {
		set := u.Shr(u.scalar(float64(bit))).And(one).Eq(one)
		result = set.Where(result.Mul(square), result)
		square = square.Mul(square)
	}
	if !t.DType().IsSigned() {
		return result
	}
	odd := u.And(one).Eq(one)
	minus := one.Neg()
	fraction := t.Eq(one).Where(one, t.Eq(minus).Where(odd.Where(minus, one), zero))
	return u.Lt(zero).Where(fraction, result)
}
