package optim

import (
	"tgc/ir"
	"tgc/nn"
	"tgc/tensor"
)

// SGD is stochastic gradient descent with momentum (Sutskever et al. 2013, in
// PyTorch's form):
//
//	g = gradient + WeightDecay*w
//	v = Momentum*v + g
//	w = w - rate*v, with Nesterov w - rate*(g + Momentum*v)
type SGD struct {
	Momentum    float64
	Nesterov    bool
	WeightDecay float64
	Decay       Decay
}

// Update is an Optimizer's.
func (o SGD) Update(state *nn.Parameters, w nn.Parameter, gradient *tensor.Tensor, now Moment) *tensor.Tensor {
	if o.WeightDecay != 0 && o.Decay.covers(w) {
		gradient = gradient.Add(w.Tensor.MulScalar(o.WeightDecay))
	}
	direction := gradient
	if o.Momentum != 0 {
		velocity := state.State("velocity", ir.F32, nn.Zeros(), w.Shape...)
		direction = now.keep(velocity, velocity.MulScalar(o.Momentum).Add(gradient))
		if o.Nesterov {
			direction = gradient.Add(direction.MulScalar(o.Momentum))
		}
	}
	return w.Tensor.Sub(direction.Mul(spread(now.Rate, w.Tensor)))
}

// spread views a tensor [1] so that it broadcasts to x, whatever its rank.
func spread(one, x *tensor.Tensor) *tensor.Tensor {
	if x.Rank() == 0 {
		return one.Squeeze(0)
	}
	return one
}
