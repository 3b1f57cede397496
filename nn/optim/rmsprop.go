package optim

import (
	"tgc/ir"
	"tgc/nn"
	"tgc/tensor"
)

// RMSprop scales gradients by a running mean of their squares (Tieleman and Hinton 2012, in
// PyTorch's form):
//
//	g = gradient + WeightDecay*w
//	v = Alpha*v + (1-Alpha)*g^2
//	u = g / (sqrt(v) + Epsilon), with Centered sqrt(v - mean(g)^2)
//	w = w - rate*u, with Momentum b = Momentum*b + u and w - rate*b
type RMSprop struct {
	Alpha       float64
	Epsilon     float64
	Momentum    float64
	Centered    bool
	WeightDecay float64
	Decay       Decay
}

// NewRMSprop has PyTorch's constants.
func NewRMSprop() RMSprop { return RMSprop{Alpha: 0.99, Epsilon: 1e-8} }

// Update is an Optimizer's.
func (o RMSprop) Update(state *nn.Parameters, w nn.Parameter, gradient *tensor.Tensor, now Moment) *tensor.Tensor {
	if o.WeightDecay != 0 && o.Decay.covers(w) {
		gradient = gradient.Add(w.Tensor.MulScalar(o.WeightDecay))
	}
	square := now.running(state, "square", w, o.Alpha, gradient.Mul(gradient))
	if o.Centered {
		mean := now.running(state, "mean", w, o.Alpha, gradient)
		square = square.Sub(mean.Mul(mean)).ClampMin(0) // rounding must not make a root of less
	}
	direction := gradient.Div(square.Sqrt().AddScalar(o.Epsilon))
	if o.Momentum != 0 {
		velocity := state.State("velocity", ir.F32, nn.Zeros(), w.Shape...)
		direction = now.keep(velocity, velocity.MulScalar(o.Momentum).Add(direction))
	}
	return w.Tensor.Sub(direction.Mul(spread(now.Rate, w.Tensor)))
}

// running keeps beta*m + (1-beta)*x of a value x of each update.
func (now Moment) running(state *nn.Parameters, name string, w nn.Parameter, beta float64, x *tensor.Tensor) *tensor.Tensor {
	m := state.State(name, ir.F32, nn.Zeros(), w.Shape...)
	return now.keep(m, m.MulScalar(beta).Add(x.MulScalar(1-beta)))
}
