package optim

import (
	"math"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/nn"
	"tgc/tensor"
)

// Muon gives matrices the momentum of their gradients with all singular values moved toward
// one (Jordan et al. 2024):
//
//	m = Momentum*m + g, u = orthogonal(g + Momentum*m)
//	w = w - rate*WeightDecay*w - rate*sqrt(max(1, rows/columns))*u
//
// Axes after the first count as columns. Values of one axis or none, and those that Except
// names, are left to Others.
type Muon struct {
	Momentum    float64
	Steps       int // of the Newton-Schulz iteration
	WeightDecay float64
	Others      Optimizer
	Except      func(w nn.Parameter) bool // embeddings and output matrices, say; nil: none
}

// NewMuon has the paper's constants, and AdamW for what is no matrix.
func NewMuon(decay float64) Muon {
	return Muon{Momentum: 0.95, Steps: 5, WeightDecay: decay, Others: NewAdamW(decay)}
}

// Update is an Optimizer's.
func (o Muon) Update(state *nn.Parameters, w nn.Parameter, gradient *tensor.Tensor, now Moment) *tensor.Tensor {
	if len(w.Shape) < 2 || o.Except != nil && o.Except(w) {
		if o.Others == nil {
			return w.Tensor
		}
		return o.Others.Update(state, w, gradient, now)
	}
	m := state.State("velocity", ir.F32, nn.Zeros(), w.Shape...)
	velocity := now.keep(m, m.MulScalar(o.Momentum).Add(gradient))
	direction := gradient.Add(velocity.MulScalar(o.Momentum))

	rows, columns := w.Shape[0], lists.Product(w.Shape[1:])
	scale := math.Sqrt(math.Max(1, float64(rows)/math.Max(float64(columns), 1)))
	direction = orthogonal(direction.Reshape(rows, columns), o.Steps).MulScalar(scale).Reshape(w.Shape...)
	next := w.Tensor
	if o.WeightDecay != 0 {
		next = next.Sub(next.Mul(spread(now.Rate.MulScalar(o.WeightDecay), next)))
	}
	return next.Sub(direction.Mul(spread(now.Rate, next)))
}

// The quintic of the Newton-Schulz iteration: of a singular value s it makes
// first*s + third*s^3 + fifth*s^5, which in five steps takes 0.001..1 to about 0.7..1.2.
const first, third, fifth = 3.4445, -4.7750, 2.0315

// orthogonal moves the singular values of a matrix toward one.
func orthogonal(x *tensor.Tensor, steps int) *tensor.Tensor {
	wide := x.Extent(0) <= x.Extent(1)
	if !wide {
		x = x.Transpose(0, 1)
	}
	norm := x.Mul(x).Sum().Sqrt().AddScalar(1e-7)
	x = x.Mul(norm.Recip().Reshape(1, 1))
	for range steps {
		a := x.MatMul(x.Transpose(0, 1))
		b := a.MulScalar(third).Add(a.MatMul(a).MulScalar(fifth))
		x = x.MulScalar(first).Add(b.MatMul(x))
	}
	if !wide {
		x = x.Transpose(0, 1)
	}
	return x
}
