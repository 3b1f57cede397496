package tensor

import (
	"math"

	"tgc/ir"
)

// Functions of real numbers. Integers are taken as f32; f16 and bf16 are
// computed in f32 and rounded once. Errors are a few units in the last place
// unless a function says more; NaN gives NaN. All are composed of primitive
// ops, so that they fuse and differentiate like anything else: a branch that
// Where refuses is kept finite, or its derivative would spoil the other's.

// Recip is 1/t.
func (t *Tensor) Recip() *Tensor { return t.unary(ir.OpRecip) }

// Sqrt is the square root.
func (t *Tensor) Sqrt() *Tensor { return t.unary(ir.OpSqrt) }

// Rsqrt is 1/sqrt(t).
func (t *Tensor) Rsqrt() *Tensor { return t.unary(ir.OpRsqrt) }

// Exp2 is 2**t.
func (t *Tensor) Exp2() *Tensor { return t.unary(ir.OpExp2) }

// Log2 is the binary logarithm.
func (t *Tensor) Log2() *Tensor { return t.unary(ir.OpLog2) }

// Floor rounds toward minus infinity.
func (t *Tensor) Floor() *Tensor { return t.round(ir.OpFloor) }

// Ceil rounds toward plus infinity.
func (t *Tensor) Ceil() *Tensor {
	if !t.ok() || !t.DType().IsFloat() {
		return t
	}
	return t.Neg().Floor().Neg()
}

// Trunc rounds toward zero.
func (t *Tensor) Trunc() *Tensor { return t.round(ir.OpTrunc) }

// Round rounds to the nearest integer, ties to even.
func (t *Tensor) Round() *Tensor { return t.round(ir.OpRound) }

// round leaves integers as they are.
func (t *Tensor) round(op ir.Op) *Tensor {
	if !t.ok() || !t.DType().IsFloat() {
		return t
	}
	return t.unary(op)
}

// IsNaN is true for NaN.
func (t *Tensor) IsNaN() *Tensor { return t.Ne(t) }

// IsInf is true for either infinity.
func (t *Tensor) IsInf() *Tensor {
	if !t.ok() {
		return t.bad()
	}
	return t.number().Abs().Eq(t.number().scalar(math.Inf(1)))
}

// IsFinite is true for all but infinities and NaN.
func (t *Tensor) IsFinite() *Tensor {
	if !t.ok() {
		return t.bad()
	}
	return t.number().Abs().Lt(t.number().scalar(math.Inf(1)))
}

// Exp is e**t.
func (t *Tensor) Exp() *Tensor {
	return t.widely(func(x *Tensor) *Tensor { return x.MulScalar(math.Log2E).Exp2() })
}

// Expm1 is e**t - 1, precise near 0 too: there the series.
func (t *Tensor) Expm1() *Tensor {
	return t.widely(func(x *Tensor) *Tensor {
		small := x.Abs().Lt(x.scalar(0.5))
		near := small.Where(x, x.scalar(0))
		series := make([]float64, x.fits().expTerms)
		term := 1.0
		for i := range series {
			term /= float64(i + 1)
			series[i] = term
		}
		return small.Where(near.Mul(near.polynomial(series)), x.Exp().AddScalar(-1))
	})
}

// Log is the natural logarithm.
func (t *Tensor) Log() *Tensor {
	return t.widely(func(x *Tensor) *Tensor { return x.Log2().MulScalar(math.Ln2) })
}

// Log10 is the decimal logarithm.
func (t *Tensor) Log10() *Tensor {
	return t.widely(func(x *Tensor) *Tensor { return x.Log2().MulScalar(math.Ln2 / math.Ln10) })
}

// Log1p is log(1+t), precise near 0 too: what rounding 1+t lost is added to
// first order.
func (t *Tensor) Log1p() *Tensor {
	return t.widely(func(x *Tensor) *Tensor {
		sum := x.AddScalar(1)
		lost := x.Sub(sum.AddScalar(-1))
		plain := x.Abs().Lt(x.scalar(math.Inf(1))).And(x.scalar(-1).Lt(x))
		over := plain.Where(sum, x.scalar(1))
		return sum.Log().Add(plain.Where(lost, x.scalar(0)).Div(over))
	})
}

// Sin is the sine of radians: absolute error 2e-7 up to 1e5, then growing.
func (t *Tensor) Sin() *Tensor { return t.unary(ir.OpSin) }

// Cos is the cosine of radians, with the error of Sin. The odd multiple of pi/2
// that is nearest is taken off in three steps (Cody and Waite 1980):
// cos(r + (2n+1)*pi/2) = -sin(r) * (-1)^n.
func (t *Tensor) Cos() *Tensor {
	return t.widely(func(x *Tensor) *Tensor {
		n := x.MulScalar(1 / math.Pi).AddScalar(-0.5).Round()
		odd := n.Add(n).AddScalar(1)
		rest := x
		for _, part := range x.fits().halfPi {
			rest = odd.fma(x.scalar(-part), rest)
		}
		parity := n.Sub(n.MulScalar(0.5).Floor().MulScalar(2)) // 0 or 1
		return rest.Sin().Mul(parity.MulScalar(2).AddScalar(-1))
	})
}

// fma is t*u+v rounded once.
func (t *Tensor) fma(u, v *Tensor) *Tensor {
	if !t.ok() || !u.ok() || !v.ok() {
		return t.bad()
	}
	shape, ok := t.graph.broadcast(t.shape(), u.shape(), v.shape())
	if !ok || t.DType() != u.DType() || t.DType() != v.DType() {
		return t.graph.fail("fma", "%s, %s and %s do not fit", t, u, v)
	}
	return t.expandTo(shape).make(ir.OpFma, t.DType(), nil, u.expandTo(shape).node, v.expandTo(shape).node)
}

// Tan is the tangent of radians.
func (t *Tensor) Tan() *Tensor {
	return t.widely(func(x *Tensor) *Tensor { return x.Sin().Div(x.Cos()) })
}

// Asin is the arc sine; NaN outside -1..1.
func (t *Tensor) Asin() *Tensor {
	return t.widely(func(x *Tensor) *Tensor { return x.Atan2(x.legOfUnit()) })
}

// Acos is the arc cosine; NaN outside -1..1.
func (t *Tensor) Acos() *Tensor {
	return t.widely(func(x *Tensor) *Tensor { return x.legOfUnit().Atan2(x) })
}

// legOfUnit is sqrt(1-t^2), precise near 1.
func (t *Tensor) legOfUnit() *Tensor {
	one := t.scalar(1)
	return one.Sub(t).Mul(one.Add(t)).Sqrt()
}

// Atan is the arc tangent.
func (t *Tensor) Atan() *Tensor {
	return t.widely(func(x *Tensor) *Tensor {
		steep := x.scalar(1).Lt(x.Abs())
		ratio := steep.Where(steep.Where(x, x.scalar(1)).Recip(), x)
		arc := ratio.arcOfSlope()
		return steep.Where(x.Sign().MulScalar(math.Pi/2).Sub(arc), arc)
	})
}

// arcOfSlope is atan(t) for |t| <= 1.
func (t *Tensor) arcOfSlope() *Tensor {
	square := t.Mul(t)
	return t.Add(t.Mul(square).Mul(square.polynomial(t.fits().atan)))
}

// Atan2 is the angle of the point (u, t) from the positive u axis, in -pi..pi,
// as C's atan2(t, u).
func (t *Tensor) Atan2(u *Tensor) *Tensor {
	return t.widely2("atan2", u, func(y, x *Tensor) *Tensor {
		zero := x.scalar(0)
		// Two infinities count as equal, as 1 and 1 are.
		both := y.IsInf().And(x.IsInf())
		y, x = both.Where(y.Sign(), y), both.Where(x.Sign(), x)
		steep := x.Abs().Lt(y.Abs())
		over, under := steep.Where(x.Neg(), y), steep.Where(y, x)
		arc := over.Div(under.Eq(zero).Where(x.scalar(1), under)).arcOfSlope()
		// A steep angle is measured from the nearer half of the y axis, any
		// other from that of the x axis.
		side := y.signBit().Where(x.scalar(-1), x.scalar(1))
		base := steep.Where(side.MulScalar(math.Pi/2), x.signBit().Where(side.MulScalar(math.Pi), zero))
		return base.Add(arc)
	})
}

// signBit is true for negative floats, -0 included.
func (t *Tensor) signBit() *Tensor {
	word := ir.I32
	if t.DType() == ir.F64 {
		word = ir.I64
	}
	bits := t.Bitcast(word)
	return bits.Lt(bits.scalar(0))
}

// Sinh is the hyperbolic sine: (e^t - e^-t)/2, near 0 by Expm1, whose halves do
// not cancel.
func (t *Tensor) Sinh() *Tensor {
	return t.widely(func(x *Tensor) *Tensor {
		small := x.Abs().Lt(x.scalar(1))
		near := small.Where(x, x.scalar(0))
		e := near.Expm1()
		both := e.Add(e.Div(e.AddScalar(1))).MulScalar(0.5)
		return small.Where(both, x.halfExp().Sub(x.Neg().halfExp()))
	})
}

// Cosh is the hyperbolic cosine.
func (t *Tensor) Cosh() *Tensor {
	return t.widely(func(x *Tensor) *Tensor { return x.halfExp().Add(x.Neg().halfExp()) })
}

// halfExp is e^t/2 without the overflow of e^t.
func (t *Tensor) halfExp() *Tensor { return t.MulScalar(math.Log2E).AddScalar(-1).Exp2() }

// Tanh is the hyperbolic tangent: e/(e+2) with e = e^2t - 1. It is +-1 past 20.
func (t *Tensor) Tanh() *Tensor {
	return t.widely(func(x *Tensor) *Tensor {
		e := x.Clamp(-20, 20).MulScalar(2).Expm1()
		return e.Div(e.AddScalar(2))
	})
}

// Asinh is the inverse of Sinh: up to 1 by 2*atanh(t/(1+sqrt(1+t^2))), past it
// sign(t)*(log|t| + log(1+sqrt(1+1/t^2))), which does not overflow.
func (t *Tensor) Asinh() *Tensor {
	return t.widely(func(x *Tensor) *Tensor {
		one := x.scalar(1)
		small := x.Abs().Lt(one)
		near := small.Where(x, x.scalar(0))
		inner := near.Div(near.Mul(near).AddScalar(1).Sqrt().AddScalar(1)).Atanh().MulScalar(2)
		size := small.Where(one, x.Abs())
		root := size.Mul(size).Recip().AddScalar(1).Sqrt()
		outer := size.Log().Add(root.AddScalar(1).Log())
		return small.Where(inner, x.Sign().Mul(outer).Add(x.nanOnly()))
	})
}

// nanOnly is NaN where t is, else 0: for results that lose it.
func (t *Tensor) nanOnly() *Tensor { return t.IsNaN().Where(t.scalar(math.NaN()), t.scalar(0)) }

// Acosh is the inverse of Cosh; NaN below 1.
func (t *Tensor) Acosh() *Tensor {
	return t.widely(func(x *Tensor) *Tensor {
		large := x.scalar(1e8).Lt(x) // there sqrt(x^2-1) is x
		above := large.Where(x.scalar(1), x.AddScalar(-1))
		near := above.Add(above.Sqrt().Mul(above.AddScalar(2).Sqrt())).Log1p()
		return large.Where(x.Log().AddScalar(math.Ln2), near)
	})
}

// Atanh is the inverse of Tanh: infinite at 1 and -1, NaN outside.
func (t *Tensor) Atanh() *Tensor {
	return t.widely(func(x *Tensor) *Tensor { return x.Log1p().Sub(x.Neg().Log1p()).MulScalar(0.5) })
}

// Erf is the error function 2/sqrt(pi) * integral of exp(-s^2) from 0 to t.
func (t *Tensor) Erf() *Tensor {
	return t.widely(func(x *Tensor) *Tensor {
		one := x.scalar(1)
		small := x.Abs().Lt(one)
		near := small.Where(x, x.scalar(0))
		inner := near.Mul(near.Mul(near).polynomial(x.fits().erf))
		size := small.Where(one, x.Abs().ClampMax(6)) // erf(6) is 1 in f64
		place := size.AddScalar(-2).Div(size.AddScalar(2))
		tail := size.Mul(size).Neg().Exp().Mul(place.polynomial(x.fits().erfc))
		return small.Where(inner, x.Sign().Mul(one.Sub(tail)).Add(x.nanOnly()))
	})
}
