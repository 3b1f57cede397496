package optim

import (
	"tgc/ir"
	"tgc/nn"
	"tgc/tensor"
)

// Adagrad scales gradients by the sum of all their squares (Duchi et al. 2011):
//
//	g = gradient + WeightDecay*w
//	s = s + g^2, from Initial on
//	w = w - rate/(1 + (t-1)*RateDecay) * g / (sqrt(s) + Epsilon)
type Adagrad struct {
	RateDecay   float64
	Initial     float64
	Epsilon     float64
	WeightDecay float64
	Decay       Decay
}

// NewAdagrad has PyTorch's constants.
func NewAdagrad() Adagrad { return Adagrad{Epsilon: 1e-10} }

// Update is an Optimizer's.
func (o Adagrad) Update(state *nn.Parameters, w nn.Parameter, gradient *tensor.Tensor, now Moment) *tensor.Tensor {
	if o.WeightDecay != 0 && o.Decay.covers(w) {
		gradient = gradient.Add(w.Tensor.MulScalar(o.WeightDecay))
	}
	s := state.State("square", ir.F32, nn.Constant(o.Initial), w.Shape...)
	sum := now.keep(s, s.Add(gradient.Mul(gradient)))
	rate := now.Rate
	if o.RateDecay != 0 {
		rate = rate.Div(now.Count.AddScalar(-1).MulScalar(o.RateDecay).AddScalar(1))
	}
	return w.Tensor.Sub(gradient.Mul(spread(rate, w.Tensor)).Div(sum.Sqrt().AddScalar(o.Epsilon)))
}
