package grad

import (
	"tgc/ir"
	"tgc/tensor"
)

// Movement ops and other ops that keep values: the adjoint moves back.
var moveRules = map[ir.Op]rule{
	ir.OpReshape:    {"g in the shape of a", []adjoint{func(s *step) *tensor.Tensor { return reshaped(s.g, s.a().Shape()) }}},
	ir.OpPermute:    {"g with the inverse permutation", []adjoint{unpermuted}},
	ir.OpExpand:     {"the sum of g over the repeated axes", []adjoint{func(s *step) *tensor.Tensor { return sumTo(s.g, s.a().Shape()) }}},
	ir.OpPad:        {"the part of g inside the padding", []adjoint{unpadded}},
	ir.OpShrink:     {"g with zeros around", []adjoint{unshrunk}},
	ir.OpFlip:       {"g flipped", []adjoint{func(s *step) *tensor.Tensor { return make1(s.g, ir.OpFlip, s.node.Arg) }}},
	ir.OpContiguous: {"g, in a buffer of its own too", []adjoint{func(s *step) *tensor.Tensor { return s.g.Contiguous() }}},
	ir.OpCopy:       {"g", []adjoint{pass}},
	ir.OpAfter:      {"g", []adjoint{pass}},
}

func unpermuted(s *step) *tensor.Tensor {
	axes := s.node.Arg.(ir.AxesArg).List()
	inverse := make([]int, len(axes))
	for k, axis := range axes {
		inverse[axis] = k
	}
	return s.g.Permute(inverse...)
}

// unpadded cuts out the box that PAD put its source into. PAD and SHRINK hold a
// pair for each axis after source 0: (before, after) and (offset, extent).
func unpadded(s *step) *tensor.Tensor {
	shape := s.a().Shape()
	box := make([]*ir.UOp, 0, 2*len(shape))
	for k, extent := range shape {
		box = append(box, s.node.Src[1+2*k], extent)
	}
	return make1(s.g, ir.OpShrink, nil, box...)
}

// unshrunk puts the adjoint of a box back into zeros of the source's shape.
func unshrunk(s *step) *tensor.Tensor {
	a := s.graph.Arena()
	shape := s.a().Shape()
	margins := make([]*ir.UOp, 0, 2*len(shape))
	for k, full := range shape {
		offset, extent := s.node.Src[1+2*k], s.node.Src[2+2*k]
		margins = append(margins, offset, difference(a, difference(a, full, extent), offset))
	}
	return reshaped(make1(s.g, ir.OpPad, nil, margins...), shape)
}

// difference is x - y, which is 0 for equal ones, symbolic or not.
func difference(a *ir.Arena, x, y *ir.UOp) *ir.UOp {
	if x == y {
		return a.Index(0)
	}
	return a.Sub(x, y)
}
