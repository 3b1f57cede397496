package tensor

import "tgc/ir"

// Backward says how an adjoint of a result reaches the inputs that the result was computed
// from: it returns one tensor for each input, of its shape and dtype, or nil for none.
type Backward func(result, adjoint *Tensor) []*Tensor

// backward is a Backward that is given the inputs, too: before a checkpoint they are computed
// a second time.
type backward = func(result, adjoint *Tensor, inputs []*Tensor) []*Tensor

// custom is what WithGradient was told of a node, or derived.
type custom struct {
	inputs   []*Tensor
	backward backward
}

// WithGradient is t with derivatives by inputs that backward gives, in place of those of the
// operations that t was computed by. t must be computed from the inputs alone; by other
// tensors there is no derivative. What backward builds is differentiated in turn, so that
// derivatives of derivatives are right if it is a function of result, adjoint and inputs.
func (t *Tensor) WithGradient(inputs []*Tensor, backward Backward) *Tensor {
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
	return t.Contiguous().Detach().derived(inputs, func(result, adjoint *Tensor, _ []*Tensor) []*Tensor { return backward(result, adjoint) })
}

// derived is t, whose derivatives by inputs backward gives: the same ones as those of the
// operations that t was computed by, or as the operation is documented to have, so that every
// tensor of the same expression may have them; but cheaper ones. Of what lies between the inputs
// and t no derivative can be asked for.
func (t *Tensor) derived(inputs []*Tensor, backward backward) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	for _, in := range inputs {
		if !in.ok() {
			return t.bad()
		}
		if in.node == t.node {
			return t // of one element, say: nothing was computed
		}
	}
	if t.graph.customs == nil {
		t.graph.customs = make(map[*ir.UOp]custom)
	}
	t.graph.customs[t.node] = custom{inputs, backward}
	return t
}

// CustomGradient is what WithGradient was told of a node, for package grad: backward takes the
// inputs, or what has their values, last.
func (g *Graph) CustomGradient(node *ir.UOp) (inputs []*Tensor, backward func(result, adjoint *Tensor, inputs []*Tensor) []*Tensor, ok bool) {
	c, ok := g.customs[node]
	return c.inputs, c.backward, ok
}
