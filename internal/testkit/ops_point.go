package testkit

import (
	"pgregory.net/rapid"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/tensor"
)

// pointOps are elementwise ops, kept tame by clamping what could overflow.
var pointOps = []maker{
	{"binary", 6, binaryOp},
	{"unary", 6, unaryOp},
	{"scalar", 2, scalarOp},
	{"casts", 2, castChain},
	{"where", 2, whereOp},
	{"integer", 2, integerOp},
	{"table", 1, tableOp},
}

type binaryRow struct {
	name string
	f    func(x, y *tensor.Tensor) *tensor.Tensor
}

var floatBinaries = []binaryRow{
	{"add", (*tensor.Tensor).Add}, {"sub", (*tensor.Tensor).Sub}, {"mul", (*tensor.Tensor).Mul},
	{"maximum", (*tensor.Tensor).Maximum}, {"minimum", (*tensor.Tensor).Minimum},
	{"div", func(x, y *tensor.Tensor) *tensor.Tensor { return x.Div(y.Abs().AddScalar(1)) }},
}

// binaryOp combines two values that broadcast, or a value and a new input.
func binaryOp(b *builder) *tensor.Tensor {
	x := b.float(0)
	op := floatBinaries[b.intRange("binary", 0, len(floatBinaries)-1)]
	y := b.pick("other", func(t *tensor.Tensor) bool { return isFloat(t) && broadcasts(x, t) })
	if shape, ok := constantShape(x); ok && b.chance("new operand") {
		for k := range shape {
			if b.chance("extent 1") {
				shape[k] = 1
			}
		}
		y = b.input(ir.F32, shape[b.intRange("dropped axes", 0, len(shape)):]...)
	}
	if b.chance("swap") {
		x, y = y, x
	}
	return op.f(x, y)
}

// broadcasts is numpy's rule.
func broadcasts(x, y *tensor.Tensor) bool {
	a, b := x.Shape(), y.Shape()
	for i, j := len(a)-1, len(b)-1; i >= 0 && j >= 0; i, j = i-1, j-1 {
		if a[i] != b[j] && !a[i].IsInt(1) && !b[j].IsInt(1) {
			return false
		}
	}
	return true
}

var floatUnaries = []func(x *tensor.Tensor) *tensor.Tensor{
	(*tensor.Tensor).Neg, (*tensor.Tensor).Abs, (*tensor.Tensor).Silu, (*tensor.Tensor).Sigmoid,
	(*tensor.Tensor).Tanh, (*tensor.Tensor).Gelu, (*tensor.Tensor).Sin, (*tensor.Tensor).Floor,
	(*tensor.Tensor).Contiguous,
	func(x *tensor.Tensor) *tensor.Tensor { return x.Minimum(scalarLike(x, 3)).Exp() },
	func(x *tensor.Tensor) *tensor.Tensor { return x.Abs().Sqrt() },
	func(x *tensor.Tensor) *tensor.Tensor { return x.Mul(x).AddScalar(0.5).Rsqrt() },
	func(x *tensor.Tensor) *tensor.Tensor { return x.Abs().AddScalar(0.5).Recip() },
	func(x *tensor.Tensor) *tensor.Tensor { return x.Abs().AddScalar(1).Log() },
}

func scalarLike(x *tensor.Tensor, v float64) *tensor.Tensor { return x.Graph().Scalar(x.DType(), v) }

func unaryOp(b *builder) *tensor.Tensor {
	return floatUnaries[b.intRange("unary", 0, len(floatUnaries)-1)](b.float(0))
}

func scalarOp(b *builder) *tensor.Tensor {
	v := rapid.SampledFrom([]float64{-1, 0, 1, 2, 0.5, -0.75, 0.3}).Draw(b.t, "scalar")
	if b.chance("multiply") {
		return b.float(0).MulScalar(v)
	}
	return b.float(0).AddScalar(v)
}

// castChain goes through other dtypes and comes back to f32.
func castChain(b *builder) *tensor.Tensor {
	x := b.float(0)
	for range b.intRange("casts", 1, 2) {
		x = x.Cast(rapid.SampledFrom([]ir.DType{ir.F16, ir.BF16, ir.F64, ir.I32, ir.I8, ir.I16, ir.I64}).Draw(b.t, "dtype"))
	}
	if b.chance("arithmetic there") {
		x = x.Add(x)
	}
	return x.Cast(ir.F32)
}

// whereOp selects by a comparison; nested conditions come from And and Not.
func whereOp(b *builder) *tensor.Tensor {
	x := b.float(0)
	y := b.pick("other", func(t *tensor.Tensor) bool { return isFloat(t) && broadcasts(x, t) })
	c := x.Lt(y)
	switch b.intRange("condition", 0, 4) {
	case 1:
		c = x.Eq(y).Not()
	case 2:
		c = x.Le(scalarLike(x, 0)).And(y.Lt(scalarLike(x, 1)))
	case 3:
		if x.Rank() == 0 {
			return nil
		}
		at := b.g.Iota(ir.I32, x.Dim(-1))
		c = at.Lt(b.g.Scalar(ir.I32, float64(b.intRange("limit", 0, 6))))
		return c.Where(x, scalarLike(x, 0))
	case 4:
		return c.Cast(ir.F32)
	}
	return c.Where(x, y)
}

var intBinaries = []binaryRow{
	{"add", (*tensor.Tensor).Add}, {"sub", (*tensor.Tensor).Sub}, {"mul", (*tensor.Tensor).Mul},
	{"and", (*tensor.Tensor).And}, {"or", (*tensor.Tensor).Or}, {"xor", (*tensor.Tensor).Xor},
	{"shl", (*tensor.Tensor).Shl}, {"shr", (*tensor.Tensor).Shr},
	{"floordiv", (*tensor.Tensor).FloorDiv}, {"floormod", (*tensor.Tensor).FloorMod},
	{"maximum", (*tensor.Tensor).Maximum}, {"minimum", (*tensor.Tensor).Minimum},
}

// integerOp chains ops on small integers and returns to f32, or stays.
func integerOp(b *builder) *tensor.Tensor {
	dtype := rapid.SampledFrom([]ir.DType{ir.I32, ir.I8, ir.U8, ir.I16, ir.U16, ir.U32, ir.I64}).Draw(b.t, "integer dtype")
	shape := b.shape("integers")
	x := b.pick("value", func(t *tensor.Tensor) bool { return t.DType() == dtype })
	if x == nil {
		x = b.input(dtype, shape...)
	}
	for range b.intRange("integer ops", 1, 3) {
		y := b.g.Scalar(dtype, float64(b.intRange("operand", 0, 7)))
		if b.chance("tensor operand") {
			y = x
		}
		x = intBinaries[b.intRange("integer op", 0, len(intBinaries)-1)].f(x, y)
	}
	if b.chance("as float") {
		return x.FloorMod(b.g.Scalar(dtype, 11)).Cast(ir.F32)
	}
	return x
}

// tableOp adds or multiplies a constant vector, or reads one through indices.
func tableOp(b *builder) *tensor.Tensor {
	x, shape := b.solid(1)
	if x == nil {
		return nil
	}
	n := shape[len(shape)-1]
	values := lists.Make(n, func(int) float64 { return float64(float32(b.rng.NormFloat64())) })
	table := b.g.Table(ir.F32, values, n)
	if b.chance("indexed") {
		at := b.inputInts(ir.I32, 0, int64(n-1), shape...)
		return table.Gather(0, at).Add(x)
	}
	return x.Mul(table)
}
