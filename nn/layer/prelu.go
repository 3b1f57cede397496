package layer

import (
	"tgc/nn"
	"tgc/tensor"
)

// PRelu is Tensor.PRelu with slopes [channels], or [1] for all channels.
type PRelu struct {
	Slope *tensor.Tensor
}

// NewPRelu registers slopes of 0.25, one for each of channels, which may be 1.
func NewPRelu(p *nn.Parameters, channels int) *PRelu {
	return &PRelu{Slope: p.Weight("weight", nn.Constant(0.25), channels)}
}

// Forward maps x [B, channels, ..], or any shape with one slope.
func (l *PRelu) Forward(x *tensor.Tensor) *tensor.Tensor { return x.PRelu(l.Slope) }
