package tensor

import (
	"math"

	"tgc/ir"
)

// Sum adds over axes (all when none is given); the axes are dropped.
func (t *Tensor) Sum(axes ...int) *Tensor { return t.reduce(ir.OpAdd, false, axes) }

// SumKeep is Sum that keeps the axes with extent 1.
func (t *Tensor) SumKeep(axes ...int) *Tensor { return t.reduce(ir.OpAdd, true, axes) }

// Max is the largest over axes; NaN if any is.
func (t *Tensor) Max(axes ...int) *Tensor { return t.reduce(ir.OpMax, false, axes) }

// MaxKeep is Max that keeps the axes with extent 1.
func (t *Tensor) MaxKeep(axes ...int) *Tensor { return t.reduce(ir.OpMax, true, axes) }

// Min is the smallest over axes; NaN if any is.
func (t *Tensor) Min(axes ...int) *Tensor { return t.reduce(ir.OpMin, false, axes) }

// Prod multiplies over axes.
func (t *Tensor) Prod(axes ...int) *Tensor { return t.reduce(ir.OpMul, false, axes) }

// MeanKeep is the mean over one axis of constant extent, kept with extent 1.
func (t *Tensor) MeanKeep(axis int) *Tensor {
	return t.SumKeep(axis).MulScalar(1 / float64(t.Extent(axis)))
}

// Cumsum is the inclusive running sum along an axis.
func (t *Tensor) Cumsum(axis int) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	k, ok := normalAxis(axis, t.Rank())
	if !ok {
		return t.graph.fail("cumsum", "axis %d of %s", axis, t)
	}
	return t.make(ir.OpScan, t.DType(), ir.IntArg(k))
}

// Softmax along an axis: exp(t-max) over its sum.
func (t *Tensor) Softmax(axis int) *Tensor {
	e := t.Sub(t.MaxKeep(axis)).Exp()
	return e.Mul(e.SumKeep(axis).Recip())
}

// Argmax is the index (i32) of the largest element along an axis, the first of
// equals; the axis is dropped.
func (t *Tensor) Argmax(axis int) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	k, ok := normalAxis(axis, t.Rank())
	if !ok {
		return t.graph.fail("argmax", "axis %d of %s", axis, t)
	}
	index := t.graph.axisIota(ir.I32, t.shape(), k)
	none := t.graph.Scalar(ir.I32, math.MaxInt32)
	return t.Eq(t.MaxKeep(k)).Where(index, none).Min(k)
}

// axisIota is 0..n-1 along one axis, extent 1 on the others.
func (g *Graph) axisIota(dtype ir.DType, shape []*ir.UOp, axis int) *Tensor {
	dims := make([]*ir.UOp, len(shape))
	for i := range dims {
		dims[i] = g.arena.Index(1)
	}
	dims[axis] = shape[axis]
	return g.Iota(dtype, shape[axis]).ReshapeDims(dims...)
}

func (t *Tensor) reduce(op ir.Op, keep bool, axes []int) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	rank := t.Rank()
	if len(axes) == 0 {
		for k := range rank {
			axes = append(axes, k)
		}
	}
	gone := make([]bool, rank)
	for _, axis := range axes {
		k, ok := normalAxis(axis, rank)
		if !ok || gone[k] {
			return t.graph.fail("reduce_"+op.String(), "axes %v of %s", axes, t)
		}
		gone[k] = true
	}
	src := []*ir.UOp{}
	var rest []*ir.UOp
	for k, dim := range t.shape() {
		if gone[k] {
			src = append(src, t.graph.arena.Index(int64(k)))
		} else {
			rest = append(rest, dim)
		}
	}
	if len(src) == 0 {
		return t
	}
	out := t.make(ir.OpReduceAxes, t.DType(), ir.ReduceArg{Op: op, N: 1}, src...)
	if keep {
		return out
	}
	return out.ReshapeDims(rest...)
}
