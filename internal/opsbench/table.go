package main

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"tgc/grad"
	"tgc/internal/lists"
	"tgc/ir"
	"tgc/tensor"
)

// family is a row of the table: an operation and the sizes that it is measured at.
type family struct {
	name   string
	format string // of its sizes
	// operations counts additions and products, two in a multiply-add; nil: the bytes
	// of inputs and results alone bound the time.
	operations func(d []int) float64
	build      func(g *tensor.Graph, d []int) *tensor.Tensor
	tiny       []int // sizes for the test
	sizes      [][]int
}

// operation is a family at one size.
type operation struct {
	*family
	size []int
}

func (o operation) String() string {
	args := lists.Map(o.size, func(n int) any { return n })
	return o.name + " " + fmt.Sprintf(o.format, args...)
}

// indices is what integers of inputs stay below, so that they are indices of any axis that
// a family has them for: the second size.
func (o operation) indices() int { return o.size[min(1, len(o.size)-1)] }

// named are the operations whose names hold one of the texts, all without any.
func named(texts []string) []operation {
	var list []operation
	for i := range table {
		for _, size := range table[i].sizes {
			o := operation{&table[i], size}
			hit := len(texts) == 0
			for _, text := range texts {
				hit = hit || strings.Contains(o.String(), text)
			}
			if hit {
				list = append(list, o)
			}
		}
	}
	return list
}

// tiny are all operations at the sizes for tests.
func tiny() []operation {
	var list []operation
	for i := range table {
		list = append(list, operation{&table[i], table[i].tiny})
	}
	return list
}

func input(g *tensor.Graph, name string, shape ...int) *tensor.Tensor {
	return g.Input(name, ir.F32, shape...)
}

// of applies a function to an input of the sizes.
func of(apply func(x *tensor.Tensor) *tensor.Tensor) func(g *tensor.Graph, d []int) *tensor.Tensor {
	return func(g *tensor.Graph, d []int) *tensor.Tensor { return apply(input(g, "x", d...)) }
}

// along applies a function along the axis that the last number names.
func along(apply func(x *tensor.Tensor, axis int) *tensor.Tensor) func(g *tensor.Graph, d []int) *tensor.Tensor {
	return func(g *tensor.Graph, d []int) *tensor.Tensor {
		last := len(d) - 1
		return apply(input(g, "x", d[:last]...), d[last])
	}
}

// transposeOf transposes a matrix of a type.
func transposeOf(dtype ir.DType) func(g *tensor.Graph, d []int) *tensor.Tensor {
	return func(g *tensor.Graph, d []int) *tensor.Tensor { return g.Input("x", dtype, d...).Transpose(0, 1) }
}

// product multiplies [m k] and [k n] of a type.
func product(dtype ir.DType) func(g *tensor.Graph, d []int) *tensor.Tensor {
	return func(g *tensor.Graph, d []int) *tensor.Tensor {
		return g.Input("x", dtype, d[0], d[1]).MatMul(g.Input("y", dtype, d[1], d[2]))
	}
}

func productOperations(d []int) float64 { return 2 * float64(d[0]) * float64(d[1]) * float64(d[2]) }

// doubleOperations counts those of f64, of which a vector holds half as many, twice.
func doubleOperations(d []int) float64 { return 2 * productOperations(d) }

// Sizes of a convolution.
const (
	convBatch = iota
	convIn
	convSide
	convOut
	convKernel
	convStride
	convPadding
	convGroups
)

func conv(g *tensor.Graph, d []int) *tensor.Tensor {
	w := input(g, "w", d[convOut], d[convIn]/d[convGroups], d[convKernel], d[convKernel])
	return input(g, "x", d[convBatch], d[convIn], d[convSide], d[convSide]).Conv(w, nil,
		tensor.ConvOptions{Padding: []int{d[convPadding]}, Stride: []int{d[convStride]}, Groups: d[convGroups]})
}

func convOperations(d []int) float64 {
	side := (d[convSide]+2*d[convPadding]-d[convKernel])/d[convStride] + 1
	return 2 * float64(d[convBatch]*d[convOut]*side*side*(d[convIn]/d[convGroups])*d[convKernel]*d[convKernel])
}

func convTranspose(g *tensor.Graph, d []int) *tensor.Tensor {
	w := input(g, "w", d[convIn], d[convOut], d[convKernel], d[convKernel])
	return input(g, "x", d[convBatch], d[convIn], d[convSide], d[convSide]).ConvTranspose(w, nil,
		tensor.ConvOptions{Stride: []int{d[convStride]}, Padding: []int{d[convPadding]}})
}

func convTransposeOperations(d []int) float64 {
	return 2 * float64(d[convBatch]*d[convIn]*d[convSide]*d[convSide]*d[convOut]*d[convKernel]*d[convKernel])
}

// Sizes of an attention.
const (
	attBatch = iota
	attHeads
	attQueries
	attKeys
	attSize
)

// attention attends over heads; without a mask or to keys that come no later.
func attention(causal bool) func(g *tensor.Graph, d []int) *tensor.Tensor {
	return func(g *tensor.Graph, d []int) *tensor.Tensor {
		in := func(name string, rows int) *tensor.Tensor {
			return input(g, name, d[attBatch], d[attHeads], rows, d[attSize])
		}
		return in("q", d[attQueries]).Attention(in("k", d[attKeys]), in("v", d[attKeys]), tensor.AttentionOptions{Causal: causal})
	}
}

func attentionOperations(d []int) float64 {
	return 4 * float64(d[attBatch]*d[attHeads]*d[attQueries]*d[attKeys]*d[attSize])
}

func causalOperations(d []int) float64 { return attentionOperations(d) / 2 }

func layerNormGradient(g *tensor.Graph, d []int) *tensor.Tensor {
	x, w := input(g, "x", d...), input(g, "w", d[1])
	y := x.LayerNorm(1, w, input(g, "b", d[1]), 1e-5)
	return grad.Of([]*tensor.Tensor{y}, []*tensor.Tensor{input(g, "t", d...)}, []*tensor.Tensor{x})[0]
}

// exchangeOperations are those of a comparison of two keys and the exchange of keys
// and positions, five instructions, each as long as a multiply-add.
const exchangeOperations = 10

// sortOperations are those of a bitonic network over rows.
func sortOperations(d []int) float64 {
	rows, n := 1, d[len(d)-1]
	for _, extent := range d[:len(d)-1] {
		rows *= extent
	}
	log := bits.Len(uint(n - 1))
	return exchangeOperations * float64(rows*n/2) * float64(log*(log+1)/2)
}

func sorted(x *tensor.Tensor) *tensor.Tensor {
	values, _ := x.Sort(-1, false)
	return values
}

// shapes lists sizes.
func shapes(sizes ...[]int) [][]int { return sizes }

// table has all operations.
var table = slices.Concat(everyday, wide())

// everyday has operations whose sizes are everyday ones and odd ones beside them.
var everyday = []family{
	{"transpose", "%dx%d", nil, transposeOf(ir.F32), []int{5, 3}, shapes(
		[]int{2048, 2048}, []int{2047, 2049}, []int{1021, 4099}, []int{512, 512}, []int{35, 37}, []int{100000, 3},
		[]int{3, 100000}, []int{8, 50000}, []int{1000, 13}, []int{65536, 16})},
	{"transpose f64", "%dx%d", nil, transposeOf(ir.F64), []int{5, 3}, shapes([]int{1021, 1023})},
	{"transpose f16", "%dx%d", nil, transposeOf(ir.F16), []int{5, 3}, shapes([]int{1021, 1023})},
	{"transpose u8", "%dx%d", nil, transposeOf(ir.U8), []int{5, 3}, shapes([]int{1021, 1023})},
	{"transpose gelu", "%dx%d", nil, of(func(x *tensor.Tensor) *tensor.Tensor { return x.Transpose(0, 1).Gelu() }), []int{5, 3}, shapes([]int{1021, 1023})},
	{"transpose add", "%dx%d", nil, func(g *tensor.Graph, d []int) *tensor.Tensor {
		return input(g, "x", d[0], d[1]).Transpose(0, 1).Add(input(g, "y", d[1], d[0]))
	}, []int{5, 3}, shapes([]int{1021, 1023})},
	{"permute", "%dx%dx%d to %d %d %d", nil, func(g *tensor.Graph, d []int) *tensor.Tensor {
		return input(g, "x", d[:3]...).Permute(d[3:]...)
	}, []int{2, 3, 5, 2, 0, 1}, shapes(
		[]int{64, 128, 256, 2, 0, 1}, []int{64, 128, 256, 0, 2, 1}, []int{64, 128, 256, 2, 1, 0}, []int{64, 128, 256, 1, 0, 2},
		[]int{61, 127, 255, 2, 1, 0}, []int{61, 127, 255, 0, 2, 1}, []int{37, 35, 1021, 1, 2, 0}, []int{1, 1000, 37, 0, 2, 1},
		[]int{256, 256, 3, 2, 0, 1}, []int{3, 256, 256, 1, 2, 0})},
	{"channels last", "%dx%dx%dx%d", nil, of(func(x *tensor.Tensor) *tensor.Tensor { return x.Permute(0, 2, 3, 1) }), []int{2, 3, 4, 5}, shapes([]int{8, 128, 12, 64}, []int{8, 64, 56, 56})},
	{"flip rows", "%dx%d", nil, of(func(x *tensor.Tensor) *tensor.Tensor { return x.Flip(1) }), []int{5, 3}, shapes([]int{1021, 1023})},
	{"conv", "%dx%d of %d to %d, kernel %d, stride %d, padding %d, groups %d", convOperations, conv, []int{1, 4, 5, 6, 3, 1, 1, 2}, shapes(
		[]int{1, 64, 56, 64, 3, 1, 1, 1}, []int{8, 64, 56, 64, 3, 1, 0, 1}, []int{1, 61, 55, 67, 3, 1, 1, 1}, []int{1, 3, 224, 64, 7, 2, 3, 1},
		[]int{1, 64, 56, 128, 3, 2, 1, 1}, []int{1, 256, 56, 512, 1, 2, 0, 1}, []int{1, 256, 56, 64, 1, 1, 0, 1}, []int{8, 256, 28, 256, 1, 1, 0, 1},
		[]int{1, 64, 56, 256, 1, 1, 0, 1}, []int{1, 64, 56, 3, 3, 1, 1, 1}, []int{4, 32, 35, 6, 5, 1, 2, 1}, []int{1, 64, 7, 200, 3, 1, 1, 1}, []int{1, 32, 35, 48, 5, 1, 2, 1}, []int{1, 128, 28, 128, 3, 1, 1, 4})},
	{"depthwise", "%dx%d of %d to %d, kernel %d, stride %d, padding %d, groups %d", convOperations, conv, []int{1, 4, 5, 4, 3, 1, 1, 4}, shapes(
		[]int{1, 128, 56, 128, 3, 1, 1, 128}, []int{8, 128, 56, 128, 3, 1, 0, 128}, []int{1, 128, 56, 128, 3, 2, 1, 128},
		[]int{1, 96, 35, 96, 5, 1, 2, 96}, []int{1, 96, 56, 96, 7, 1, 3, 96})},
	{"conv transpose", "%dx%d of %d to %d, kernel %d, stride %d, padding %d", convTransposeOperations, convTranspose, []int{1, 3, 4, 2, 3, 2, 1}, shapes(
		[]int{1, 64, 28, 32, 4, 2, 1}, []int{4, 64, 32, 32, 2, 2, 0}, []int{1, 64, 28, 32, 3, 1, 1}, []int{1, 35, 27, 37, 3, 2, 1})},
	{"matmul", "%dx%dx%d", productOperations, product(ir.F32), []int{3, 4, 5}, shapes([]int{512, 512, 512}, []int{1021, 1021, 1021}, []int{1023, 1025, 1027})},
	{"matmul f64", "%dx%dx%d", doubleOperations, product(ir.F64), []int{3, 4, 5}, shapes(
		[]int{512, 512, 512}, []int{509, 511, 513}, []int{1024, 1024, 1024}, []int{4096, 4096, 1})},
	{"matmul i32", "%dx%dx%d", productOperations, product(ir.I32), []int{3, 4, 5}, shapes([]int{512, 512, 512})},
	{"times transposed", "%dx%dx%d", productOperations, func(g *tensor.Graph, d []int) *tensor.Tensor {
		return input(g, "x", d[0], d[1]).MatMul(input(g, "y", d[2], d[1]).Transpose(0, 1))
	}, []int{3, 4, 5}, shapes(
		[]int{16, 16, 512}, []int{64, 16, 512}, []int{512, 16, 512}, []int{16, 37, 512}, []int{64, 37, 512}, []int{512, 37, 512},
		[]int{16, 64, 512}, []int{64, 64, 512}, []int{512, 64, 512}, []int{16, 256, 512}, []int{64, 256, 512}, []int{512, 256, 512},
		[]int{16, 2048, 512}, []int{64, 2048, 512}, []int{512, 2048, 512}, []int{100, 100, 100}, []int{128, 128, 128},
		[]int{256, 256, 256}, []int{509, 509, 509}, []int{1021, 1021, 1021}, []int{1024, 1024, 1024}, []int{64, 784, 128},
		[]int{64, 256, 10}, []int{128, 768, 3072})},
	{"attention", "%dx%d heads, %d queries, %d keys of %d", attentionOperations, attention(false), []int{1, 2, 3, 4, 5}, shapes(
		[]int{8, 12, 128, 128, 64}, []int{2, 7, 501, 501, 37}, []int{2, 8, 512, 512, 64}, []int{1, 8, 1, 2048, 64},
		[]int{16, 4, 32, 32, 16}, []int{1, 32, 1, 512, 64}, []int{8, 8, 1, 4096, 128}, []int{1, 12, 7, 300, 64}, []int{64, 8, 10, 10, 32},
		[]int{2, 3, 700, 700, 96}, []int{1, 16, 1024, 1024, 128}, []int{1, 8, 512, 512, 160}, []int{1, 4, 1024, 1024, 256}, []int{2, 4, 150, 150, 256},
		[]int{2, 8, 512, 500, 64}, []int{2, 8, 512, 509, 64}, []int{2, 8, 500, 500, 64}, []int{2, 8, 100, 1000, 96}, []int{4, 8, 20, 100, 32}, []int{4, 8, 9, 100, 32})},
	{"causal attention", "%dx%d heads, %d queries, %d keys of %d", causalOperations, attention(true), []int{1, 2, 4, 4, 5}, shapes(
		[]int{1, 8, 1024, 1024, 64}, []int{2, 8, 512, 512, 80}, []int{4, 6, 17, 63, 24})},
	{"cumsum", "%dx%d, axis %d", nil, along((*tensor.Tensor).Cumsum), []int{3, 70, 1}, shapes(
		[]int{1, 1 << 20, 1}, []int{1, 1000003, 1}, []int{1000, 1000, 0}, []int{1000, 1000, 1}, []int{512, 4096, 1},
		[]int{4096, 512, 0}, []int{10000, 64, 1}, []int{10007, 61, 1})},
	{"deviation", "%dx%d, axis %d", nil, along(func(x *tensor.Tensor, axis int) *tensor.Tensor { return x.Std(1, axis) }), []int{3, 70, 1}, shapes([]int{1, 1 << 20, 1})},
	{"cumprod", "%dx%d, axis %d", nil, along((*tensor.Tensor).Cumprod), []int{3, 70, 1}, shapes([]int{1, 1 << 20, 1})},
	{"cummax", "%dx%d, axis %d", nil, along(func(x *tensor.Tensor, axis int) *tensor.Tensor {
		values, _ := x.Cummax(axis)
		return values
	}), []int{3, 70, 1}, shapes([]int{1, 10000, 1}, []int{1, 1 << 20, 1}, []int{1000, 1000, 0}, []int{1000, 1000, 1})},
	{"softmax", "%dx%d, axis %d", nil, along(func(x *tensor.Tensor, axis int) *tensor.Tensor { return x.Softmax(axis) }), []int{3, 5, 1}, shapes(
		[]int{1024, 1024, 1}, []int{512, 512, 1}, []int{4096, 1001, 1}, []int{1001, 4099, 0}, []int{1024, 1024, 0}, []int{1, 1 << 20, 1},
		[]int{16, 1000003, 1}, []int{3, 100000, 1}, []int{1000000, 3, 1}, []int{30000, 35, 1}, []int{35, 1021, 1})},
	{"softmax", "%dx%dx%d, axis %d", nil, along(func(x *tensor.Tensor, axis int) *tensor.Tensor { return x.Softmax(axis) }), []int{3, 5, 2, 1}, shapes([]int{64, 32, 1024, 1})},
	{"cross entropy", "%dx%d", nil, func(g *tensor.Graph, d []int) *tensor.Tensor {
		return input(g, "x", d...).CrossEntropy(g.Input("y", ir.I32, d[0]), tensor.CrossEntropyOptions{})
	}, []int{3, 130}, shapes([]int{64, 32000})},
	{"layer norm", "%dx%d", nil, of(func(x *tensor.Tensor) *tensor.Tensor { return x.LayerNorm(1, nil, nil, 1e-5) }), []int{3, 5}, shapes([]int{4096, 1000}, []int{4096, 768}, []int{4, 1000003}, []int{1000000, 3}, []int{997, 1021})},
	{"layer norm gradient", "%dx%d", nil, layerNormGradient, []int{3, 5}, shapes([]int{4096, 1000})},
	{"argmax", "%dx%d, axis %d", nil, along((*tensor.Tensor).Argmax), []int{3, 5, 1}, shapes([]int{4096, 1001, 1}, []int{1001, 4096, 0}, []int{1, 1 << 20, 1}, []int{1, 1000003, 1}, []int{1000000, 3, 1}, []int{1021, 35, 0})},
	{"sum", "%dx%dx%d, axis %d", nil, along(func(x *tensor.Tensor, axis int) *tensor.Tensor { return x.Sum(axis) }), []int{3, 5, 2, 1}, shapes(
		[]int{127, 255, 129, 1}, []int{1, 4096, 333, 1}, []int{1, 1000003, 3, 1}, []int{1, 1, 1 << 24, 2}, []int{1, 7, 1000003, 2},
		[]int{1, 1000000, 3, 2}, []int{1, 1000000, 4, 2}, []int{1, 1000000, 5, 2}, []int{1, 1000000, 6, 2}, []int{1, 1000000, 7, 2}, []int{1, 1000000, 8, 2}, []int{1, 16, 997, 1}, []int{1, 1021, 35, 1}, []int{1021, 997, 35, 0})},
	{"sum of outer axes", "%dx%dx%d", nil, of(func(x *tensor.Tensor) *tensor.Tensor { return x.Sum(0, 2) }), []int{3, 5, 2}, shapes([]int{127, 255, 129}, []int{32, 64, 3136}, []int{1021, 3, 997}, []int{4096, 512, 2})},
	{"max", "%dx%dx%d, axis %d", nil, along(func(x *tensor.Tensor, axis int) *tensor.Tensor { return x.Max(axis) }), []int{3, 5, 2, 1}, shapes([]int{61, 509, 127, 1})},
	{"max pool 3/2", "%dx%dx%dx%d", nil, of(func(x *tensor.Tensor) *tensor.Tensor {
		return x.MaxPool([]int{3, 3}, tensor.PoolOptions{Stride: []int{2}, Padding: []int{1}})
	}), []int{1, 2, 5, 5}, shapes([]int{1, 64, 112, 112})},
	{"mean pool 2/2", "%dx%dx%dx%d", nil, of(func(x *tensor.Tensor) *tensor.Tensor {
		return x.AvgPool([]int{2, 2}, tensor.PoolOptions{Stride: []int{2}})
	}), []int{1, 2, 5, 5}, shapes([]int{1, 64, 113, 113})},
	{"interpolate linear", "%dx%dx%dx%d to %d", nil, interpolate(tensor.Linear), []int{1, 2, 3, 3, 6}, shapes([]int{1, 64, 56, 56, 112}, []int{1, 64, 56, 56, 97})},
	{"interpolate nearest", "%dx%dx%dx%d to %d", nil, interpolate(tensor.Nearest), []int{1, 2, 3, 3, 6}, shapes([]int{1, 64, 56, 56, 112}, []int{1, 64, 56, 56, 97})},
	{"fft of reals", "%dx%d", nil, of(func(x *tensor.Tensor) *tensor.Tensor {
		z := x.RFFT(-1)
		return z.Mul(tensor.Complex{Real: z.Real, Imag: z.Imag.Neg()}).Real // power
	}), []int{2, 34}, shapes([]int{1024, 1024}, []int{1, 1 << 16})},
	{"fold 3/2", "%dx%dx%d to %d", nil, func(g *tensor.Graph, d []int) *tensor.Tensor {
		return input(g, "x", d[0], d[1], d[2]).Fold([]int{d[3], d[3]}, []int{3, 3}, tensor.PoolOptions{Stride: []int{2}, Padding: []int{1}})
	}, []int{1, 18, 4, 4}, shapes([]int{1, 576, 3136, 112})},
	{"grid sample", "%dx%dx%dx%d", nil, func(g *tensor.Graph, d []int) *tensor.Tensor {
		return input(g, "x", d...).GridSample(input(g, "y", d[0], d[2], d[3], 2))
	}, []int{1, 2, 3, 3}, shapes([]int{1, 16, 112, 112})},
	{"sort", "%dx%d", sortOperations, of(sorted), []int{2, 9}, shapes([]int{256, 256}, []int{512, 512}, []int{10000, 16}, []int{64, 2000}, []int{1, 100000})},
	{"top 8", "%dx%d", nil, of(func(x *tensor.Tensor) *tensor.Tensor {
		values, _ := x.TopK(8, 1, true)
		return values
	}), []int{2, 20}, shapes([]int{64, 1024}, []int{1, 100000}, []int{1000, 35})},
	{"top 50", "%dx%d", nil, of(func(x *tensor.Tensor) *tensor.Tensor {
		values, _ := x.TopK(50, 1, true)
		return values
	}), []int{2, 70}, shapes([]int{1, 32000})},
	{"index add", "%d rows to %d of %d", nil, func(g *tensor.Graph, d []int) *tensor.Tensor {
		return input(g, "x", d[1], d[2]).IndexAdd(0, g.Input("index", ir.I32, d[0]), input(g, "y", d[0], d[2]))
	}, []int{7, 5, 3}, shapes([]int{100000, 10000, 64}, []int{100000, 1000, 64}, []int{100000, 100000, 64}, []int{1000, 100000, 64}, []int{1 << 20, 10, 1})},
	{"scatter", "%d to %d", nil, func(g *tensor.Graph, d []int) *tensor.Tensor {
		return input(g, "x", d[1]).ScatterElements(0, g.Input("index", ir.I32, d[0]), input(g, "y", d[0]))
	}, []int{7, 5}, shapes([]int{100000, 100000}, []int{1000, 1000000})},
	{"gather", "%d rows of %dx%d", nil, func(g *tensor.Graph, d []int) *tensor.Tensor {
		return input(g, "x", d[1], d[2]).Gather(0, g.Input("index", ir.I32, d[0]))
	}, []int{7, 5, 3}, shapes([]int{100000, 10000, 64})},
	{"exponential", "%d", nil, of((*tensor.Tensor).Exp), []int{9}, shapes([]int{1 << 20})},
	{"batched product", "%dx%dx%dx%d", func(d []int) float64 { return float64(d[0]) * productOperations(d[1:]) }, func(g *tensor.Graph, d []int) *tensor.Tensor {
		return input(g, "x", d[0], d[1], d[2]).MatMul(input(g, "y", d[0], d[2], d[3]))
	}, []int{2, 3, 4, 5}, shapes([]int{64, 128, 64, 128}, []int{61, 127, 67, 129})},
	{"distances", "%d to %d of %d", func(d []int) float64 { return 1.5 * productOperations([]int{d[0], d[2], d[1]}) }, func(g *tensor.Graph, d []int) *tensor.Tensor {
		return input(g, "x", d[0], 1, d[2]).Sub(input(g, "y", 1, d[1], d[2])).Square().Sum(-1).Sqrt()
	}, []int{3, 4, 5}, shapes([]int{1000, 1000, 64})},
}

func interpolate(mode tensor.Interpolation) func(g *tensor.Graph, d []int) *tensor.Tensor {
	return func(g *tensor.Graph, d []int) *tensor.Tensor {
		return input(g, "x", d[:4]...).Interpolate(mode, d[4], d[4])
	}
}
