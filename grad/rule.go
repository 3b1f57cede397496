package grad

import (
	"tgc/ir"
	"tgc/tensor"
)

// rule is how one op hands its result's adjoint on.
type rule struct {
	// formula gives dL/d(source) with g = dL/d(result), sources a, b, c and
	// result y.
	formula string
	by      []adjoint // for each source in turn; none where it is a constant
}

// adjoint is the part of a step's adjoint that reaches one source, with the
// source's shape and dtype; nil is zero.
type adjoint func(s *step) *tensor.Tensor

// step is one node that is being passed on the way back.
type step struct {
	reverse *reverse
	graph   *tensor.Graph
	node    *ir.UOp
	g       *tensor.Tensor // dL/d(node): the node's dtype and shape
}

// src is source i of the node; a, b and y are the first, the second and the
// result. Before a checkpoint they are computed again.
func (s *step) src(i int) *tensor.Tensor { return s.value(s.node.Src[i]) }
func (s *step) a() *tensor.Tensor        { return s.src(0) }
func (s *step) b() *tensor.Tensor        { return s.src(1) }
func (s *step) y() *tensor.Tensor        { return s.value(s.node) }

func (s *step) value(u *ir.UOp) *tensor.Tensor {
	return s.graph.Wrap(s.reverse.forward(s.node, u))
}

// scalar is a constant of the node's dtype.
func (s *step) scalar(v float64) *tensor.Tensor { return s.graph.Scalar(s.node.DType, v) }

// pass hands the adjoint on as it is.
func pass(s *step) *tensor.Tensor { return s.g }

// rules holds the rule of every op that has one; through all others no
// gradient flows.
var rules = func() (table [ir.NumOps]rule) {
	for _, part := range []map[ir.Op]rule{scalarRules, moveRules, reduceRules, indexRules} {
		for op, r := range part {
			table[op] = r
		}
	}
	return table
}()
