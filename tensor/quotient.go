package tensor

import (
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
