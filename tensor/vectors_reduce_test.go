package tensor_test

import (
	"tgc/ir"
	"tgc/tensor"
)

// reduceOps are the rows of the group reduce.
var reduceOps = map[string]opBuilder{
	"sum":       accumulated((*tensor.Tensor).Sum, (*tensor.Tensor).SumKeep),
	"prod":      accumulated((*tensor.Tensor).Prod, (*tensor.Tensor).ProdKeep),
	"mean":      overAxes((*tensor.Tensor).Mean, (*tensor.Tensor).MeanKeep),
	"max":       overAxes((*tensor.Tensor).Max, (*tensor.Tensor).MaxKeep),
	"min":       overAxes((*tensor.Tensor).Min, (*tensor.Tensor).MinKeep),
	"any":       overAxes((*tensor.Tensor).Any, (*tensor.Tensor).AnyKeep),
	"all":       overAxes((*tensor.Tensor).All, (*tensor.Tensor).AllKeep),
	"logsumexp": overAxes((*tensor.Tensor).LogSumExp, (*tensor.Tensor).LogSumExpKeep),
	"var":       corrected((*tensor.Tensor).Var, (*tensor.Tensor).VarKeep, "correction"),
	"std":       corrected((*tensor.Tensor).Std, (*tensor.Tensor).StdKeep, "correction"),
	"norm":      corrected((*tensor.Tensor).Norm, (*tensor.Tensor).NormKeep, "p"),
	"argmax":    position((*tensor.Tensor).Argmax),
	"argmin":    position((*tensor.Tensor).Argmin),
	"cumsum":    running((*tensor.Tensor).Cumsum),
	"cumprod":   running((*tensor.Tensor).Cumprod),
	"cummax": func(a *attrs, in []*tensor.Tensor) []*tensor.Tensor {
		values, indices := in[0].Cummax(a.integer("axis"))
		return []*tensor.Tensor{values, indices}
	},
	"cummin": func(a *attrs, in []*tensor.Tensor) []*tensor.Tensor {
		values, indices := in[0].Cummin(a.integer("axis"))
		return []*tensor.Tensor{values, indices}
	},
}

// overAxes is a row with axes, dropped or kept. An empty list of axes means
// all, as an absent one does.
func overAxes(drop, keep func(x *tensor.Tensor, axes ...int) *tensor.Tensor) opBuilder {
	return attributed(func(a *attrs, x *tensor.Tensor) *tensor.Tensor {
		if a.keep() {
			return keep(x, a.axes()...)
		}
		return drop(x, a.axes()...)
	})
}

// accumulated is a reduction in the dtype of its result.
func accumulated(drop, keep func(x *tensor.Tensor, axes ...int) *tensor.Tensor) opBuilder {
	plain := overAxes(drop, keep)
	return func(a *attrs, in []*tensor.Tensor) []*tensor.Tensor {
		return plain(a, one(in[0].Cast(a.dtypeOr("dtype", in[0].DType()))))
	}
}

// corrected is a reduction with a number.
func corrected(drop, keep func(x *tensor.Tensor, v float64, axes ...int) *tensor.Tensor, name string) opBuilder {
	return attributed(func(a *attrs, x *tensor.Tensor) *tensor.Tensor {
		v := a.float(name)
		if a.keep() {
			return keep(x, v, a.axes()...)
		}
		return drop(x, v, a.axes()...)
	})
}

// position is a row for an index along an axis, or of the flattened tensor.
func position(method func(x *tensor.Tensor, axis int) *tensor.Tensor) opBuilder {
	return attributed(func(a *attrs, x *tensor.Tensor) *tensor.Tensor {
		shape := extents(x)
		axis := attrOr(a, "axis", 0)
		if !a.has("axis") {
			x = x.Reshape(-1)
			for k := range shape {
				shape[k] = 1
			}
		}
		out := method(x, axis)
		if !a.keep() {
			return out
		}
		if a.has("axis") {
			shape[(axis+len(shape))%len(shape)] = 1
		}
		return out.Reshape(shape...)
	})
}

// running is a running fold in the dtype of its result.
func running(method func(x *tensor.Tensor, axis int) *tensor.Tensor) opBuilder {
	return attributed(func(a *attrs, x *tensor.Tensor) *tensor.Tensor {
		dtype := a.dtypeOr("dtype", ir.Void)
		if dtype != ir.Void {
			x = x.Cast(dtype)
		}
		return method(x, a.integer("axis"))
	})
}
