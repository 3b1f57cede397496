package tensor

import (
	"fmt"
	"math"
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
)

// Reductions fold axes (all when none is given) into one element each. Plain
// names drop the axes, those with Keep leave them with extent 1. f16 and bf16
// accumulate in f32; integers in their own dtype, which wraps: Cast first for a
// wider one. Empty axes give the fold's identity.

// Sum adds; on Bool it is Any.
func (t *Tensor) Sum(axes ...int) *Tensor { return t.reduce(ir.OpAdd, false, axes) }

// SumKeep is Sum that keeps the axes.
func (t *Tensor) SumKeep(axes ...int) *Tensor { return t.reduce(ir.OpAdd, true, axes) }

// Prod multiplies.
func (t *Tensor) Prod(axes ...int) *Tensor { return t.reduce(ir.OpMul, false, axes) }

// ProdKeep is Prod that keeps the axes.
func (t *Tensor) ProdKeep(axes ...int) *Tensor { return t.reduce(ir.OpMul, true, axes) }

// Max is the largest; NaN if any is.
func (t *Tensor) Max(axes ...int) *Tensor { return t.reduce(ir.OpMax, false, axes) }

// MaxKeep is Max that keeps the axes.
func (t *Tensor) MaxKeep(axes ...int) *Tensor { return t.reduce(ir.OpMax, true, axes) }

// Min is the smallest; NaN if any is.
func (t *Tensor) Min(axes ...int) *Tensor { return t.reduce(ir.OpMin, false, axes) }

// MinKeep is Min that keeps the axes.
func (t *Tensor) MinKeep(axes ...int) *Tensor { return t.reduce(ir.OpMin, true, axes) }

// Any is true where one element is not zero.
func (t *Tensor) Any(axes ...int) *Tensor { return t.Truth().reduce(ir.OpMax, false, axes) }

// AnyKeep is Any that keeps the axes.
func (t *Tensor) AnyKeep(axes ...int) *Tensor { return t.Truth().reduce(ir.OpMax, true, axes) }

// All is true where no element is zero.
func (t *Tensor) All(axes ...int) *Tensor { return t.Truth().reduce(ir.OpMin, false, axes) }

// AllKeep is All that keeps the axes.
func (t *Tensor) AllKeep(axes ...int) *Tensor { return t.Truth().reduce(ir.OpMin, true, axes) }

// Mean is the sum over the number of elements; NaN over none.
func (t *Tensor) Mean(axes ...int) *Tensor { return t.dropped(axes, (*Tensor).MeanKeep) }

// MeanKeep is Mean that keeps the axes.
func (t *Tensor) MeanKeep(axes ...int) *Tensor {
	return t.widely(func(x *Tensor) *Tensor {
		return x.SumKeep(axes...).perElement(x, axes, 0)
	})
}

// Var is the variance: the mean of squared distances from the mean, with the
// number of elements less correction (1 for the unbiased estimate) as divisor.
func (t *Tensor) Var(correction float64, axes ...int) *Tensor {
	return t.dropped(axes, func(x *Tensor, axes ...int) *Tensor { return x.VarKeep(correction, axes...) })
}

// VarKeep is Var that keeps the axes.
func (t *Tensor) VarKeep(correction float64, axes ...int) *Tensor {
	return t.widely(func(x *Tensor) *Tensor {
		distance := x.Sub(x.MeanKeep(axes...))
		return distance.Mul(distance).SumKeep(axes...).perElement(x, axes, correction)
	})
}

// Std is the square root of Var.
func (t *Tensor) Std(correction float64, axes ...int) *Tensor {
	return t.widely(func(x *Tensor) *Tensor { return x.Var(correction, axes...).Sqrt() })
}

// StdKeep is Std that keeps the axes.
func (t *Tensor) StdKeep(correction float64, axes ...int) *Tensor {
	return t.widely(func(x *Tensor) *Tensor { return x.VarKeep(correction, axes...).Sqrt() })
}

// Norm is the p-norm (sum |t|^p)^(1/p); the largest |t| for p = +Inf, the
// smallest for -Inf, the number of elements that are not zero for 0.
func (t *Tensor) Norm(p float64, axes ...int) *Tensor {
	return t.dropped(axes, func(x *Tensor, axes ...int) *Tensor { return x.NormKeep(p, axes...) })
}

// NormKeep is Norm that keeps the axes.
func (t *Tensor) NormKeep(p float64, axes ...int) *Tensor {
	return t.widely(func(x *Tensor) *Tensor {
		switch {
		case math.IsInf(p, 1):
			return x.Abs().MaxKeep(axes...)
		case math.IsInf(p, -1):
			return x.Abs().MinKeep(axes...)
		case p == 0:
			return x.Truth().Cast(x.DType()).SumKeep(axes...)
		case p == 1:
			return x.Abs().SumKeep(axes...)
		case p == 2:
			return x.Mul(x).SumKeep(axes...).Sqrt()
		}
		return x.Abs().powerOf(p).SumKeep(axes...).Pow(x.scalar(1 / p))
	})
}

// LogSumExp is log(sum(e**t)) without overflow.
func (t *Tensor) LogSumExp(axes ...int) *Tensor { return t.dropped(axes, (*Tensor).LogSumExpKeep) }

// LogSumExpKeep is LogSumExp that keeps the axes.
func (t *Tensor) LogSumExpKeep(axes ...int) *Tensor {
	return t.widely(func(x *Tensor) *Tensor {
		largest := x.MaxKeep(axes...).Detach()
		base := largest.IsFinite().Where(largest, x.scalar(0))
		return x.Sub(base).Exp().SumKeep(axes...).Log().Add(base)
	})
}

// Softmax along an axis: exp(t-max) over its sum. The maximum only keeps the
// exponentials in range, the result does not depend on it: to derivatives it is
// a constant.
func (t *Tensor) Softmax(axis int) *Tensor {
	return t.widely(func(x *Tensor) *Tensor {
		e := x.Sub(x.MaxKeep(axis).Detach()).Exp()
		return e.Mul(e.SumKeep(axis).Recip())
	})
}

// LogSoftmax is the logarithm of Softmax, precise where that is near 0.
func (t *Tensor) LogSoftmax(axis int) *Tensor {
	return t.widely(func(x *Tensor) *Tensor {
		shifted := x.Sub(x.MaxKeep(axis).Detach())
		return shifted.Sub(shifted.Exp().SumKeep(axis).Log())
	})
}

// Argmax is the index (i32) of the largest element along an axis, the first of
// equals, the first NaN if there is one; the axis is dropped.
func (t *Tensor) Argmax(axis int) *Tensor { return t.position("argmax", axis, (*Tensor).MaxKeep) }

// Argmin is Argmax for the smallest element.
func (t *Tensor) Argmin(axis int) *Tensor { return t.position("argmin", axis, (*Tensor).MinKeep) }

// position is the first index along an axis of the element that extreme picks.
func (t *Tensor) position(op string, axis int, extreme func(x *Tensor, axes ...int) *Tensor) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	k, ok := normalAxis(axis, t.Rank())
	if !ok {
		return t.graph.fail(op, "axis %d of %s", axis, t)
	}
	matches := t.Eq(extreme(t, k))
	if t.DType().IsFloat() {
		matches = matches.Or(t.IsNaN())
	}
	index := t.graph.axisIota(ir.I32, t.shape(), k)
	none := t.graph.Scalar(ir.I32, math.MaxInt32)
	return matches.Where(index, none).Min(k)
}

// axisIota is 0..n-1 along one axis, extent 1 on the others.
func (g *Graph) axisIota(dtype ir.DType, shape []*ir.UOp, axis int) *Tensor {
	dims := lists.Make(len(shape), func(int) *ir.UOp { return g.arena.Index(1) })
	dims[axis] = shape[axis]
	return g.Iota(dtype, shape[axis]).ReshapeDims(dims...)
}

// axesText says which axes a tensor of a rank has.
func axesText(rank int) string {
	if rank == 0 {
		return "of which a scalar has none"
	}
	return fmt.Sprintf("from %d to %d", -rank, rank-1)
}

// count is the number of elements that are folded into one.
func (t *Tensor) count(axes []int) int {
	n := 1
	for _, k := range t.folded(axes) {
		n *= t.Extent(k)
	}
	return n
}

// perElement divides a sum over axes of x by the number of elements less a correction, of
// at least 0.
func (t *Tensor) perElement(x *Tensor, axes []int, correction float64) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	dims := lists.Map(x.folded(axes), func(k int) *ir.UOp { return x.shape()[k] })
	if n, symbols := countOf(dims); len(symbols) == 0 {
		return t.MulScalar(1 / max(0, float64(n)-correction))
	}
	n := t.graph.Size(t.graph.product(dims), t.DType())
	return t.Div(n.AddScalar(-correction).Maximum(t.scalar(0)))
}

// folded normalises a list of axes: sorted, all for none. Wrong ones give nil.
func (t *Tensor) folded(axes []int) []int {
	rank := t.Rank()
	list := make([]int, 0, rank)
	if len(axes) == 0 {
		for k := range rank {
			list = append(list, k)
		}
	}
	for _, axis := range axes {
		k, ok := normalAxis(axis, rank)
		if !ok || slices.Contains(list, k) {
			return nil
		}
		list = append(list, k)
	}
	slices.Sort(list)
	return list
}

// dropped removes the axes that a reduction left with extent 1.
func (t *Tensor) dropped(axes []int, keep func(x *Tensor, axes ...int) *Tensor) *Tensor {
	out := keep(t, axes...)
	if !out.ok() {
		return out
	}
	gone := t.folded(axes)
	var rest []*ir.UOp
	for k, dim := range out.shape() {
		if !slices.Contains(gone, k) {
			rest = append(rest, dim)
		}
	}
	return out.ReshapeDims(rest...)
}

func (t *Tensor) reduce(op ir.Op, keep bool, axes []int) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	gone := t.folded(axes)
	if gone == nil {
		return t.graph.fail("", "axes %v of %s; want each once, %s", axes, t, axesText(t.Rank()))
	}
	if len(gone) == 0 {
		return t
	}
	if t.DType().IsFloat() && t.DType().Size() < 4 {
		return t.Cast(ir.F32).reduce(op, keep, axes).Cast(t.DType())
	}
	src := lists.Map(gone, func(k int) *ir.UOp { return t.graph.arena.Index(int64(k)) })
	out := t.make(ir.OpReduceAxes, t.DType(), ir.ReduceArg{Op: op, N: 1}, src...)
	if keep {
		return out
	}
	return t.dropped(gone, func(*Tensor, ...int) *Tensor { return out })
}
