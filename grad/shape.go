package grad

import (
	"slices"

	"tgc/ir"
	"tgc/tensor"
)

// filled is a constant tensor of a shape.
func filled(g *tensor.Graph, dtype ir.DType, v float64, shape []*ir.UOp) *tensor.Tensor {
	return spread(g.Scalar(dtype, v), shape)
}

// spread repeats t to a shape, a rank-0 constant too: as an operand of
// elementwise ops it fits everywhere, here its elements are counted.
func spread(t *tensor.Tensor, shape []*ir.UOp) *tensor.Tensor {
	if t.Rank() == 0 && len(shape) > 0 {
		t = unitAxes(t, len(shape))
	}
	return t.ExpandDims(shape...)
}

// unitAxes gives a rank-0 tensor axes of extent 1.
func unitAxes(t *tensor.Tensor, rank int) *tensor.Tensor {
	ones := slices.Repeat([]int{1}, rank)
	return t.Reshape(ones...)
}

// reshaped gives t a shape that has as many elements for all values of the
// symbolic sizes. Tensor.ReshapeDims cannot see that of extents which are
// different expressions.
func reshaped(t *tensor.Tensor, shape []*ir.UOp) *tensor.Tensor {
	if t.Node() == nil || slices.Equal(t.Shape(), shape) {
		return t
	}
	return make1(t, ir.OpReshape, nil, shape...)
}

// make1 makes a node of t's dtype with t first among its sources.
func make1(t *tensor.Tensor, op ir.Op, arg ir.Arg, src ...*ir.UOp) *tensor.Tensor {
	if t.Node() == nil {
		return t
	}
	all := append([]*ir.UOp{t.Node()}, src...)
	return t.Graph().Wrap(t.Graph().Arena().Make(op, t.DType(), arg, all...))
}

// wide runs a sum in f32 at least: narrower floats are cast there and back.
func wide(t *tensor.Tensor, sum func(t *tensor.Tensor) *tensor.Tensor) *tensor.Tensor {
	dtype := t.DType()
	if dtype.Size() >= ir.F32.Size() {
		return sum(t)
	}
	return sum(t.Cast(ir.F32)).Cast(dtype)
}

// sumTo adds t over the axes in which a shape of the same rank has extent 1 and
// t does not; over all axes when the shape is that of a scalar.
func sumTo(t *tensor.Tensor, shape []*ir.UOp) *tensor.Tensor {
	var axes []int
	for k, n := range t.Shape() {
		if len(shape) == 0 || shape[k].IsInt(1) && !n.IsInt(1) {
			axes = append(axes, k)
		}
	}
	if len(axes) == 0 {
		return t
	}
	if v, ok := sumOfUniform(t, axes); ok {
		return filled(t.Graph(), t.DType(), v, shape)
	}
	total := wide(t, func(t *tensor.Tensor) *tensor.Tensor { return t.SumKeep(axes...) })
	return reshaped(total, shape)
}
