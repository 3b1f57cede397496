package layer

import (
	"tgc/nn"
	"tgc/tensor"
)

// MLP is a feed-forward network: Up, an activation, Down.
type MLP struct {
	Up, Down   *Linear
	Activation func(x *tensor.Tensor) *tensor.Tensor
}

// NewMLP registers up and down, with biases; the activation is GELU.
func NewMLP(p *nn.Parameters, width, hidden int) *MLP {
	return &MLP{
		Up: NewLinear(p.In("up"), width, hidden), Down: NewLinear(p.In("down"), hidden, width),
		Activation: (*tensor.Tensor).Gelu,
	}
}

// Forward maps x [.., width] to [.., width].
func (l *MLP) Forward(x *tensor.Tensor) *tensor.Tensor {
	return l.Down.Forward(l.Activation(l.Up.Forward(x)))
}

// SwiGLU is the gated feed-forward network of LLaMA: down(silu(gate) * up)
// (Shazeer 2020).
type SwiGLU struct{ Gate, Up, Down *Linear }

// NewSwiGLU registers gate, up and down, without biases.
func NewSwiGLU(p *nn.Parameters, width, hidden int) *SwiGLU {
	return &SwiGLU{
		Gate: NewProjection(p.In("gate"), width, hidden),
		Up:   NewProjection(p.In("up"), width, hidden),
		Down: NewProjection(p.In("down"), hidden, width),
	}
}

// Forward maps x [.., width] to [.., width].
func (l *SwiGLU) Forward(x *tensor.Tensor) *tensor.Tensor {
	return l.Down.Forward(l.Gate.Forward(x).Silu().Mul(l.Up.Forward(x)))
}
