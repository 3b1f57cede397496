package layer

import (
	"tgc/nn"
	"tgc/tensor"
)

// Linear is x W^T + b. Weight is [out, in], Bias [out] or nil.
type Linear struct {
	Weight, Bias *tensor.Tensor
	Scope        *nn.Parameters // nil: no rounding of operands
}

// NewLinear registers weight and bias. The weight starts Kaiming-uniform with
// gain 1/sqrt(3), that is within 1/sqrt(in), as does the bias.
func NewLinear(p *nn.Parameters, in, out int) *Linear {
	l := NewProjection(p, in, out)
	l.Bias = p.Weight("bias", within(in), out)
	return l
}

// NewProjection is NewLinear without a bias.
func NewProjection(p *nn.Parameters, in, out int) *Linear {
	return &Linear{Weight: p.Weight("weight", within(in), out, in), Scope: p}
}

// Forward maps x [.., in] to [.., out].
func (l *Linear) Forward(x *tensor.Tensor) *tensor.Tensor {
	y := operand(l.Scope, x).Linear(operand(l.Scope, l.Weight))
	if l.Bias != nil {
		y = y.Add(l.Bias)
	}
	return y
}

// Embedding maps integers to rows of Weight [count, width].
type Embedding struct {
	Weight *tensor.Tensor
	Scope  *nn.Parameters
}

// NewEmbedding registers a table of normal rows with this deviation; 1 is
// PyTorch's, 0.02 suits a table that is also the output matrix.
func NewEmbedding(p *nn.Parameters, count, width int, deviation float64) *Embedding {
	return &Embedding{Weight: p.Weight("weight", nn.Normal(deviation), count, width), Scope: p}
}

// Forward maps integers [..] to rows [.., width].
func (e *Embedding) Forward(index *tensor.Tensor) *tensor.Tensor {
	return e.Weight.Gather(0, index)
}

// Logits uses the table as an output matrix: x [.., width] to [.., count].
func (e *Embedding) Logits(x *tensor.Tensor) *tensor.Tensor {
	return operand(e.Scope, x).Linear(operand(e.Scope, e.Weight))
}
