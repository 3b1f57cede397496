package tensor_test

import (
	"tgc/ir"
	"tgc/tensor"
)

// newerOps are the rows of the group newer, but for those of searchOps.
var newerOps = map[string]opBuilder{
	"zeros": createdVector(func(a *attrs, dtype ir.DType) *tensor.Tensor { return a.graph.Zeros(dtype, a.integers("shape")...) }),
	"ones":  createdVector(func(a *attrs, dtype ir.DType) *tensor.Tensor { return a.graph.Ones(dtype, a.integers("shape")...) }),
	"full": createdVector(func(a *attrs, dtype ir.DType) *tensor.Tensor {
		return a.graph.Full(dtype, a.float("value"), a.integers("shape")...)
	}),
	"eye": createdVector(func(a *attrs, dtype ir.DType) *tensor.Tensor { return a.graph.Eye(dtype, a.integer("n")) }),
	"arange": createdVector(func(a *attrs, dtype ir.DType) *tensor.Tensor {
		return a.graph.Arange(dtype, a.float("start"), a.float("stop"), a.float("step"))
	}),
	"linspace": createdVector(func(a *attrs, dtype ir.DType) *tensor.Tensor {
		return a.graph.Linspace(dtype, a.float("start"), a.float("stop"), a.integer("n"))
	}),
	"meshgrid": func(_ *attrs, in []*tensor.Tensor) []*tensor.Tensor { return tensor.Meshgrid(in...) },

	"erfinv":     unary((*tensor.Tensor).Erfinv),
	"lgamma":     unary((*tensor.Tensor).Lgamma),
	"digamma":    unary((*tensor.Tensor).Digamma),
	"logaddexp":  binaryOp((*tensor.Tensor).LogAddExp),
	"prelu":      binaryOp((*tensor.Tensor).PRelu),
	"nan_to_num": attributed(nanToNumVector),
	"isclose": func(a *attrs, in []*tensor.Tensor) []*tensor.Tensor {
		return one(in[0].IsClose(in[1], tensor.CloseOptions{Relative: a.float("rtol"), Absolute: a.float("atol"), EqualNaN: attrOr(a, "equal_nan", false)}))
	},

	"kron": binaryOp((*tensor.Tensor).Kron),
	"tensordot": func(a *attrs, in []*tensor.Tensor) []*tensor.Tensor {
		return one(in[0].Tensordot(in[1], a.integers("axes"), a.integers("others")))
	},
	"cross": func(a *attrs, in []*tensor.Tensor) []*tensor.Tensor {
		return one(in[0].Cross(in[1], a.integer("axis")))
	},
	"cdist": func(a *attrs, in []*tensor.Tensor) []*tensor.Tensor { return one(in[0].CDist(in[1], a.float("p"))) },

	"adaptive_avg_pool": attributed(func(a *attrs, x *tensor.Tensor) *tensor.Tensor { return x.AdaptiveAvgPool(a.integers("size")...) }),
	"adaptive_max_pool": attributed(func(a *attrs, x *tensor.Tensor) *tensor.Tensor { return x.AdaptiveMaxPool(a.integers("size")...) }),
	"fold": attributed(func(a *attrs, x *tensor.Tensor) *tensor.Tensor {
		return x.Fold(a.integers("size"), a.integers("kernel"), tensor.PoolOptions{Stride: a.integers("stride"), Padding: a.integers("padding"), Dilation: a.integers("dilation")})
	}),
	"grid_sample": func(a *attrs, in []*tensor.Tensor) []*tensor.Tensor {
		return one(in[0].GridSample(in[1], gridOptions(a)))
	},

	"cosine_similarity": func(a *attrs, in []*tensor.Tensor) []*tensor.Tensor {
		return one(in[0].CosineSimilarity(in[1], a.integer("axis"), a.float("eps")))
	},
	"cosine_loss": func(a *attrs, in []*tensor.Tensor) []*tensor.Tensor {
		return one(in[0].CosineLoss(in[1], in[2], a.float("margin"), reduction(a)))
	},
	"triplet_loss": func(a *attrs, in []*tensor.Tensor) []*tensor.Tensor {
		return one(in[0].TripletLoss(in[1], in[2], a.float("margin"), reduction(a)))
	},
	"kl_loss": lossVector((*tensor.Tensor).KLLoss),
	"ctc_loss": func(a *attrs, in []*tensor.Tensor) []*tensor.Tensor {
		return one(in[0].CTCLoss(in[1], in[2], in[3], tensor.CTCOptions{Blank: a.integer("blank"), Reduction: reduction(a)}))
	},

	"fft": func(a *attrs, in []*tensor.Tensor) []*tensor.Tensor {
		return bothParts(tensor.Complex{Real: in[0], Imag: in[1]}.FFT(a.integer("axis")))
	},
	"ifft": func(a *attrs, in []*tensor.Tensor) []*tensor.Tensor {
		return bothParts(tensor.Complex{Real: in[0], Imag: in[1]}.IFFT(a.integer("axis")))
	},
	"rfft": func(a *attrs, in []*tensor.Tensor) []*tensor.Tensor { return bothParts(in[0].RFFT(a.integer("axis"))) },
	"irfft": func(a *attrs, in []*tensor.Tensor) []*tensor.Tensor {
		return one(tensor.Complex{Real: in[0], Imag: in[1]}.IRFFT(a.integer("axis"), a.integer("n")))
	},

	"inverse":  unary((*tensor.Tensor).Inverse),
	"det":      unary((*tensor.Tensor).Det),
	"solve":    binaryOp((*tensor.Tensor).Solve),
	"cholesky": unary((*tensor.Tensor).Cholesky),
	"qr": func(_ *attrs, in []*tensor.Tensor) []*tensor.Tensor {
		q, r := in[0].QR()
		return []*tensor.Tensor{q, r}
	},
	"svd": func(_ *attrs, in []*tensor.Tensor) []*tensor.Tensor { // squares have no sign of a column
		u, s, v := in[0].SVD()
		return []*tensor.Tensor{s, u.Square(), v.Square()}
	},
	"eigh": func(_ *attrs, in []*tensor.Tensor) []*tensor.Tensor {
		values, vectors := in[0].Eigh()
		return []*tensor.Tensor{values, vectors.Square()}
	},
}

// createdVector is a row for an operation without inputs.
func createdVector(build func(a *attrs, dtype ir.DType) *tensor.Tensor) opBuilder {
	return func(a *attrs, _ []*tensor.Tensor) []*tensor.Tensor { return one(build(a, a.dtypeOr("dtype", ir.F32))) }
}

func bothParts(c tensor.Complex) []*tensor.Tensor { return []*tensor.Tensor{c.Real, c.Imag} }

func nanToNumVector(a *attrs, x *tensor.Tensor) *tensor.Tensor {
	var o tensor.NanToNumOptions
	for name, at := range map[string]**float64{"nan": &o.NaN, "posinf": &o.PosInf, "neginf": &o.NegInf} {
		if v := a.floatOr(name, 0); a.has(name) {
			*at = &v
		}
	}
	return x.NanToNum(o)
}

func gridOptions(a *attrs) tensor.GridOptions {
	o := tensor.GridOptions{AlignCorners: attrOr(a, "align_corners", false)}
	switch mode := attr[string](a, "mode"); mode {
	case "bilinear":
	case "nearest":
		o.Nearest = true
	default:
		a.lacks("mode", mode)
	}
	outside, ok := map[string]tensor.PadMode{"zeros": tensor.PadConstant, "border": tensor.PadReplicate, "reflection": tensor.PadReflect}[attr[string](a, "padding_mode")]
	if !ok {
		a.lacks("padding_mode", "another")
	}
	o.Outside = outside
	return o
}
