package optim

import (
	"tgc/ir"
	"tgc/nn"
	"tgc/tensor"
)

// Lion goes by the sign of an interpolated momentum (Chen et al. 2023):
//
//	u = sign(Beta1*m + (1-Beta1)*g), m = Beta2*m + (1-Beta2)*g
//	w = w - rate*(u + WeightDecay*w)
//
// Its rate is 3 to 10 times smaller than Adam's, its decay as many times larger.
type Lion struct {
	Beta1, Beta2 float64
	WeightDecay  float64
	Decay        Decay
}

// NewLion has the paper's constants.
func NewLion(decay float64) Lion { return Lion{Beta1: 0.9, Beta2: 0.99, WeightDecay: decay} }

// Update is an Optimizer's. The direction reads the momentum of before the update, which the
// update overwrites: two kernels, where other optimisers take one.
func (o Lion) Update(state *nn.Parameters, w nn.Parameter, gradient *tensor.Tensor, now Moment) *tensor.Tensor {
	m := state.State("mean", ir.F32, nn.Zeros(), w.Shape...)
	direction := m.MulScalar(o.Beta1).Add(gradient.MulScalar(1 - o.Beta1)).Sign()
	now.keep(m, m.MulScalar(o.Beta2).Add(gradient.MulScalar(1-o.Beta2)))
	if o.WeightDecay != 0 && o.Decay.covers(w) {
		direction = direction.Add(w.Tensor.MulScalar(o.WeightDecay))
	}
	return w.Tensor.Sub(direction.Mul(spread(now.Rate, w.Tensor)))
}
