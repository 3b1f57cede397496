package grad

import (
	"tgc/ir"
	"tgc/tensor"
)

// Folds over axes. REDUCE_AXES keeps its axes with extent 1.
var reduceRules = map[ir.Op]rule{
	ir.OpReduceAxes: {"add: g repeated; max, min: g shared evenly by the elements equal to y; mul: g times the product of the other elements", []adjoint{reduced}},
	ir.OpScan:       {"the running sum of g from the end", []adjoint{scanned}},
}

func reduced(s *step) *tensor.Tensor {
	shape := s.a().Shape()
	g := s.g.ExpandDims(shape...)
	switch s.node.Arg.(ir.ReduceArg).Op {
	case ir.OpAdd:
		return g
	case ir.OpMax, ir.OpMin:
		return extremes(s)
	case ir.OpMul:
		return times(g, others(s.a(), axesOf(s.node)))
	}
	return s.graph.Fail("grad", "no rule for %s of %s", s.node.Op, s.node.Arg.(ir.ReduceArg).Op)
}

// axesOf lists the axes of a REDUCE_AXES.
func axesOf(u *ir.UOp) []int {
	axes := make([]int, len(u.Src)-1)
	for i, s := range u.Src[1:] {
		k, _ := s.Int()
		axes[i] = int(k)
	}
	return axes
}

// extremes shares the adjoint of a maximum or minimum evenly.
func extremes(s *step) *tensor.Tensor {
	shape := s.a().Shape()
	equal := s.a().Eq(s.y().ExpandDims(shape...)).Cast(s.node.DType)
	share := s.g.Div(equal.SumKeep(axesOf(s.node)...))
	return equal.Mul(share.ExpandDims(shape...))
}

// scanned sums from the end: element j is in every running sum from j on.
func scanned(s *step) *tensor.Tensor {
	axis := int(s.node.Arg.(ir.IntArg))
	return wide(s.g, func(t *tensor.Tensor) *tensor.Tensor { return t.Flip(axis).Cumsum(axis).Flip(axis) })
}
