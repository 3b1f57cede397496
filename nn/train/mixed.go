package train

import (
	"tgc/ir"
	"tgc/nn"
	"tgc/tensor"
)

// Mixed is mixed precision (Micikevicius et al. 2018): matrix products take
// operands rounded to Compute, sums and master weights stay f32, and the loss is
// scaled so that small gradients survive in 16 bits.
type Mixed struct {
	Compute ir.DType // F16 or BF16; Void trains in f32
	Scale   float64  // first scale of the loss; 0 does not scale
	// Patience is how many steps in a row without an overflow double the scale,
	// 0 for 2,000. A step whose gradients are not finite halves it and changes no
	// weight.
	Patience int
}

// largestScale keeps the scaled loss itself away from infinity.
const largestScale = 1 << 24

// scaling is the state of the loss scale; all nil without one.
type scaling struct {
	scale    *tensor.Tensor // f32 [1]
	calm     *tensor.Tensor // f32 [1]: steps since the last change
	updates  *tensor.Tensor // f32 [1]: steps that changed weights
	patience int
}

func newScaling(m Mixed, state *nn.Parameters) scaling {
	if m.Scale == 0 {
		return scaling{}
	}
	patience := m.Patience
	if patience == 0 {
		patience = 2000
	}
	return scaling{
		scale:    state.State("scale", ir.F32, nn.Constant(m.Scale), 1),
		calm:     state.State("calm", ir.F32, nn.Zeros(), 1),
		updates:  state.State("updates", ir.F32, nn.Zeros(), 1),
		patience: patience,
	}
}

// undo divides gradients by the scale.
func (s scaling) undo(gradients []*tensor.Tensor) []*tensor.Tensor {
	if s.scale == nil {
		return gradients
	}
	out := make([]*tensor.Tensor, len(gradients))
	for i, gradient := range gradients {
		if gradient != nil {
			inverse := s.scale.Recip()
			if gradient.Rank() == 0 {
				inverse = inverse.Squeeze(0)
			}
			out[i] = gradient.Mul(inverse)
		}
	}
	return out
}

// follow changes the scale by the norm of the gradients, which is finite only if
// they are, and leaves all as it is in a step that ends no update. It returns the number of
// this update and whether to skip it.
func (s scaling) follow(norm, unfinished *tensor.Tensor) (count, skip *tensor.Tensor) {
	g := norm.Graph()
	zero := g.Scalar(ir.F32, 0)
	finite := norm.Sub(norm).Eq(zero) // inf-inf and NaN are NaN
	calm := finite.Where(s.calm.AddScalar(1), zero)
	grow := g.Scalar(ir.F32, float64(s.patience)).Le(calm)
	scale := grow.Where(s.scale.MulScalar(2).Minimum(g.Scalar(ir.F32, largestScale)), s.scale)
	scale = finite.Where(scale, s.scale.MulScalar(0.5).Maximum(g.Scalar(ir.F32, 1)))
	count = s.updates.AddScalar(1)
	g.Store(s.scale, unless(unfinished, s.scale, scale))
	g.Store(s.calm, unless(unfinished, s.calm, grow.Where(zero, calm)))
	skip = finite.Not()
	if unfinished != nil {
		skip = skip.Or(unfinished)
	}
	g.Store(s.updates, skip.Where(s.updates, count))
	return count, skip
}
