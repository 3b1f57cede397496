package testkit

import (
	"tgc/internal/lists"
	"tgc/ir"
	"tgc/tensor"
)

// foldOps reduce, scan and select.
var foldOps = []maker{
	{"sum", 4, sumOp},
	{"max", 2, maxOp},
	{"prod", 1, prodOp},
	{"mean", 1, meanOp},
	{"cumsum", 1, cumsumOp},
	{"argmax", 1, argmaxOp},
	{"gather", 2, gatherOp},
	{"matmul", 3, matmulOp},
	{"linear", 3, linearOp},
}

// someAxes draws a subset of the axes, at least one.
func (b *builder) someAxes(t *tensor.Tensor) []int {
	axes := lists.Filter(lists.Upto(t.Rank()), func(int) bool { return b.chance("reduce axis") })
	if len(axes) == 0 {
		axes = []int{b.axis(t)}
	}
	return axes
}

func sumOp(b *builder) *tensor.Tensor {
	x := b.float(1)
	if x == nil {
		return nil
	}
	if b.chance("keep") {
		return x.SumKeep(b.someAxes(x)...)
	}
	return x.Sum(b.someAxes(x)...)
}

// maxOp is Max or Min; an empty range gives an infinity, which is not tame.
func maxOp(b *builder) *tensor.Tensor {
	x := b.any(1)
	if x == nil || x.DType() == ir.Bool {
		return nil
	}
	switch b.intRange("kind", 0, 2) {
	case 0:
		return x.Min(b.someAxes(x)...)
	case 1:
		return x.MaxKeep(b.someAxes(x)...)
	}
	return x.Max(b.someAxes(x)...)
}

// prodOp is a product of a few: long ones leave the range of f32 in one order
// and not in another.
func prodOp(b *builder) *tensor.Tensor {
	x := b.float(1)
	if x == nil {
		return nil
	}
	k := b.axis(x)
	if upper(x.Dim(k)) > 12 {
		return nil
	}
	return x.Prod(k)
}

func meanOp(b *builder) *tensor.Tensor {
	x, _ := b.solid(1)
	if x == nil {
		return nil
	}
	return x.Sub(x.MeanKeep(b.axis(x)))
}

func cumsumOp(b *builder) *tensor.Tensor {
	x := b.float(1)
	if x == nil {
		return nil
	}
	return x.Cumsum(b.axis(x))
}

// argmaxOp is only sure where values are exact in every evaluation.
func argmaxOp(b *builder) *tensor.Tensor {
	x, _ := b.solid(1)
	if x == nil {
		return nil
	}
	return x.Argmax(b.axis(x))
}

func gatherOp(b *builder) *tensor.Tensor {
	x, shape := b.solid(1)
	if x == nil {
		return nil
	}
	k := b.axis(x)
	index := b.inputInts(ir.I32, -1, int64(shape[k]), b.intRange("points", 1, 3))
	if b.chance("rank 0 index") {
		index = index.Max()
	}
	return x.Gather(k, index)
}

// matmulOp multiplies a value with its own transpose or a new matrix.
func matmulOp(b *builder) *tensor.Tensor {
	x := b.float(2)
	if x == nil {
		return nil
	}
	if b.chance("with itself") {
		return x.MatMul(x.Transpose(-1, -2))
	}
	shape, ok := constantShape(x)
	if !ok {
		return x.Transpose(-1, -2).MatMul(x)
	}
	return x.MatMul(b.weight(shape[len(shape)-1], b.upTo("columns", 5, 70)))
}

func linearOp(b *builder) *tensor.Tensor {
	x, shape := b.solid(1)
	if x == nil {
		return nil
	}
	rows := b.upTo("rows", 8, 70)
	y := x.Linear(b.weight(rows, shape[len(shape)-1]))
	if b.chance("bias") {
		y = y.Add(b.input(ir.F32, rows))
	}
	return y
}
