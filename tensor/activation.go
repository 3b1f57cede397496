package tensor

import (
	"math"
	"slices"
)

// Activation functions. f16 and bf16 are computed in f32 and rounded once.

// Sigmoid is the logistic function 1/(1+e**-t).
func (t *Tensor) Sigmoid() *Tensor {
	return t.widely(func(x *Tensor) *Tensor { return x.Neg().Exp().AddScalar(1).Recip() })
}

// Silu is t*sigmoid(t).
func (t *Tensor) Silu() *Tensor {
	return t.widely(func(x *Tensor) *Tensor { return x.Mul(x.Sigmoid()) })
}

// QuickGelu is t*sigmoid(1.702t), the fast approximation of Gelu.
func (t *Tensor) QuickGelu() *Tensor {
	return t.widely(func(x *Tensor) *Tensor { return x.Mul(x.MulScalar(1.702).Sigmoid()) })
}

// Gelu is t*Phi(t), Phi the normal distribution function (Hendrycks and Gimpel
// 2016).
func (t *Tensor) Gelu() *Tensor {
	return t.widely(func(x *Tensor) *Tensor {
		return x.MulScalar(0.5).Mul(x.MulScalar(math.Sqrt2 / 2).Erf().AddScalar(1))
	})
}

// GeluTanh is the tanh approximation of Gelu:
// t/2 * (1 + tanh(sqrt(2/pi)*(t + 0.044715 t^3))), written with the logistic
// function, because 1+tanh(y) = 2*sigmoid(2y) does not cancel.
func (t *Tensor) GeluTanh() *Tensor {
	return t.widely(func(x *Tensor) *Tensor {
		inner := x.Mul(x).MulScalar(0.044715).AddScalar(1).Mul(x).MulScalar(2 * math.Sqrt(2/math.Pi))
		return x.Mul(inner.Sigmoid())
	})
}

// Relu is t where it is above 0, else 0; NaN stays. Its derivative at 0 is 0:
// hence no maximum, which would share the adjoint of equal operands.
func (t *Tensor) Relu() *Tensor {
	if !t.ok() {
		return t.bad()
	}
	if !t.DType().IsFloat() {
		return t.ClampMin(0)
	}
	return t.Le(t.scalar(0)).Where(t.scalar(0), t)
}

// Relu6 is t within 0..6, NaN stays; its derivative at both ends is 0.
func (t *Tensor) Relu6() *Tensor {
	x := t.Relu()
	return x.scalar(6).Le(x).Where(x.scalar(6), x)
}

// LeakyRelu is t where it is above 0, else slope*t.
func (t *Tensor) LeakyRelu(slope float64) *Tensor {
	return t.widely(func(x *Tensor) *Tensor { return x.scalar(0).Lt(x).Where(x, x.MulScalar(slope)) })
}

// PRelu is t where it is above 0, else t times a slope that is learned: slope [C] has one for
// each channel of t [N, C, ..], or [1] one for all (He et al. 2015).
func (t *Tensor) PRelu(slope *Tensor) *Tensor {
	if !t.ok() || !slope.ok() {
		return t.bad()
	}
	one := slope.Rank() == 1 && slope.Dim(0).IsInt(1)
	if !t.DType().IsFloat() || !one && (t.Rank() < 2 || slope.Rank() != 1 || slope.Dim(0) != t.Dim(1)) {
		return t.graph.fail("", "%s with slopes %s; want floats [N C ..] with slopes [C] or [1]", t, slope)
	}
	if !one {
		slope = slope.Reshape(append([]int{-1}, slices.Repeat([]int{1}, t.Rank()-2)...)...)
	}
	return t.widely2("", slope, func(x, s *Tensor) *Tensor { return x.scalar(0).Lt(x).Where(x, x.Mul(s)) }).Cast(t.DType())
}

// Elu is t where it is above 0, else alpha*(e**t - 1).
func (t *Tensor) Elu(alpha float64) *Tensor { return t.elu(alpha, 1, 1) }

// Celu is t where it is above 0, else alpha*(e**(t/alpha) - 1).
func (t *Tensor) Celu(alpha float64) *Tensor { return t.elu(alpha, 1/alpha, 1) }

// The constants of Selu keep mean 0 and variance 1 from layer to layer
// (Klambauer et al., "Self-normalizing neural networks", 2017).
const (
	seluAlpha = 1.6732632423543772848170429916717
	seluScale = 1.0507009873554804934193349852946
)

// Selu is the scaled Elu that keeps activations normalised.
func (t *Tensor) Selu() *Tensor { return t.elu(seluAlpha, 1, seluScale) }

// elu is scale*t where t is above 0, else scale*alpha*(e**(inner*t) - 1).
func (t *Tensor) elu(alpha, inner, scale float64) *Tensor {
	return t.widely(func(x *Tensor) *Tensor {
		zero := x.scalar(0)
		above := zero.Lt(x)
		below := above.Where(zero, x).MulScalar(inner).Expm1().MulScalar(alpha * scale)
		return above.Where(x.MulScalar(scale), below)
	})
}

// Softplus is log(1+e**(beta*t))/beta, as max(x,0) + log1p(e**-|x|).
func (t *Tensor) Softplus(beta float64) *Tensor {
	return t.widely(func(x *Tensor) *Tensor {
		return x.MulScalar(beta).softplus().MulScalar(1 / beta)
	})
}

func (t *Tensor) softplus() *Tensor { return t.Maximum(t.scalar(0)).Add(t.Abs().Neg().Exp().Log1p()) }

// LogSigmoid is log(sigmoid(t)).
func (t *Tensor) LogSigmoid() *Tensor {
	return t.widely(func(x *Tensor) *Tensor { return x.Neg().softplus().Neg() })
}

// Mish is t*tanh(softplus(t)): tanh(log(1+e)) = n/(n+2) with n = e^2 + 2e, which
// is 1 past 20.
func (t *Tensor) Mish() *Tensor {
	return t.widely(func(x *Tensor) *Tensor {
		e := x.ClampMax(20).Exp()
		n := e.Mul(e.AddScalar(2))
		return x.Mul(n.Div(n.AddScalar(2)))
	})
}

// HardSigmoid is (t+3)/6 within 0..1.
func (t *Tensor) HardSigmoid() *Tensor {
	return t.widely(func(x *Tensor) *Tensor { return x.AddScalar(3).Relu6().MulScalar(1.0 / 6) })
}

// HardSwish is t*HardSigmoid(t).
func (t *Tensor) HardSwish() *Tensor {
	return t.widely(func(x *Tensor) *Tensor { return x.Mul(x.HardSigmoid()) })
}

// Softsign is t/(1+|t|).
func (t *Tensor) Softsign() *Tensor {
	return t.widely(func(x *Tensor) *Tensor { return x.Div(x.Abs().AddScalar(1)) })
}
