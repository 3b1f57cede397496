package tensor

import "tgc/ir"

// Backward says how an adjoint of a result reaches the inputs that the result was computed
// from: it returns one tensor for each input, of its shape and dtype, or nil for none.
type Backward func(result, adjoint *Tensor) []*Tensor

// custom is what WithGradient was told of a node.
type custom struct {
	inputs   []*Tensor
	backward Backward
}

// WithGradient is t with derivatives by inputs that backward gives, in place of those of the
// operations that t was computed by. t must be computed from the inputs alone; by other
// tensors there is no derivative. What backward builds is differentiated in turn, so that
// derivatives of derivatives are right if it is a function of result, adjoint and inputs.
func (t *Tensor) WithGradient(inputs []*Tensor, backward Backward) *Tensor {
	return t.Contiguous().derivedBy(inputs, backward)
}

// derivedBy is WithGradient of a function of this package, which is not stored: where no derivative is asked for, its
// kernels are those of t.
func (t *Tensor) derivedBy(inputs []*Tensor, backward Backward) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	if backward == nil {
		return t.graph.fail("", "the function that says the derivative of %s is nil", t)
	}
	for _, in := range inputs {
		if !in.ok() || in.graph != t.graph {
			return t.bad()
		}
	}
	out := t.Detach().ReshapeDims(t.shape()...).Detach() // a node that only this makes
	if t.graph.customs == nil {
		t.graph.customs = make(map[*ir.UOp]custom)
	}
	t.graph.customs[out.node] = custom{inputs, backward}
	return out
}

// CustomGradient is what WithGradient was told of a node, for package grad.
func (g *Graph) CustomGradient(node *ir.UOp) (inputs []*Tensor, backward Backward, ok bool) {
	c, ok := g.customs[node]
	return c.inputs, c.backward, ok
}
