package tensor_test

import "tgc/tensor"

// matmulOps are the rows of the group matmul.
var matmulOps = map[string]opBuilder{
	"matmul": func(a *attrs, in []*tensor.Tensor) []*tensor.Tensor {
		x, y := in[0], in[1]
		if attrOr(a, "transpose_a", false) {
			x = x.Transpose(-1, -2)
		}
		if attrOr(a, "transpose_b", false) {
			y = y.Transpose(-1, -2)
		}
		return one(x.MatMul(y))
	},
	"einsum": func(a *attrs, in []*tensor.Tensor) []*tensor.Tensor {
		return one(tensor.Einsum(attr[string](a, "equation"), in...))
	},
}
