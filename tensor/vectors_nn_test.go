package tensor_test

import (
	"fmt"

	"tgc/tensor"
)

// nnOps are the rows of the group nn.
var nnOps = map[string]opBuilder{
	"linear": func(_ *attrs, in []*tensor.Tensor) []*tensor.Tensor {
		y := in[0].Linear(in[1])
		if bias := input(in, 2); bias != nil {
			y = y.Add(bias)
		}
		return one(y)
	},
	"layer_norm": func(a *attrs, in []*tensor.Tensor) []*tensor.Tensor {
		return one(in[0].LayerNorm(attrOr(a, "ndim", 1), input(in, 1), input(in, 2), a.float("eps")))
	},
	"rms_norm": func(a *attrs, in []*tensor.Tensor) []*tensor.Tensor {
		weight := input(in, 1)
		if offset := a.floatOr("weight_offset", 0); offset != 0 {
			weight = weight.AddScalar(offset)
		}
		return one(in[0].RMSNorm(weight, a.float("eps")))
	},
	"batch_norm": batchNormVector,
	"group_norm": func(a *attrs, in []*tensor.Tensor) []*tensor.Tensor {
		return one(in[0].GroupNorm(a.integer("groups"), input(in, 1), input(in, 2), a.float("eps")))
	},
	"instance_norm": func(a *attrs, in []*tensor.Tensor) []*tensor.Tensor {
		return one(in[0].InstanceNorm(input(in, 1), input(in, 2), a.float("eps")))
	},
	"conv1d":           convVector((*tensor.Tensor).Conv),
	"conv2d":           convVector((*tensor.Tensor).Conv),
	"conv3d":           convVector((*tensor.Tensor).Conv),
	"conv_transpose1d": convVector((*tensor.Tensor).ConvTranspose),
	"conv_transpose2d": convVector((*tensor.Tensor).ConvTranspose),
	"avg_pool1d":       attributed(avgPoolVector),
	"avg_pool2d":       attributed(avgPoolVector),
	"max_pool1d":       attributed(maxPoolVector),
	"max_pool2d":       attributed(maxPoolVector),
	"interpolate":      attributed(interpolateVector),
	"glu":              attributed(func(a *attrs, x *tensor.Tensor) *tensor.Tensor { return x.Glu(attrOr(a, "axis", -1)) }),
	"pixel_shuffle":    attributed(func(a *attrs, x *tensor.Tensor) *tensor.Tensor { return x.PixelShuffle(a.integer("factor")) }),
	"cross_entropy": func(a *attrs, in []*tensor.Tensor) []*tensor.Tensor {
		o := crossEntropyOptions(a)
		o.Smoothing = a.floatOr("label_smoothing", 0)
		return one(in[0].CrossEntropy(in[1], o))
	},
	"nll_loss": func(a *attrs, in []*tensor.Tensor) []*tensor.Tensor {
		return one(in[0].NLLLoss(in[1], crossEntropyOptions(a)))
	},
	"bce_loss":        lossVector((*tensor.Tensor).BCELoss),
	"bce_logits_loss": lossVector((*tensor.Tensor).BCELogitsLoss),
	"mse_loss":        lossVector((*tensor.Tensor).MSELoss),
	"l1_loss":         lossVector((*tensor.Tensor).L1Loss),
	"huber_loss": func(a *attrs, in []*tensor.Tensor) []*tensor.Tensor {
		return one(in[0].HuberLoss(in[1], a.floatOr("delta", 1), reduction(a)))
	},
	"smooth_l1_loss": func(a *attrs, in []*tensor.Tensor) []*tensor.Tensor {
		return one(in[0].SmoothL1Loss(in[1], a.floatOr("beta", 1), reduction(a)))
	},
	"sdpa": func(a *attrs, in []*tensor.Tensor) []*tensor.Tensor {
		return one(in[0].Attention(in[1], in[2], tensor.AttentionOptions{
			Mask: input(in, 3), Causal: attrOr(a, "causal", false), Scale: a.floatOr("scale", 0), Grouped: attrOr(a, "gqa", false),
		}))
	},
	"rope": attributed(rotaryVector),
}

// input is an input that may be absent: nil then.
func input(in []*tensor.Tensor, i int) *tensor.Tensor {
	if i < len(in) {
		return in[i]
	}
	return nil
}

func batchNormVector(a *attrs, in []*tensor.Tensor) []*tensor.Tensor {
	weight, bias, eps := input(in, 3), input(in, 4), a.float("eps")
	momentum := a.floatOr("momentum", 0.1)
	if !attrOr(a, "training", false) {
		return one(in[0].BatchNorm(in[1], in[2], weight, bias, eps))
	}
	y, mean, variance := in[0].BatchNormTraining(in[1], in[2], weight, bias, eps, momentum)
	return []*tensor.Tensor{y, mean, variance}
}

func convVector(method func(x, w, bias *tensor.Tensor, o ...tensor.ConvOptions) *tensor.Tensor) opBuilder {
	return func(a *attrs, in []*tensor.Tensor) []*tensor.Tensor {
		return one(method(in[0], in[1], input(in, 2), tensor.ConvOptions{
			Stride: attrOr[[]int](a, "stride", nil), Padding: attrOr[[]int](a, "padding", nil),
			Dilation: attrOr[[]int](a, "dilation", nil), OutputPadding: attrOr[[]int](a, "output_padding", nil),
			Groups: attrOr(a, "groups", 1),
		}))
	}
}

func poolOptions(a *attrs) tensor.PoolOptions {
	return tensor.PoolOptions{
		Stride: attrOr[[]int](a, "stride", nil), Padding: attrOr[[]int](a, "padding", nil), Ceil: attrOr(a, "ceil_mode", false),
	}
}

func avgPoolVector(a *attrs, x *tensor.Tensor) *tensor.Tensor {
	o := poolOptions(a)
	o.ExcludePadding = !attrOr(a, "count_include_pad", true)
	return x.AvgPool(a.integers("kernel"), o)
}

func maxPoolVector(a *attrs, x *tensor.Tensor) *tensor.Tensor {
	o := poolOptions(a)
	o.Dilation = attrOr[[]int](a, "dilation", nil)
	return x.MaxPool(a.integers("kernel"), o)
}

func interpolateVector(a *attrs, x *tensor.Tensor) *tensor.Tensor {
	name, align := attr[string](a, "mode"), attrOr(a, "align_corners", false)
	modes := map[string]tensor.Interpolation{
		"nearest false": tensor.Nearest, "nearest-exact false": tensor.NearestExact,
		"linear false": tensor.Linear, "linear true": tensor.LinearAlign,
		"bilinear false": tensor.Linear, "bilinear true": tensor.LinearAlign,
	}
	mode, ok := modes[fmt.Sprint(name, " ", align)]
	if !ok {
		a.lacks("mode", name)
	}
	return x.Interpolate(mode, a.integers("size")...)
}

func reduction(a *attrs) tensor.Reduction {
	name := attrOr(a, "reduction", "mean")
	r, ok := map[string]tensor.Reduction{"mean": tensor.ReduceMean, "sum": tensor.ReduceSum, "none": tensor.ReduceNone}[name]
	if !ok {
		a.lacks("reduction", name)
	}
	return r
}

func crossEntropyOptions(a *attrs) tensor.CrossEntropyOptions {
	ignored := attrOr(a, "ignore_index", -100)
	return tensor.CrossEntropyOptions{Reduction: reduction(a), Ignore: &ignored}
}

func lossVector(method func(x, y *tensor.Tensor, r ...tensor.Reduction) *tensor.Tensor) opBuilder {
	return func(a *attrs, in []*tensor.Tensor) []*tensor.Tensor {
		return one(method(in[0], in[1], reduction(a)))
	}
}

func rotaryVector(a *attrs, x *tensor.Tensor) *tensor.Tensor {
	o := tensor.RotaryOptions{Base: a.floatOr("base", 10000), Offset: attrOr(a, "offset", 0), Dims: attrOr(a, "dims", 0)}
	switch name := attrOr(a, "convention", "half"); name {
	case "half":
		o.Pairing = tensor.PairHalves
	case "interleaved":
		o.Pairing = tensor.PairNeighbours
	default:
		a.lacks("convention", name)
	}
	return x.Rotary(o)
}
