package testkit

import (
	"math"

	"tgc/ir"
	"tgc/tensor"
)

// oneHitOp folds a row of which an equation of indices leaves one element at
// most: a class of a loss, a diagonal, an element of a flattened position.
func oneHitOp(b *builder) *tensor.Tensor {
	rows, n := b.intRange("rows", 1, 3), b.upTo("row", 4, 40)
	x := b.input(ir.F32, rows, n)
	position := b.g.Iota(ir.I32, x.Dim(1))
	var hit *tensor.Tensor
	switch b.intRange("equation", 0, 3) {
	case 0: // one class a row, some outside
		hit = b.inputInts(ir.I32, -1, int64(n), rows, 1).Eq(position)
	case 1: // every second position at most
		hit = b.inputInts(ir.I64, -1, int64(2*n), rows, 1).Cast(ir.I32).Eq(position.MulScalar(2).AddScalar(1))
	case 2: // a diagonal
		hit = position.AddScalar(float64(b.intRange("offset", 0, 4) - 2)).Eq(b.g.Iota(ir.I32, x.Dim(0)).Unsqueeze(1))
	default: // a position as row and column, added over both
		column := b.inputInts(ir.I32, 0, 3, rows, n)
		flat := b.g.Iota(ir.I32, x.Dim(0)).Unsqueeze(1).MulScalar(4).Add(column)
		return flat.Eq(b.g.Iota(ir.I32, b.g.Dims(rows * 4)[0]).Reshape(rows*4, 1, 1)).Where(x, b.g.Scalar(ir.F32, 0)).Sum(1, 2)
	}
	if b.chance("maximum") {
		return hit.Where(x, b.g.Scalar(ir.F32, math.Inf(-1))).Max(1).Maximum(b.g.Scalar(ir.F32, -9))
	}
	zero := b.g.Scalar(ir.F32, 0)
	if b.chance("negated") {
		return hit.Where(x, zero).Neg().Sum(1)
	}
	return hit.Where(x.Mul(x), zero).Sum(1)
}

// scatterOp adds rows or columns at indices, some outside: the axis that stays
// in place needs no loop.
func scatterOp(b *builder) *tensor.Tensor {
	size, width, points := b.intRange("size", 1, 4), b.upTo("width", 4, 40), b.intRange("points", 1, 4)
	at, along := b.inputInts(ir.I32, -1, int64(size), points), b.g.Iota(ir.I32, b.g.Dims(width)[0])
	base, values := b.input(ir.F32, size, width), b.input(ir.F32, points, width)
	rows, columns := at.Unsqueeze(1), along.Unsqueeze(0)
	if b.chance("columns") {
		base, values = b.input(ir.F32, width, size), b.input(ir.F32, width, points)
		rows, columns = along.Unsqueeze(1), at.Unsqueeze(0)
	}
	if b.chance("shifted") {
		columns = columns.AddScalar(1)
	}
	shape := values.Shape()
	src := []*ir.UOp{base.Node(), values.Node(), rows.ExpandDims(shape...).Node(), columns.ExpandDims(shape...).Node()}
	return b.g.Wrap(b.g.Arena().Make(ir.OpScatterAdd, ir.F32, nil, src...))
}
