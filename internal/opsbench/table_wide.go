package main

import (
	"tgc/grad"
	"tgc/ir"
	"tgc/tensor"
)

// unary names a function of one tensor.
type unary struct {
	name  string
	apply func(x *tensor.Tensor) *tensor.Tensor
}

// gradientOf is the derivative of a function of an input x (sizes: all but the last number)
// by x, for a cotangent that is an input.
func gradientOf(apply func(x *tensor.Tensor) *tensor.Tensor) func(g *tensor.Graph, d []int) *tensor.Tensor {
	return func(g *tensor.Graph, d []int) *tensor.Tensor {
		x := input(g, "x", d...)
		return back(g, apply(x), x)
	}
}

// back is the derivative of y by x, for a cotangent that is an input.
func back(g *tensor.Graph, y, x *tensor.Tensor) *tensor.Tensor {
	shape := make([]int, y.Rank())
	for i := range shape {
		shape[i] = y.Extent(i)
	}
	return grad.Of([]*tensor.Tensor{y}, []*tensor.Tensor{g.Input("t", y.DType(), shape...)}, []*tensor.Tensor{x})[0]
}

func twoInputs(apply func(x, y *tensor.Tensor) *tensor.Tensor) func(g *tensor.Graph, d []int) *tensor.Tensor {
	return func(g *tensor.Graph, d []int) *tensor.Tensor { return apply(input(g, "x", d...), input(g, "y", d...)) }
}

func first(x, _ *tensor.Tensor) *tensor.Tensor { return x }

func oneOf(name string, apply func(x *tensor.Tensor) *tensor.Tensor, tiny []int, sizes ...[]int) family {
	format := "%d"
	for range tiny[1:] {
		format += "x%d"
	}
	return family{name, format, nil, of(apply), tiny, sizes}
}

func gradOf(name string, apply func(x *tensor.Tensor) *tensor.Tensor, tiny []int, sizes ...[]int) family {
	f := oneOf(name+" gradient", apply, tiny, sizes...)
	f.build = gradientOf(apply)
	return f
}

func ofType(name string, dtype ir.DType, apply func(x *tensor.Tensor) *tensor.Tensor, tiny []int, sizes ...[]int) family {
	f := oneOf(name+" "+dtype.String(), apply, tiny, sizes...)
	f.build = func(g *tensor.Graph, d []int) *tensor.Tensor { return apply(g.Input("x", dtype, d...)) }
	return f
}

// T is short for what every line of the table names.
type T = tensor.Tensor

// wide has operations of the whole library, most of them at one size, an odd one.
func wide() []family {
	var list []family
	add := func(f ...family) { list = append(list, f...) }
	square := []int{1021, 1023}
	for _, u := range []unary{
		{"erf", (*T).Erf}, {"tanh", (*T).Tanh}, {"sigmoid", (*T).Sigmoid}, {"log", (*T).Log}, {"sin", (*T).Sin}, {"tan", (*T).Tan}, {"gelu", (*T).Gelu}, {"erfinv", (*T).Erfinv},
		{"lgamma", (*T).Lgamma}, {"digamma", (*T).Digamma}, {"asin", (*T).Asin}, {"atan", (*T).Atan}, {"acosh", (*T).Acosh}, {"expm1", (*T).Expm1}, {"log1p", (*T).Log1p}, {"mish", (*T).Mish}, {"sinh", (*T).Sinh}, {"round", (*T).Round}, {"rsqrt", (*T).Rsqrt}, {"silu", (*T).Silu},
		{"tril", func(x *T) *T { return x.Tril(0) }}, {"roll", func(x *T) *T { return x.Roll([]int{3, 5}, []int{0, 1}) }}, {"flip both", func(x *T) *T { return x.Flip(0, 1) }},
		{"repeat 2x3", func(x *T) *T { return x.Repeat(2, 3) }}, {"interleave columns", func(x *T) *T { return x.RepeatInterleave(1, 3) }}, {"interleave rows", func(x *T) *T { return x.RepeatInterleave(0, 3) }},
		{"diagonal", func(x *T) *T { return x.Diagonal(0, 0, 1) }}, {"std rows", func(x *T) *T { return x.Std(1, 1) }}, {"std columns", func(x *T) *T { return x.Std(1, 0) }}, {"logsumexp rows", func(x *T) *T { return x.LogSumExp(1) }},
		{"logsumexp columns", func(x *T) *T { return x.LogSumExp(0) }}, {"norm rows", func(x *T) *T { return x.Norm(2, 1) }}, {"norm 3 rows", func(x *T) *T { return x.Norm(3, 1) }}, {"mean all", func(x *T) *T { return x.Mean() }}, {"log softmax", func(x *T) *T { return x.LogSoftmax(1) }},
		{"prod rows", func(x *T) *T { return x.Prod(1) }}, {"any rows", func(x *T) *T { return x.Gt(x.MulScalar(0.5)).Any(1) }}, {"cummin rows", func(x *T) *T { return first(x.Cummin(1)) }}, {"logcumsumexp rows", func(x *T) *T { return x.LogCumSumExp(1) }}, {"logcumsumexp columns", func(x *T) *T { return x.LogCumSumExp(0) }},
		{"median rows", func(x *T) *T { return x.Median(1) }}, {"quantile rows", func(x *T) *T { return x.Quantile(0.3, 1) }}, {"argsort rows", func(x *T) *T { return x.Argsort(1, true) }}, {"sort columns", func(x *T) *T { return first(x.Sort(0, false)) }},
		{"even columns", func(x *T) *T { return x.Unfold(1, 1, 2).Squeeze(2) }}, {"glu", func(x *T) *T { return x.Pad(1, 0, 1).Glu(1) }}, {"cat rows", func(x *T) *T { return x.Cat(0, x.MulScalar(2)) }}, {"cat columns", func(x *T) *T { return x.Cat(1, x.MulScalar(2)) }}, {"stack last", func(x *T) *T { return x.Stack(2, x.MulScalar(2)) }},
		{"pad reflect", func(x *T) *T { return x.PadAll([][2]int{{1, 2}, {3, 1}}, tensor.PadOptions{Mode: tensor.PadReflect}) }}, {"pad replicate", func(x *T) *T { return x.PadAll([][2]int{{1, 2}, {3, 1}}, tensor.PadOptions{Mode: tensor.PadReplicate}) }}, {"pad circular", func(x *T) *T { return x.PadAll([][2]int{{1, 2}, {3, 1}}, tensor.PadOptions{Mode: tensor.PadCircular}) }},
		{"unfold 8 by 4", func(x *T) *T { return x.Unfold(1, 8, 4).Sum(2) }}, {"gram rows", func(x *T) *T { return x.MatMul(x.Transpose(0, 1)) }}, {"gram columns", func(x *T) *T { return x.Transpose(0, 1).MatMul(x) }}, {"double", func(x *T) *T { return x.Cast(ir.F64) }}, {"halve", func(x *T) *T { return x.Cast(ir.F16) }}, {"one bit", func(x *T) *T { return x.Gt(x.Neg()) }},
		{"nonzero", func(x *T) *T { return first(x.Relu().Nonzero(1 << 16)) }}, {"masked select", func(x *T) *T { return first(x.MaskedSelect(x.Gt(x.Neg()), 1<<16)) }}, {"max both", func(x *T) *T { return x.Max() }}, {"normalise columns", func(x *T) *T { return x.Div(x.NormKeep(2, 0)) }}, {"minmax rows", func(x *T) *T { return x.MaxKeep(1).Sub(x.MinKeep(1)) }},
		{"cosine similarity", func(x *T) *T { return x.CosineSimilarity(x.Flip(1), 1, 1e-8) }}, {"huber", func(x *T) *T { return x.HuberLoss(x.Flip(0), 1) }}, {"kl", func(x *T) *T { return x.LogSoftmax(1).KLLoss(x.Flip(0).Softmax(1)) }}, {"bce logits", func(x *T) *T { return x.BCELogitsLoss(x.Flip(0)) }},
	} {
		size := square
		if u.name == "tril" {
			size = []int{1023, 1023}
		}
		add(oneOf(u.name, u.apply, []int{9, 9}, size))
	}
	images := []int{8, 64, 56, 56}
	tinyImage := []int{2, 4, 6, 6}
	for _, u := range []unary{
		{"group norm", func(x *T) *T { return x.GroupNorm(2, nil, nil, 1e-5) }}, {"instance norm", func(x *T) *T { return x.InstanceNorm(nil, nil, 1e-5) }}, {"global mean pool", func(x *T) *T { return x.Mean(2, 3) }}, {"max pool 2/2", func(x *T) *T { return x.MaxPool([]int{2, 2}) }},
		{"mean pool 3/1", func(x *T) *T { return x.AvgPool([]int{3, 3}, tensor.PoolOptions{Stride: []int{1}, Padding: []int{1}}) }}, {"adaptive mean 3", func(x *T) *T { return x.AdaptiveAvgPool(3, 3) }}, {"adaptive max 3", func(x *T) *T { return x.AdaptiveMaxPool(3, 3) }}, {"pixel shuffle", func(x *T) *T { return x.PixelShuffle(2) }},
		{"channel softmax", func(x *T) *T { return x.Softmax(1) }}, {"channel norm", func(x *T) *T { return x.Permute(0, 2, 3, 1).LayerNorm(1, nil, nil, 1e-5) }}, {"channel mean", func(x *T) *T { return x.Mean(1) }}, {"channel statistics", func(x *T) *T { return x.Var(0, 0, 2, 3) }}, {"channel argmax", func(x *T) *T { return x.Argmax(1) }}, {"cumsum channels", func(x *T) *T { return x.Cumsum(1) }},
		{"batch norm training", func(x *T) *T {
			c := x.Extent(1)
			one := func(n string) *T { return input(x.Graph(), n, c) }
			y, _, _ := x.BatchNormTraining(one("m"), one("v"), one("w"), one("b"), 1e-5, 0.1)
			return y
		}}, {"im2col 3", func(x *T) *T {
			return x.Pad(2, 1, 1).Pad(3, 1, 1).Unfold(2, 3, 1).Unfold(3, 3, 1).Permute(0, 1, 4, 5, 2, 3)
		}},
		{"image to columns sum", func(x *T) *T { return x.Sum(3).Sum(1) }}, {"interpolate down", func(x *T) *T { return x.Interpolate(tensor.Linear, x.Extent(2)/2, x.Extent(3)/2) }},
	} {
		add(oneOf(u.name, u.apply, tinyImage, images))
		if u.name != "channel argmax" && u.name != "im2col 3" {
			add(gradOf(u.name, u.apply, tinyImage, images))
		}
	}
	for _, u := range []unary{
		{"softmax", func(x *T) *T { return x.Softmax(1) }}, {"softmax columns", func(x *T) *T { return x.Softmax(0) }}, {"rms norm", func(x *T) *T { return x.RMSNorm(input(x.Graph(), "w", x.Extent(1)), 1e-5) }}, {"cumsum", func(x *T) *T { return x.Cumsum(1) }}, {"cumprod", func(x *T) *T { return x.Cumprod(1) }}, {"cummax", func(x *T) *T { return first(x.Cummax(1)) }}, {"max rows", func(x *T) *T { return x.Max(1) }}, {"sort", func(x *T) *T { return first(x.Sort(1, false)) }},
		{"top 8", func(x *T) *T { return first(x.TopK(8, 1, true)) }}, {"gelu", (*T).Gelu}, {"logsumexp", func(x *T) *T { return x.LogSumExp(1) }}, {"std", func(x *T) *T { return x.Std(1, 1) }}, {"gather 5000 rows", func(x *T) *T { return x.Gather(0, x.Graph().Input("i", ir.I32, 5*x.Extent(0))) }}, {"gram", func(x *T) *T { return x.MatMul(x.Transpose(0, 1)) }}, {"roll", func(x *T) *T { return x.Roll([]int{3, 5}, []int{0, 1}) }},
		{"log softmax", func(x *T) *T { return x.LogSoftmax(1) }}, {"transpose gelu", func(x *T) *T { return x.Transpose(0, 1).Gelu() }}, {"layer norm", func(x *T) *T { return x.LayerNorm(1, nil, nil, 1e-5) }}, {"prod", func(x *T) *T { return x.Prod(1) }}, {"unfold", func(x *T) *T { return x.Unfold(1, 8, 4).Square() }}, {"norm", func(x *T) *T { return x.Norm(2, 1) }},
	} {
		add(gradOf(u.name, u.apply, []int{9, 9}, square))
	}
	layerParam := func(name string, apply func(x, w *T) *T) family {
		return family{name, "%dx%d", nil, func(g *tensor.Graph, d []int) *T {
			w := input(g, "w", d[1])
			return back(g, apply(input(g, "x", d...), w), w)
		}, []int{9, 9}, [][]int{square, {8192, 768}}}
	}
	add(layerParam("layer norm weight gradient", func(x, w *T) *T { return x.LayerNorm(1, w, nil, 1e-5) }), layerParam("rms norm weight gradient", func(x, w *T) *T { return x.RMSNorm(w, 1e-5) }), layerParam("bias gradient", func(x, w *T) *T { return x.Add(w).Gelu() }))
	add(family{"cross entropy gradient", "%dx%d", nil, func(g *tensor.Graph, d []int) *T {
		x := input(g, "x", d...)
		return grad.Gradients(x.CrossEntropy(g.Input("y", ir.I32, d[0]), tensor.CrossEntropyOptions{}), x)[0]
	}, []int{3, 9}, [][]int{{64, 32000}, {4096, 1001}}})
	add(family{"embedding gradient", "%d rows of %dx%d", nil, func(g *tensor.Graph, d []int) *T {
		w := input(g, "w", d[1], d[2])
		return back(g, w.Gather(0, g.Input("i", ir.I32, d[0])), w)
	}, []int{9, 5, 3}, [][]int{{8192, 32000, 256}, {1000, 50257, 768}}})
	for which, name := range []string{"conv gradient", "conv weight gradient"} {
		add(family{name, "%dx%d of %d to %d, kernel %d, stride %d, padding %d, groups %d", convOperations, func(g *tensor.Graph, d []int) *T {
			w := input(g, "w", d[convOut], d[convIn]/d[convGroups], d[convKernel], d[convKernel])
			x := input(g, "x", d[convBatch], d[convIn], d[convSide], d[convSide])
			return back(g, x.Conv(w, nil, tensor.ConvOptions{Padding: []int{d[convPadding]}, Stride: []int{d[convStride]}, Groups: d[convGroups]}), []*T{x, w}[which])
		}, []int{1, 4, 5, 6, 3, 1, 1, 2}, [][]int{{8, 64, 28, 64, 3, 1, 1, 1}, {64, 16, 14, 32, 3, 1, 1, 1}, {32, 16, 14, 32, 5, 1, 2, 1}, {1, 64, 56, 128, 3, 2, 1, 1}, {8, 3, 112, 32, 7, 2, 3, 1}, {8, 256, 28, 64, 1, 1, 0, 1}, {8, 128, 28, 128, 3, 1, 1, 128}}})
	}
	for which, name := range []string{"attention gradient of queries", "attention gradient of keys", "attention gradient of values"} {
		add(family{name, "%dx%d heads, %d queries, %d keys of %d", attentionOperations, func(g *tensor.Graph, d []int) *T {
			in := func(name string, rows int) *T { return input(g, name, d[attBatch], d[attHeads], rows, d[attSize]) }
			q, k, v := in("q", d[attQueries]), in("k", d[attKeys]), in("v", d[attKeys])
			return back(g, q.Attention(k, v, tensor.AttentionOptions{Causal: d[attQueries] == d[attKeys]}), []*T{q, k, v}[which])
		}, []int{1, 2, 3, 3, 5}, [][]int{{2, 8, 512, 512, 64}, {2, 7, 300, 301, 37}}})
	}
	add(family{"conv 1d", "%dx%d of %d to %d, kernel %d", func(d []int) float64 { return 2 * float64(d[0]*d[1]*d[2]*d[3]*d[4]) }, func(g *tensor.Graph, d []int) *T {
		return input(g, "x", d[0], d[1], d[2]).Conv(input(g, "w", d[3], d[1], d[4]), nil, tensor.ConvOptions{Padding: []int{d[4] / 2}})
	}, []int{1, 2, 9, 3, 3}, [][]int{{8, 64, 1000, 64, 5}, {1, 1, 160000, 64, 9}, {8, 35, 501, 37, 3}}})
	add(family{"conv 3d", "%dx%d of %d to %d, kernel %d", func(d []int) float64 { return 2 * float64(d[0]*d[1]*d[2]*d[2]*d[2]*d[3]*d[4]*d[4]*d[4]) }, func(g *tensor.Graph, d []int) *T {
		return input(g, "x", d[0], d[1], d[2], d[2], d[2]).Conv(input(g, "w", d[3], d[1], d[4], d[4], d[4]), nil, tensor.ConvOptions{Padding: []int{d[4] / 2}})
	}, []int{1, 2, 5, 3, 3}, [][]int{{1, 16, 32, 32, 3}}})
	add(family{"dilated conv", "%dx%d of %d to %d", func(d []int) float64 { return 18 * float64(d[0]*d[1]*d[2]*d[2]*d[3]) }, func(g *tensor.Graph, d []int) *T {
		return input(g, "x", d[0], d[1], d[2], d[2]).Conv(input(g, "w", d[3], d[1], 3, 3), nil, tensor.ConvOptions{Padding: []int{2}, Dilation: []int{2}})
	}, []int{1, 2, 9, 3}, [][]int{{1, 64, 56, 64}}})
	add(family{"channels last conv", "%dx%d of %d to %d", func(d []int) float64 { return 18 * float64(d[0]*d[1]*d[2]*d[2]*d[3]) }, func(g *tensor.Graph, d []int) *T {
		return input(g, "x", d[0], d[2], d[2], d[1]).Permute(0, 3, 1, 2).Conv(input(g, "w", d[3], d[1], 3, 3), nil, tensor.ConvOptions{Padding: []int{1}}).Permute(0, 2, 3, 1)
	}, []int{1, 2, 9, 3}, [][]int{{1, 64, 56, 64}}})
	for _, dt := range []ir.DType{ir.F16, ir.BF16, ir.I8, ir.F64} {
		tiny := []int{9, 9}
		add(ofType("sum rows", dt, func(x *T) *T { return x.Sum(1) }, tiny, square), ofType("sum columns", dt, func(x *T) *T { return x.Sum(0) }, tiny, square), ofType("add one", dt, func(x *T) *T { return x.Add(x.Flip(0)) }, tiny, square), ofType("max rows", dt, func(x *T) *T { return x.Max(1) }, tiny, square), ofType("to f32", dt, func(x *T) *T { return x.Cast(ir.F32) }, tiny, square), ofType("argmax rows", dt, func(x *T) *T { return x.Argmax(1) }, tiny, square), ofType("sort rows", dt, func(x *T) *T { return first(x.Sort(1, false)) }, tiny, square),
			ofType("cumsum rows", dt, func(x *T) *T { return x.Cumsum(1) }, tiny, square))
		if dt.IsFloat() {
			add(ofType("softmax", dt, func(x *T) *T { return x.Softmax(1) }, tiny, square), ofType("layer norm", dt, func(x *T) *T { return x.LayerNorm(1, nil, nil, 1e-5) }, tiny, square), ofType("gelu", dt, (*T).Gelu, tiny, square), ofType("exp", dt, (*T).Exp, tiny, square), ofType("sin", dt, (*T).Sin, tiny, square), ofType("tanh", dt, (*T).Tanh, tiny, square))
		}
		add(family{"matmul " + dt.String(), "%dx%dx%d", productOperations, product(dt), []int{3, 4, 5}, [][]int{{500, 500, 500}, {1, 2048, 2048}, {1024, 512, 1024}}})
		add(family{"times transposed " + dt.String(), "%dx%dx%d", productOperations, func(g *tensor.Graph, d []int) *T {
			return g.Input("x", dt, d[0], d[1]).MatMul(g.Input("y", dt, d[2], d[1]).Transpose(0, 1))
		}, []int{3, 4, 5}, [][]int{{1, 2048, 2048}, {500, 500, 500}}})
	}
	add(family{"einsum bqhd,bkhd->bhqk", "%dx%dx%dx%dx%d", nil, func(g *tensor.Graph, d []int) *T {
		return tensor.Einsum("bqhd,bkhd->bhqk", input(g, "x", d[0], d[1], d[3], d[4]), input(g, "y", d[0], d[2], d[3], d[4]))
	}, []int{1, 2, 3, 2, 4}, [][]int{{2, 256, 256, 8, 64}}})
	add(family{"einsum bhqk,bkhd->bqhd", "%dx%dx%dx%dx%d", nil, func(g *tensor.Graph, d []int) *T {
		return tensor.Einsum("bhqk,bkhd->bqhd", input(g, "x", d[0], d[3], d[1], d[2]), input(g, "y", d[0], d[2], d[3], d[4]))
	}, []int{1, 2, 3, 2, 4}, [][]int{{2, 256, 256, 8, 64}}})
	add(family{"matmul, heads merged", "%dx%dx%dx%d", nil, func(g *tensor.Graph, d []int) *T {
		return input(g, "x", d[0], d[1], d[2]).MatMul(input(g, "y", d[0], d[2], d[3])).Transpose(0, 1).Reshape(d[1], d[0]*d[3])
	}, []int{2, 3, 4, 9}, [][]int{{8, 128, 64, 64}, {16, 512, 512, 64}, {14, 501, 501, 37}, {32, 1, 1000, 128}}})
	add(family{"bilinear bi,oij,bj->bo", "%dx%dx%d", func(d []int) float64 { return productOperations([]int{d[0], d[1] * d[1], d[2]}) }, func(g *tensor.Graph, d []int) *T {
		return tensor.Einsum("bi,oij,bj->bo", input(g, "x", d[0], d[1]), input(g, "w", d[2], d[1], d[1]), input(g, "y", d[0], d[1]))
	}, []int{2, 3, 4}, [][]int{{64, 128, 64}}})
	add(family{"matmul", "%dx%dx%d f32", productOperations, product(ir.F32), []int{3, 4, 5}, [][]int{{1, 4096, 4096}, {4096, 4096, 1}, {2, 4096, 4096}, {100000, 64, 64}, {64, 100000, 64}, {64, 100003, 64}, {64, 1024, 64}, {64, 4096, 64}, {64, 16384, 64}, {128, 1024, 128}, {128, 4096, 128}, {128, 16384, 128}, {256, 2048, 256}, {256, 8192, 256}, {500, 4096, 500}, {16, 8192, 512}, {35, 6272, 577}, {1024, 8192, 64}, {1000, 3, 1000}, {3, 1000, 100000}, {1, 100000, 10}, {7, 1000, 9}, {32, 4096, 1000}, {4096, 37, 4}, {10, 10, 100000}}})
	add(family{"outer", "%dx%d", nil, func(g *tensor.Graph, d []int) *T {
		return input(g, "x", d[0], 1).Mul(input(g, "y", 1, d[1]))
	}, []int{3, 4}, [][]int{square}})
	add(family{"kron", "%dx%d", nil, func(g *tensor.Graph, d []int) *T { return input(g, "x", d...).Kron(input(g, "y", d...)) }, []int{3, 4}, [][]int{{32, 33}}})
	add(family{"cross", "%dx%d", nil, twoInputs(func(x, y *T) *T { return x.Cross(y, 1) }), []int{5, 3}, [][]int{{5, 3}, {100000, 3}}})
	for _, p := range []float64{1, 2, 3} {
		add(family{"cdist", "%dx%d of %d, p=" + string('0'+rune(p)), func(d []int) float64 { return 1.5 * productOperations([]int{d[0], d[2], d[1]}) }, func(g *tensor.Graph, d []int) *T {
			return input(g, "x", d[0], d[2]).CDist(input(g, "y", d[1], d[2]), p)
		}, []int{3, 4, 5}, [][]int{{500, 600, 32}, {2000, 2000, 3}}})
	}
	for _, f := range []struct {
		name  string
		apply func(x *T) *T
		sizes [][]int
	}{
		{"cholesky", func(x *T) *T { return spd(x).Cholesky() }, [][]int{{64, 64}, {256, 256}}}, {"inverse", func(x *T) *T { return spd(x).Inverse() }, [][]int{{64, 64}, {256, 256}}}, {"det", func(x *T) *T { return x.Det() }, [][]int{{64, 64}, {256, 256}}},
		{"qr", func(x *T) *T { return first(x.QR()) }, [][]int{{64, 64}, {200, 100}}}, {"eigh", func(x *T) *T { return first(spd(x).Eigh()) }, [][]int{{32, 32}, {64, 64}}}, {"svd", func(x *T) *T { _, s, _ := x.SVD(); return s }, [][]int{{32, 32}, {64, 48}}}, {"solve", func(x *T) *T { return spd(x).Solve(x) }, [][]int{{64, 64}, {256, 256}}},
	} {
		add(oneOf(f.name, f.apply, []int{4, 4}, f.sizes...))
	}
	integers := func(name, format string, tiny []int, build func(g *tensor.Graph, d []int) *T, sizes ...[]int) {
		add(family{name, format, nil, build, tiny, sizes})
	}
	integers("bincount", "%d to %d", []int{20, 5}, func(g *tensor.Graph, d []int) *T { return g.Input("x", ir.I32, d[0]).Bincount(d[1]) }, []int{1 << 20, 256}, []int{1 << 20, 10}, []int{100000, 50000})
	integers("one hot", "%d to %d", []int{20, 5}, func(g *tensor.Graph, d []int) *T { return g.Input("x", ir.I32, d[0]).OneHot(d[1], ir.F32) }, []int{1000, 1000}, []int{100000, 10})
	integers("search sorted", "%d in %d", []int{20, 5}, func(g *tensor.Graph, d []int) *T {
		return input(g, "x", d[1]).SearchSorted(input(g, "y", d[0]), false)
	}, []int{100000, 1000}, []int{1000, 100000})
	integers("unique", "%d of %d", []int{20, 5}, func(g *tensor.Graph, d []int) *T { return g.Input("x", ir.I32, d[0]).Unique(d[1]).Values }, []int{10000, 1000}, []int{100000, 100})
	integers("scatter add rows", "%dx%d to %d", []int{20, 5, 6}, func(g *tensor.Graph, d []int) *T {
		return input(g, "x", d[2], d[1]).ScatterElementsAdd(0, g.Input("i", ir.I32, d[0], d[1]), input(g, "y", d[0], d[1]))
	}, []int{1000, 512, 600})
	integers("scatter max", "%d to %d", []int{20, 6}, func(g *tensor.Graph, d []int) *T {
		return input(g, "x", d[1]).ScatterElementsReduce(0, g.Input("i", ir.I32, d[0]), input(g, "y", d[0]), tensor.ScatterMax, true)
	}, []int{100000, 1000})
	integers("take along rows", "%dx%d", []int{5, 6}, func(g *tensor.Graph, d []int) *T {
		return input(g, "x", d...).GatherElements(1, g.Input("i", ir.I32, d...))
	}, square)
	integers("take along columns", "%dx%d", []int{5, 6}, func(g *tensor.Graph, d []int) *T {
		return input(g, "x", d...).GatherElements(0, g.Input("i", ir.I32, d...))
	}, square)
	integers("ctc", "%d frames, %d of %d, %d long", []int{6, 2, 5, 2}, func(g *tensor.Graph, d []int) *T {
		return input(g, "x", d[0], d[1], d[2]).LogSoftmax(2).CTCLoss(g.Input("y", ir.I32, d[1], d[3]), g.Input("s", ir.I32, d[1]), g.Input("l", ir.I32, d[1]))
	}, []int{100, 16, 40, 20})
	integers("rotary", "%dx%dx%dx%d", []int{1, 2, 4, 6}, func(g *tensor.Graph, d []int) *T { return input(g, "x", d...).Rotary(tensor.RotaryOptions{}) }, []int{2, 8, 512, 64})
	integers("random normal", "%d", []int{20}, func(g *tensor.Graph, d []int) *T { return g.Random(1).Normal(0, 1, d[0]) }, []int{1 << 20})
	integers("dropout", "%dx%d", []int{5, 6}, func(g *tensor.Graph, d []int) *T {
		return g.Random(1).Bernoulli(0.9, d...).Where(input(g, "x", d...), input(g, "z", 1, 1))
	}, square)
	integers("lstm step", "%dx%d", []int{2, 4}, func(g *tensor.Graph, d []int) *T {
		x, h, c := input(g, "x", d...), input(g, "h", d...), input(g, "c", d...)
		gates := x.Linear(input(g, "w", 4*d[1], d[1])).Add(h.Linear(input(g, "u", 4*d[1], d[1]))).Add(input(g, "b", 4*d[1]))
		p := gates.Chunk(1, 4)
		return p[0].Sigmoid().Mul(p[2].Tanh()).Add(p[1].Sigmoid().Mul(c)).Tanh().Mul(p[3].Sigmoid())
	}, []int{64, 512}, []int{1, 512})
	integers("moe soft", "%dx%d", []int{3, 4}, func(g *tensor.Graph, d []int) *T {
		x := input(g, "x", d...)
		gate := x.Linear(input(g, "r", 4, d[1])).Softmax(1)
		var sum *T
		for e := range 4 {
			y := x.Linear(input(g, "w"+string('0'+rune(e)), d[1], d[1])).Mul(gate.SliceInts(1, e, 1))
			if sum == nil {
				sum = y
			} else {
				sum = sum.Add(y)
			}
		}
		return sum
	}, []int{128, 256})
	return list
}

func spd(x *T) *T {
	n := x.Extent(0)
	return x.Add(x.Transpose(0, 1)).Add(x.Graph().Eye(ir.F32, n).MulScalar(float64(2 * n)))
}
