package tensor_test

import (
	"math"

	"tgc/tensor"
)

// unaryOps are the rows of the groups unary and dtypes.
var unaryOps = map[string]opBuilder{
	"neg":          unary((*tensor.Tensor).Neg),
	"abs":          unary((*tensor.Tensor).Abs),
	"sqrt":         unary((*tensor.Tensor).Sqrt),
	"rsqrt":        unary((*tensor.Tensor).Rsqrt),
	"exp":          unary((*tensor.Tensor).Exp),
	"exp2":         unary((*tensor.Tensor).Exp2),
	"expm1":        unary((*tensor.Tensor).Expm1),
	"log":          unary((*tensor.Tensor).Log),
	"log2":         unary((*tensor.Tensor).Log2),
	"log10":        unary((*tensor.Tensor).Log10),
	"log1p":        unary((*tensor.Tensor).Log1p),
	"sin":          unary((*tensor.Tensor).Sin),
	"cos":          unary((*tensor.Tensor).Cos),
	"tan":          unary((*tensor.Tensor).Tan),
	"asin":         unary((*tensor.Tensor).Asin),
	"acos":         unary((*tensor.Tensor).Acos),
	"atan":         unary((*tensor.Tensor).Atan),
	"sinh":         unary((*tensor.Tensor).Sinh),
	"cosh":         unary((*tensor.Tensor).Cosh),
	"tanh":         unary((*tensor.Tensor).Tanh),
	"asinh":        unary((*tensor.Tensor).Asinh),
	"acosh":        unary((*tensor.Tensor).Acosh),
	"atanh":        unary((*tensor.Tensor).Atanh),
	"erf":          unary((*tensor.Tensor).Erf),
	"sigmoid":      unary((*tensor.Tensor).Sigmoid),
	"relu":         unary((*tensor.Tensor).Relu),
	"relu6":        unary((*tensor.Tensor).Relu6),
	"selu":         unary((*tensor.Tensor).Selu),
	"silu":         unary((*tensor.Tensor).Silu),
	"mish":         unary((*tensor.Tensor).Mish),
	"hardswish":    unary((*tensor.Tensor).HardSwish),
	"hardsigmoid":  unary((*tensor.Tensor).HardSigmoid),
	"softsign":     unary((*tensor.Tensor).Softsign),
	"logsigmoid":   unary((*tensor.Tensor).LogSigmoid),
	"quick_gelu":   unary((*tensor.Tensor).QuickGelu),
	"floor":        unary((*tensor.Tensor).Floor),
	"ceil":         unary((*tensor.Tensor).Ceil),
	"round":        unary((*tensor.Tensor).Round),
	"trunc":        unary((*tensor.Tensor).Trunc),
	"sign":         unary((*tensor.Tensor).Sign),
	"reciprocal":   unary((*tensor.Tensor).Recip),
	"square":       unary((*tensor.Tensor).Square),
	"isnan":        unary((*tensor.Tensor).IsNaN),
	"isinf":        unary((*tensor.Tensor).IsInf),
	"isfinite":     unary((*tensor.Tensor).IsFinite),
	"logical_not":  unary((*tensor.Tensor).LogicalNot),
	"bitwise_not":  unary((*tensor.Tensor).Not),
	"leaky_relu":   attributed(func(a *attrs, x *tensor.Tensor) *tensor.Tensor { return x.LeakyRelu(a.float("slope")) }),
	"elu":          attributed(func(a *attrs, x *tensor.Tensor) *tensor.Tensor { return x.Elu(a.float("alpha")) }),
	"celu":         attributed(func(a *attrs, x *tensor.Tensor) *tensor.Tensor { return x.Celu(a.float("alpha")) }),
	"softplus":     attributed(func(a *attrs, x *tensor.Tensor) *tensor.Tensor { return x.Softplus(a.float("beta")) }),
	"gelu":         attributed(gelu),
	"hardtanh":     attributed(clamp),
	"clamp":        attributed(clamp),
	"cast":         attributed(func(a *attrs, x *tensor.Tensor) *tensor.Tensor { return x.Cast(a.dtypeOr("dtype", x.DType())) }),
	"bitcast":      attributed(func(a *attrs, x *tensor.Tensor) *tensor.Tensor { return x.Bitcast(a.dtypeOr("dtype", x.DType())) }),
	"softmax":      attributed(func(a *attrs, x *tensor.Tensor) *tensor.Tensor { return x.Softmax(a.integer("axis")) }),
	"log_softmax":  attributed(func(a *attrs, x *tensor.Tensor) *tensor.Tensor { return x.LogSoftmax(a.integer("axis")) }),
	"logcumsumexp": attributed(func(a *attrs, x *tensor.Tensor) *tensor.Tensor { return x.LogCumSumExp(a.integer("axis")) }),
}

func gelu(a *attrs, x *tensor.Tensor) *tensor.Tensor {
	switch approx := attr[string](a, "approx"); approx {
	case "none":
		return x.Gelu()
	case "tanh":
		return x.GeluTanh()
	default:
		a.lacks("approx", approx)
		return x
	}
}

func clamp(a *attrs, x *tensor.Tensor) *tensor.Tensor {
	if lo := a.floatOr("min", math.Inf(-1)); a.has("min") {
		x = x.ClampMin(lo)
	}
	if hi := a.floatOr("max", math.Inf(1)); a.has("max") {
		x = x.ClampMax(hi)
	}
	return x
}
