package tensor

import (
	"math"

	"tgc/internal/lists"
	"tgc/ir"
)

// LogAddExp is log(e**t + e**u) without overflow.
func (t *Tensor) LogAddExp(u *Tensor) *Tensor {
	return t.widely2("logaddexp", u, func(x, y *Tensor) *Tensor {
		// The larger one and a logarithm of at most 2; of equal infinities, the one.
		most := x.Maximum(y)
		gap := x.Eq(y).Where(x.scalar(0), x.Sub(y).Abs())
		return most.Add(gap.Neg().Exp().Log1p())
	})
}

// NanToNumOptions say what NanToNum puts in place; nil is 0 for NaN, and for infinities the
// dtype's largest and least finite number.
type NanToNumOptions struct {
	NaN, PosInf, NegInf *float64
}

// NanToNum replaces NaN and infinities by numbers.
func (t *Tensor) NanToNum(options ...NanToNumOptions) *Tensor {
	o := optional(t, options)
	if !t.ok() || !t.DType().IsFloat() {
		return t
	}
	or := func(v *float64, other *Tensor) *Tensor {
		if v == nil {
			return other
		}
		return t.scalar(*v)
	}
	largest := t.largestFinite()
	inf := t.scalar(math.Inf(1))
	out := t.Eq(inf).Where(or(o.PosInf, largest), t)
	out = t.Eq(inf.Neg()).Where(or(o.NegInf, largest.Neg()), out)
	return t.IsNaN().Where(or(o.NaN, t.scalar(0)), out)
}

// largestFinite is the largest number of t's dtype below infinity.
func (t *Tensor) largestFinite() *Tensor {
	bits := ir.FloatBits(t.DType(), math.Inf(1)) - 1
	if t.DType() == ir.F8E4M3 { // has no infinity
		bits = 0x7e
	}
	return t.scalar(ir.FloatFromBits(t.DType(), bits))
}

// CloseOptions bound how far apart close elements are. The zero value is numpy's: relative
// 1e-5, absolute 1e-8, and NaN is close to nothing.
type CloseOptions struct {
	Relative, Absolute float64
	EqualNaN           bool // NaN is close to NaN
}

// IsClose says where |t-u| <= Absolute + Relative*|u|, as Bool. Infinities are close to
// themselves alone.
func (t *Tensor) IsClose(u *Tensor, options ...CloseOptions) *Tensor {
	o := optional(t, options)
	if o.Relative == 0 && o.Absolute == 0 {
		o.Relative, o.Absolute = 1e-5, 1e-8
	}
	x, y := t.together("isclose", u)
	x, y = x.number().wide(), y.number().wide()
	near := x.Sub(y).Abs().Le(y.Abs().MulScalar(o.Relative).AddScalar(o.Absolute))
	close := x.Eq(y).Or(near.And(y.IsFinite()))
	if o.EqualNaN {
		close = close.Or(x.IsNaN().And(y.IsNaN()))
	}
	return close
}

// AllClose is true where all elements are close: a Bool of rank 0, see IsClose.
func (t *Tensor) AllClose(u *Tensor, options ...CloseOptions) *Tensor {
	return t.IsClose(u, options...).All()
}

// erfinvFits are the coefficients of PPND16 (Wichura 1988, AS241) for the inverse error
// function, as package math of Go has them, lowest power first: |x| up to 0.85, then up to
// 1-2*exp(-25), then the rest.
var erfinvFits = [3]struct{ over, under []float64 }{
	{
		[]float64{1.1975323115670912564578e0, 4.7072688112383978012285e1, 6.9706266534389598238465e2, 4.8548868893843886794648e3, 1.6235862515167575384252e4, 2.3782041382114385731252e4, 1.1819493347062294404278e4, 8.8709406962545514830200e2},
		[]float64{1, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3, 2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3},
	},
	{
		[]float64{1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4},
		[]float64{1.4142135623730950488016887e0, 2.9036514445419946173133295e0, 2.3707661626024532365971225e0, 9.7547832001787427186894837e-1, 2.0945065210512749128288442e-1, 2.1494160384252876777097297e-2, 7.7441459065157709165577218e-4, 1.4859850019840355905497876e-9},
	},
	{
		[]float64{6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0, 2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7},
		[]float64{1.414213562373095048801689e0, 8.482908416595164588112026e-1, 1.936480946950659106176712e-1, 2.103693768272068968719679e-2, 1.112800997078859844711555e-3, 2.611088405080593625138020e-5, 2.010321207683943062279931e-7, 2.891024605872965461538222e-15},
	},
}

// Erfinv is the inverse of Erf: infinite at 1 and -1, NaN outside.
func (t *Tensor) Erfinv() *Tensor {
	return t.widely(func(x *Tensor) *Tensor {
		quotient := func(r *Tensor, fit int) *Tensor {
			return r.polynomial(erfinvFits[fit].over).Div(r.polynomial(erfinvFits[fit].under))
		}
		size := x.Abs()
		middle := size.Le(size.scalar(0.85))
		near := middle.Where(x, x.scalar(0))
		inner := near.Mul(quotient(near.Mul(near).MulScalar(-0.25).AddScalar(0.180625), 0))
		left := x.scalar(1).Sub(middle.Where(x.scalar(0.95), size)) // exact from 1/2 on
		inside := x.scalar(0).Lt(left)
		r := inside.Where(left, x.scalar(0.05)).Log().Neg().AddScalar(math.Ln2).Sqrt()
		far := x.scalar(5).Lt(r)
		outer := far.Where(quotient(r.AddScalar(-5), 2), quotient(r.AddScalar(-1.6), 1))
		end := left.Eq(x.scalar(0)).Where(x.scalar(math.Inf(1)), x.scalar(math.NaN()))
		outer = inside.Where(outer, end)
		return middle.Where(inner, x.Lt(x.scalar(0)).Where(outer.Neg(), outer)).Add(x.nanOnly())
	})
}

// shift is how far arguments of the gamma function are moved up to where its asymptotic
// series has a few terms; there they are precise to 1e-16.
const shift = 10

// Lgamma is log|gamma(t)|: infinite at 0 and at negative integers. It is computed in f64.
func (t *Tensor) Lgamma() *Tensor {
	return t.inDoubles(func(x *Tensor) *Tensor {
		low := x.Lt(x.scalar(0.5))
		up := low.Where(x.scalar(1).Sub(x), x)
		plain := up.lgammaAbove()
		// gamma(x)*gamma(1-x) = pi/sin(pi*x)
		other := x.sinPi(low).Abs().Log().Neg().AddScalar(math.Log(math.Pi)).Sub(plain)
		infinite := x.IsInf().Where(x.scalar(math.Inf(1)), x.scalar(0))
		return low.Where(other, plain).Add(infinite)
	})
}

// Digamma is the derivative of Lgamma: minus infinity at 0, NaN at negative integers. It
// is computed in f64.
func (t *Tensor) Digamma() *Tensor {
	return t.inDoubles(func(x *Tensor) *Tensor {
		low := x.Lt(x.scalar(0.5))
		up := low.Where(x.scalar(1).Sub(x), x)
		plain := up.digammaAbove()
		sin := x.sinPi(low)
		whole := sin.Eq(x.scalar(0))
		cot := x.cosPi(low).Div(whole.Where(x.scalar(1), sin))
		pole := x.Eq(x.scalar(0)).Where(x.scalar(math.Inf(-1)), x.scalar(math.NaN()))
		other := whole.Where(pole, plain.Sub(cot.MulScalar(math.Pi)))
		return low.Where(other, plain)
	})
}

// inDoubles computes f in f64 and rounds once.
func (t *Tensor) inDoubles(f func(x *Tensor) *Tensor) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	x := t.number()
	return f(x.Cast(ir.F64)).Cast(x.DType())
}

// lgammaAbove is Lgamma from 1/2 on: Stirling's series at t + shift, less the logarithm of
// the product between.
func (t *Tensor) lgammaAbove() *Tensor {
	t = t.IsInf().Where(t.scalar(1), t)
	large := t.scalar(1e15).Lt(t) // past it the product overflows, and is not needed
	z := large.Where(t, t.AddScalar(shift))
	base := large.Where(t.scalar(1), t)
	product := base
	for i := 1; i < shift; i++ {
		product = product.Mul(base.AddScalar(float64(i)))
	}
	between := large.Where(t.scalar(0), product.Log())
	inverse := z.Recip()
	series := inverse.Mul(inverse.Mul(inverse).polynomial([]float64{1. / 12, -1. / 360, 1. / 1260, -1. / 1680, 1. / 1188, -691. / 360360, 1. / 156}))
	stirling := z.AddScalar(-0.5).Mul(z.Log().AddScalar(-1)).AddScalar((math.Log(2*math.Pi) - 1) / 2)
	return stirling.Add(series).Sub(between)
}

// digammaAbove is Digamma from 1/2 on.
func (t *Tensor) digammaAbove() *Tensor {
	z := t.AddScalar(shift)
	between := t.Recip()
	for i := 1; i < shift; i++ {
		between = between.Add(t.AddScalar(float64(i)).Recip())
	}
	inverse := z.Recip()
	square := inverse.Mul(inverse)
	series := square.Mul(square.polynomial([]float64{1. / 12, -1. / 120, 1. / 252, -1. / 240, 1. / 132, -691. / 32760, 1. / 12}))
	return z.Log().Sub(inverse.MulScalar(0.5)).Sub(series).Sub(between)
}

// sinPi is sin(pi*t) up to its sign where mask holds, and 1 elsewhere: of what is left of t
// beside an integer.
func (t *Tensor) sinPi(mask *Tensor) *Tensor {
	r := mask.And(t.IsFinite()).Where(t.Sub(t.Round()), t.scalar(0.5))
	return r.Mul(r.Mul(r).polynomial(turnSeries(1)))
}

// cosPi is cos(pi*t) with the sign that sinPi leaves out.
func (t *Tensor) cosPi(mask *Tensor) *Tensor {
	r := mask.And(t.IsFinite()).Where(t.Sub(t.Round()), t.scalar(0))
	return r.Mul(r).polynomial(turnSeries(0))
}

// turnSeries are the coefficients of sin(pi*r)/r (from 1) or cos(pi*r) (from 0) in r^2:
// as many as f64 can tell for |r| up to 1/2.
func turnSeries(from int) []float64 {
	const terms = 13
	term := math.Pow(math.Pi, float64(from))
	return lists.Make(terms, func(i int) float64 {
		now := term
		n := float64(2*i + from)
		term *= -math.Pi * math.Pi / ((n + 1) * (n + 2))
		return now
	})
}
