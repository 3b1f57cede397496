package tensor

import "tgc/ir"

// Wrap makes a tensor of a node of g's arena: the inverse of Tensor.Node. The
// node's sources must be nodes of the same arena, and it must keep the rules of
// ir.VerifyTensor; the shape is derived.
func (g *Graph) Wrap(node *ir.UOp) *Tensor {
	if node == nil {
		return &Tensor{graph: g}
	}
	return g.wrap(node)
}
