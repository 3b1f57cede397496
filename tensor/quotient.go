package tensor

import (
	"math"

	"tgc/ir"
)

// Quotients rounded to integers with their remainders, and powers. An integer
// divided by 0 gives 0.

// FloorDiv is floor(t/u), of floats the exact quotient's.
func (t *Tensor) FloorDiv(u *Tensor) *Tensor {
	x, y := t.together("floordiv", u)
	if !x.DType().IsFloat() {
		return x.binary(ir.OpFloorDiv, y)
	}
	return x.exactly(y, func(a, b *Tensor) *Tensor { return a.Div(b).Floor() })
}

// TruncDiv is trunc(t/u), of floats the exact quotient's.
func (t *Tensor) TruncDiv(u *Tensor) *Tensor {
	x, y := t.together("truncdiv", u)
	if x.DType().IsFloat() {
		return x.exactly(y, func(a, b *Tensor) *Tensor { return a.Div(b).Trunc() })
	}
	floor := x.binary(ir.OpFloorDiv, y)
	return x.roundedUp(y).Where(floor.AddScalar(1), floor)
}

// roundedUp says where trunc of an integer quotient is above its floor: it is
// negative and there is a remainder.
func (t *Tensor) roundedUp(u *Tensor) *Tensor {
	zero := t.scalar(0)
	signs := t.Lt(zero).Xor(u.Lt(zero))
	return signs.And(t.binary(ir.OpFloorMod, u).Ne(zero))
}

// FloorMod is t - u*floor(t/u): it has the sign of u. Floats are exact.
func (t *Tensor) FloorMod(u *Tensor) *Tensor {
	x, y := t.together("floormod", u)
	if !x.DType().IsFloat() {
		return x.binary(ir.OpFloorMod, y)
	}
	rest := x.TruncMod(y)
	zero := rest.scalar(0)
	other := rest.Ne(zero).And(rest.Lt(zero).Xor(y.Lt(zero)))
	return other.Where(rest.Add(y), rest)
}

// TruncMod is t - u*trunc(t/u), C's fmod: it has the sign of t. Floats are
// exact.
func (t *Tensor) TruncMod(u *Tensor) *Tensor {
	x, y := t.together("truncmod", u)
	if !x.DType().IsFloat() {
		rest := x.binary(ir.OpFloorMod, y)
		return x.roundedUp(y).Where(rest.Sub(y), rest)
	}
	return x.exactly(y, (*Tensor).remainder)
}

// exactly computes f in the next wider float format, in which a quotient of two
// floats is on the right side of every integer that it does not equal.
func (t *Tensor) exactly(u *Tensor, f func(a, b *Tensor) *Tensor) *Tensor {
	if !t.ok() || !u.ok() {
		return t.bad()
	}
	format := ir.F64
	if t.DType().IsFloat() && t.DType().Size() < 4 && t.DType() != ir.BF16 { // which has f32's range
		format = ir.F32
	}
	return f(t.Cast(format), u.Cast(format)).Cast(t.DType())
}

// remainder is fmod of floats in a wider format. The remainder of a division
// that is rounded to nearest is representable (fma gives it without error), so
// each step takes as many bits off the quotient as the format has: f16 in f32
// has quotients below 2^40, two steps of 24; f32 and bf16 in f64 below 2^277,
// six of 53. (Of f64 itself, quotients past 2^318 are not exact.)
func (t *Tensor) remainder(u *Tensor) *Tensor {
	steps := 6
	if t.DType() == ir.F32 {
		steps = 2
	}
	finite := u.IsFinite()
	divisor := finite.Where(u, u.scalar(1))
	rest := t
	for range steps {
		q := rest.Div(divisor).Trunc().Detach()
		rest = q.Neg().fma(divisor, rest)
	}
	// Rounding may have gone one too far: the sign tells.
	size := divisor.Abs()
	sign := t.signBit()
	low := sign.Where(t.scalar(0).Lt(rest), rest.Lt(t.scalar(0)))
	rest = low.Where(sign.Where(rest.Sub(size), rest.Add(size)), rest)
	// Less an infinite divisor nothing is taken off; NaN and infinities spoil.
	return finite.Where(rest, t.Add(t.Mul(t.scalar(0))).Add(u.nanOnly()))
}

// Pow is t**u. Integers wrap, and a negative exponent gives the truncated
// quotient. Floats follow C's pow: 1**u and t**0 are 1, a negative base needs a
// whole exponent. f32 is computed in f64.
func (t *Tensor) Pow(u *Tensor) *Tensor {
	x, y := t.together("pow", u)
	if !x.ok() {
		return t.bad()
	}
	if !x.DType().IsFloat() {
		return x.powInt(y)
	}
	return x.exactly(y, (*Tensor).powFloat)
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
