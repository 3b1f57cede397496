package grad

import (
	"tgc/ir"
	"tgc/tensor"
)

// Gradients begin with ones and scale them by constants. Folding these where
// they arise keeps multiplications by 1 out of every kernel.

// uniform reports the value of a tensor all of whose elements are one constant.
func uniform(t *tensor.Tensor) (v float64, ok bool) {
	u := t.Node()
	for u != nil && (u.Op == ir.OpReshape || u.Op == ir.OpExpand) {
		u = u.Src[0]
	}
	if u == nil {
		return 0, false
	}
	return u.Float()
}

// times is x*y for x of y's shape, or y a scalar.
func times(x, y *tensor.Tensor) *tensor.Tensor {
	v, constant := uniform(x)
	w, other := uniform(y)
	switch {
	case constant && other:
		return filled(x.Graph(), x.DType(), ir.RoundFloat(x.DType(), v*w), x.Shape())
	case constant && v == 1:
		return spread(y, x.Shape())
	}
	return x.Mul(y)
}

// negative is -x.
func negative(x *tensor.Tensor) *tensor.Tensor {
	if v, ok := uniform(x); ok {
		return filled(x.Graph(), x.DType(), -v, x.Shape())
	}
	return x.Neg()
}

// sumOfUniform is the sum of n equal constants over axes, where n is known.
func sumOfUniform(t *tensor.Tensor, axes []int) (v float64, ok bool) {
	v, ok = uniform(t)
	shape := t.Shape()
	for _, k := range axes {
		n, constant := shape[k].Int()
		v, ok = v*float64(n), ok && constant
	}
	return v, ok
}
