package optim

import (
	"math"

	"tgc/ir"
	"tgc/nn"
	"tgc/tensor"
)

// Adam is Adam (Kingma and Ba 2015), with Decoupled AdamW (Loshchilov and Hutter
// 2019):
//
//	m = Beta1*m + (1-Beta1)*g, v = Beta2*v + (1-Beta2)*g^2
//	w = w - rate * (m/(1-Beta1^t)) / (sqrt(v/(1-Beta2^t)) + Epsilon)
//
// WeightDecay adds WeightDecay*w to the gradient; decoupled it subtracts
// rate*WeightDecay*w from the weight instead.
type Adam struct {
	Beta1, Beta2 float64
	Epsilon      float64
	WeightDecay  float64
	Decoupled    bool
	Decay        Decay
}

// NewAdam has the paper's constants.
func NewAdam() Adam { return Adam{Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8} }

// NewAdamW is NewAdam with decoupled weight decay.
func NewAdamW(decay float64) Adam {
	return Adam{Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, WeightDecay: decay, Decoupled: true}
}

// Update is an Optimizer's.
func (o Adam) Update(state *nn.Parameters, w nn.Parameter, gradient *tensor.Tensor, now Moment) *tensor.Tensor {
	decays := o.WeightDecay != 0 && o.Decay.covers(w)
	if decays && !o.Decoupled {
		gradient = gradient.Add(w.Tensor.MulScalar(o.WeightDecay))
	}
	m := state.State("mean", ir.F32, nn.Zeros(), w.Shape...)
	v := state.State("square", ir.F32, nn.Zeros(), w.Shape...)
	mean := now.keep(m, m.MulScalar(o.Beta1).Add(gradient.MulScalar(1-o.Beta1)))
	square := now.keep(v, v.MulScalar(o.Beta2).Add(gradient.Mul(gradient).MulScalar(1-o.Beta2)))

	first, second := correction(now.Count, o.Beta1), correction(now.Count, o.Beta2)
	scale := spread(now.Rate.Mul(first), w.Tensor)
	root := square.Mul(spread(second, w.Tensor)).Sqrt().AddScalar(o.Epsilon)
	next := w.Tensor.Sub(mean.Mul(scale).Div(root))
	if decays && o.Decoupled {
		next = next.Sub(w.Tensor.Mul(spread(now.Rate.MulScalar(o.WeightDecay), w.Tensor)))
	}
	return next
}

// correction is 1/(1-beta^t) as f32. The power is taken in f64: in f32 the
// difference would lose four digits in the first steps (beta = 0.999).
func correction(count *tensor.Tensor, beta float64) *tensor.Tensor {
	power := count.Cast(ir.F64).MulScalar(math.Log2(beta)).Exp2()
	return power.Neg().AddScalar(1).Recip().Cast(ir.F32)
}
