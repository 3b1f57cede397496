package microbench

import (
	"fmt"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/tensor"
)

// An everydayOp takes a square matrix to one of the same size, so that any two of
// them are a program.
type everydayOp struct {
	name  string
	apply func(b *builder, x *tensor.Tensor) *tensor.Tensor
}

// builder makes the inputs of a program.
type builder struct {
	graph *tensor.Graph
	n     int // rows and columns
	made  int
}

func (b *builder) input(shape ...int) *tensor.Tensor {
	b.made++
	return b.graph.Input(fmt.Sprint("w", b.made), ir.F32, shape...)
}

// square is a weight.
func (b *builder) square() *tensor.Tensor { return b.input(b.n, b.n) }

// indices are the numbers of rows.
func (b *builder) indices() *tensor.Tensor {
	b.made++
	return b.graph.Input(fmt.Sprint("w", b.made), ir.I32, b.n)
}

// heads is the number of heads of an attention.
const heads = 4

// attention is self-attention of rows with four products with weights.
func (b *builder) attention(x *tensor.Tensor) *tensor.Tensor {
	split := func() *tensor.Tensor { return x.Linear(b.square()).Reshape(b.n, heads, b.n/heads).Transpose(0, 1) }
	y := split().Attention(split(), split(), tensor.AttentionOptions{})
	return y.Transpose(0, 1).Reshape(b.n, b.n).Linear(b.square())
}

// without builds ops that need nothing but the matrix.
func without(apply func(x *tensor.Tensor) *tensor.Tensor) func(*builder, *tensor.Tensor) *tensor.Tensor {
	return func(_ *builder, x *tensor.Tensor) *tensor.Tensor { return apply(x) }
}

// everyday are the ops of which pairs are made.
var everyday = []everydayOp{
	{"linear", func(b *builder, x *tensor.Tensor) *tensor.Tensor { return x.Linear(b.square()) }},
	{"matmul", func(b *builder, x *tensor.Tensor) *tensor.Tensor { return x.MatMul(b.square()) }},
	{"gram", without(func(x *tensor.Tensor) *tensor.Tensor { return x.MatMul(x.Transpose(0, 1)) })},
	{"square", without(func(x *tensor.Tensor) *tensor.Tensor { return x.MatMul(x) })},
	{"conv", func(b *builder, x *tensor.Tensor) *tensor.Tensor {
		return x.Reshape(1, 1, b.n, b.n).Conv(b.input(1, 1, 3, 3), nil, tensor.ConvOptions{Padding: []int{1}}).Reshape(b.n, b.n)
	}},
	{"attention", func(b *builder, x *tensor.Tensor) *tensor.Tensor { return b.attention(x.LayerNorm(1, nil, nil, 1e-5)) }},
	{"softmax", without(func(x *tensor.Tensor) *tensor.Tensor { return x.Softmax(-1) })},
	{"softmax columns", without(func(x *tensor.Tensor) *tensor.Tensor { return x.Softmax(0) })},
	{"log softmax", without(func(x *tensor.Tensor) *tensor.Tensor { return x.LogSoftmax(-1) })},
	{"log sum exp", without(func(x *tensor.Tensor) *tensor.Tensor { return x.Sub(x.LogSumExpKeep(-1)) })},
	{"layer norm", without(func(x *tensor.Tensor) *tensor.Tensor { return x.LayerNorm(1, nil, nil, 1e-5) })},
	{"rms norm", without(func(x *tensor.Tensor) *tensor.Tensor { return x.RMSNorm(nil, 1e-5) })},
	{"center columns", without(func(x *tensor.Tensor) *tensor.Tensor { return x.Sub(x.MeanKeep(0)) })},
	{"norm columns", without(func(x *tensor.Tensor) *tensor.Tensor {
		return x.Sub(x.MeanKeep(0)).Div(x.StdKeep(0, 0).AddScalar(1e-5))
	})},
	{"sum of rows", without(func(x *tensor.Tensor) *tensor.Tensor { return x.Div(x.SumKeep(-1).AddScalar(1e3)) })},
	{"largest of rows", without(func(x *tensor.Tensor) *tensor.Tensor { return x.Sub(x.MaxKeep(-1)) })},
	{"cumsum", without(func(x *tensor.Tensor) *tensor.Tensor { return x.Cumsum(-1) })},
	{"cumsum columns", without(func(x *tensor.Tensor) *tensor.Tensor { return x.Cumsum(0) })},
	{"sort", without(func(x *tensor.Tensor) *tensor.Tensor {
		values, _ := x.Sort(-1, false)
		return values
	})},
	{"top mask", func(b *builder, x *tensor.Tensor) *tensor.Tensor {
		values, _ := x.TopK(4, -1, true)
		return x.Ge(values.Cut(tensor.Whole(), tensor.Between(3, 4))).Where(x, x.MulScalar(0))
	}},
	{"embed argmax", func(b *builder, x *tensor.Tensor) *tensor.Tensor { return b.square().Gather(0, x.Argmax(-1)) }},
	{"gather", func(b *builder, x *tensor.Tensor) *tensor.Tensor {
		return x.Gather(0, b.indices())
	}},
	{"transpose", without(func(x *tensor.Tensor) *tensor.Tensor { return x.Transpose(0, 1) })},
	{"flip", without(func(x *tensor.Tensor) *tensor.Tensor { return x.Flip(1) })},
	{"shift", func(b *builder, x *tensor.Tensor) *tensor.Tensor {
		return x.Pad(1, 1, 0).Cut(tensor.Whole(), tensor.Between(0, b.n))
	}},
	{"roll", without(func(x *tensor.Tensor) *tensor.Tensor { return x.Roll([]int{1, 3}, []int{0, 1}) })},
	{"pool", func(b *builder, x *tensor.Tensor) *tensor.Tensor {
		return x.Reshape(1, 1, b.n, b.n).MaxPool([]int{3, 3}, tensor.PoolOptions{Stride: []int{1}, Padding: []int{1}}).Reshape(b.n, b.n)
	}},
	{"bias", func(b *builder, x *tensor.Tensor) *tensor.Tensor { return x.Add(b.input(b.n)) }},
	{"residual", func(b *builder, x *tensor.Tensor) *tensor.Tensor { return x.Add(b.square()) }},
	{"relu", without((*tensor.Tensor).Relu)},
	{"gelu", without((*tensor.Tensor).Gelu)},
}

// Ops lists the names of the ops of which Pairs are made.
func Ops() []string {
	return lists.Map(everyday, func(op everydayOp) string { return op.name })
}
