package tensor_test

import "tgc/tensor"

// unaryOps are the rows of the groups unary and dtypes.
var unaryOps = map[string]opBuilder{
	"neg":   unary((*tensor.Tensor).Neg),
	"abs":   unary((*tensor.Tensor).Abs),
	"sqrt":  unary((*tensor.Tensor).Sqrt),
	"rsqrt": unary((*tensor.Tensor).Rsqrt),
	"exp":   unary((*tensor.Tensor).Exp),
	"exp2":  unary((*tensor.Tensor).Exp2),
	"log":   unary((*tensor.Tensor).Log),
	"log2":  unary((*tensor.Tensor).Log2),
	"sin":   unary((*tensor.Tensor).Sin),
	"cos":   unary((*tensor.Tensor).Cos),
	"cast": attributed(func(a *attrs, x *tensor.Tensor) *tensor.Tensor {
		return x.Cast(a.dtypeOr("dtype", x.DType()))
	}),
}
