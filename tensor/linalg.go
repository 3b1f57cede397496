package tensor

import (
	"math"

	"tgc/ir"
)

// Linear algebra of matrices [.., n, n] by blocks of panel columns or rows: what takes n^3
// operations are matrix products, beside n small steps of some kernels each. Steps are the same
// kernels wherever possible (see Loop), so that few are compiled. f16 and bf16 are computed in
// f32 and rounded once. Derivatives are those of the functions, not of
// their steps.

// panel is how many columns are eliminated one by one before the rest follows by matrix
// products.
const panel = 16

// square checks a matrix [.., n, n] of floats.
func (t *Tensor) square() (n int, ok bool) {
	if !t.ok() {
		return 0, false
	}
	shape, constant := t.Shape().Ints()
	rank := len(shape)
	if !constant || rank < 2 || shape[rank-1] != shape[rank-2] || !t.DType().IsFloat() {
		t.graph.fail("", "%s, want floats [.. n n]", t)
		return 0, false
	}
	return shape[rank-1], true
}

// Inverse is the inverse of matrices [.., n, n], by Gauss-Jordan elimination with partial
// pivoting; NaN where there is none.
func (t *Tensor) Inverse() *Tensor {
	n, ok := t.square()
	if !ok {
		return t.bad()
	}
	return t.widely(func(a *Tensor) *Tensor {
		out, _ := a.eliminate(a.graph.Eye(a.DType(), n).expandTo(a.shape()))
		return out.WithGradient([]*Tensor{a}, func(x, g *Tensor) []*Tensor {
			return []*Tensor{x.adjoint().MatMul(g).Contiguous().MatMul(x.adjoint()).Neg()}
		})
	})
}

// Solve is X with A X = B for t, which is A [.., n, n], and B [.., n, m]: see Inverse.
func (t *Tensor) Solve(b *Tensor) *Tensor {
	n, ok := t.square()
	if !ok || !b.ok() {
		return t.bad()
	}
	x, y := t.promoted(b)
	if !y.ok() || y.Rank() < 2 || y.Extent(-2) != n {
		return t.graph.fail("", "%s of %s, want [.. n n] and [.. n m]", t, b)
	}
	lead, ok := t.graph.broadcast(x.shape()[:x.Rank()-2], y.shape()[:y.Rank()-2])
	if !ok {
		return t.graph.fail("", "%s of %s: they do not broadcast", t, b)
	}
	x = x.expandTo(append(append(Shape{}, lead...), x.shape()[x.Rank()-2:]...))
	y = y.expandTo(append(append(Shape{}, lead...), y.shape()[y.Rank()-2:]...))
	if dtype := x.DType(); isShort(dtype) {
		return x.Cast(ir.F32).solve(y.Cast(ir.F32)).Cast(dtype)
	}
	return x.solve(y)
}

func (t *Tensor) solve(b *Tensor) *Tensor {
	out, _ := t.eliminate(b)
	return out.WithGradient([]*Tensor{t, b}, func(x, g *Tensor) []*Tensor {
		db := t.adjoint().solve(g).Contiguous()
		return []*Tensor{db.MatMul(x.adjoint()).Neg(), db}
	})
}

// Det is the determinant of matrices [.., n, n]. Its derivative is NaN where it is 0.
func (t *Tensor) Det() *Tensor {
	if _, ok := t.square(); !ok {
		return t.bad()
	}
	return t.widely(func(a *Tensor) *Tensor {
		nothing := append(a.Shape()[:a.Rank()-1], a.graph.arena.Index(0))
		_, det := a.eliminate(a.graph.Zeros(a.DType(), 1).Squeeze().fill(nothing))
		return det.WithGradient([]*Tensor{a}, func(d, g *Tensor) []*Tensor {
			factor := d.Mul(g).Unsqueeze(-1).Unsqueeze(-1)
			return []*Tensor{a.Inverse().adjoint().Mul(factor)}
		})
	})
}

// adjoint is the transposed matrix.
func (t *Tensor) adjoint() *Tensor { return t.Transpose(-1, -2) }

// eliminate brings [A B] to [I X], a panel of columns after the other, and returns X and the
// determinant of A. Rows stay where they are: each step picks the row with the largest
// element in its column among those that were not picked.
func (t *Tensor) eliminate(b *Tensor) (x, det *Tensor) {
	g, n, m := t.graph, t.Extent(-1), b.Extent(-1)
	width := min(n, panel)
	if width == 0 {
		return b, g.Full(t.DType(), 1).fill(t.shape()[:t.Rank()-2])
	}
	padded := (n + width - 1) / width * width
	work := t.withIdentity(padded).Cat(-1, b.Pad(-2, 0, padded-n)).Contiguous()
	free := g.Full(ir.Bool, 1).fill(append(work.Shape()[:work.Rank()-1], g.arena.Index(1))) // [.. n 1]
	var rows, pivots []*Tensor
	for at := 0; at < padded; at += width {
		columns := work.SliceInts(-1, at, width).Contiguous()
		var picked, sizes []*Tensor
		picked, sizes, free = columns.pivots(free)
		row := picked[0].Cat(-2, picked[1:]...).Contiguous() // [.. width 1]
		rows, pivots = append(rows, row), append(pivots, sizes...)
		work = work.eliminated(columns, row)
	}
	order := rows[0].Cat(-2, rows[1:]...).Contiguous() // [.. n 1]: of each variable
	all := pivots[0].Cat(-2, pivots[1:]...).Contiguous()
	singular := all.Eq(all.scalar(0)).AnyKeep(-2)
	x = work.SliceInts(-1, padded, m).TakeAlong(-2, order).SliceInts(-2, 0, n)
	x = singular.Where(x.scalar(math.NaN()), x)
	return x, order.parity().Cast(t.DType()).Mul(all.Prod(-1, -2))
}

// withIdentity puts an identity matrix after t, so that it has n rows.
func (t *Tensor) withIdentity(n int) *Tensor {
	own := t.Extent(-1)
	if own == n {
		return t
	}
	i := t.graph.Iota(ir.I32, t.graph.Dims(n)[0])
	added := i.Unsqueeze(1).Eq(i).And(i.scalar(float64(own)).Le(i)) // [n n]
	return added.Where(t.scalar(1), t.Pad(-1, 0, n-own).Pad(-2, 0, n-own))
}

// pivots eliminates the columns of a panel [.. n w] one by one: the row that each step
// picks among the free ones, [.. 1 1], its element there, and what is free afterwards. What a
// step leaves moves to the left by a column, so that all steps are the same kernels; rows that
// were picked are not looked at again.
func (t *Tensor) pivots(free *Tensor) (rows, sizes []*Tensor, left *Tensor) {
	width := t.Extent(-1)
	number := t.graph.axisIota(ir.I32, t.shape(), t.Rank()-2) // [1 n 1]
	t, free = t.Contiguous(), free.Contiguous()
	for j := range width {
		column := t.SliceInts(-1, 0, 1)
		// NaN is picked first, so that it is not lost.
		size := free.Where(column.Abs(), t.scalar(-1))
		row := size.Argmax(-2).Unsqueeze(-2).Contiguous()
		here := number.Eq(row) // [.. n 1]
		pivotRow := here.Where(t, t.scalar(0)).SumKeep(-2).Contiguous()
		pivot := pivotRow.SliceInts(-1, 0, 1)
		rows, sizes = append(rows, row), append(sizes, pivot)
		free = free.And(here.Not()).Contiguous()
		if j+1 < width {
			change := column.Div(pivot.nonzero()).Mul(pivotRow)
			t = t.Sub(change).SliceInts(-1, 1, width-1).Pad(-1, 0, 1).Contiguous()
		}
	}
	return rows, sizes, free
}

// nonzero is t with 1 in place of 0.
func (t *Tensor) nonzero() *Tensor { return t.Eq(t.scalar(0)).Where(t.scalar(1), t) }

// eliminated carries out on all columns what the steps on a panel did: the rows p that they
// picked become X = D^-1 M[p], with D the panel's part of them, and others lose panel X.
func (t *Tensor) eliminated(columns, rows *Tensor) *Tensor {
	here := t.graph.axisIota(ir.I32, t.shape(), t.Rank()-2).Eq(rows.adjoint()) // [.. n w]
	picked := here.AnyKeep(-1)                                                 // [.. n 1]
	change := picked.Where(here.Where(t.scalar(1), t.scalar(0)), columns.Neg()).Contiguous()
	block := columns.TakeAlong(-2, rows).Contiguous()
	x := block.smallInverse().MatMul(t.TakeAlong(-2, rows).Contiguous()).Contiguous()
	return picked.Where(t.scalar(0), t).Add(change.MatMul(x)).Contiguous()
}

// smallInverse is the inverse of a block whose rows partial pivoting has put in order, so
// that its own elimination needs none. Each step exchanges the first variable of w for what it
// is to be and moves it to the end, so that all steps are one kernel and the last has all in
// place again.
func (t *Tensor) smallInverse() *Tensor {
	n := t.Extent(-1)
	top := t.graph.axisIota(ir.I32, t.shape(), t.Rank()-2).Eq(t.graph.Scalar(ir.I32, 0))
	left := t.graph.axisIota(ir.I32, t.shape(), t.Rank()-1).Eq(t.graph.Scalar(ir.I32, 0))
	one := t.scalar(1)
	return Loop(n, func(state []*Tensor) []*Tensor {
		w := state[0]
		row, column := w.SliceInts(-2, 0, 1), w.SliceInts(-1, 0, 1)
		pivot := row.SliceInts(-1, 0, 1).nonzero()
		row = left.Where(one, row).Div(pivot)
		rest := left.Where(t.scalar(0), w).Sub(column.Mul(row))
		return []*Tensor{top.Where(row, rest).Roll([]int{-1, -1}, []int{-1, -2})}
	}, t)[0]
}

// parity is 1 for permutations [.. n 1] of an even number of exchanges, else -1, [..].
func (t *Tensor) parity() *Tensor {
	n := t.Dim(-2)
	i := t.graph.Iota(ir.I32, n)
	turned := t.adjoint().Lt(t).And(i.Unsqueeze(1).Lt(i)) // [.. n n]: i < j and p_i > p_j
	odd := turned.Where(t.scalar(1), t.scalar(0)).Sum(-1, -2).And(t.scalar(1))
	return t.scalar(1).Sub(odd.MulScalar(2))
}

// Cholesky is the lower triangular L with L L^T = t for symmetric positive definite
// matrices [.., n, n], of which the upper triangle is not read; NaN where a matrix is none.
func (t *Tensor) Cholesky() *Tensor {
	if _, ok := t.square(); !ok {
		return t.bad()
	}
	return t.widely(func(a *Tensor) *Tensor {
		return a.cholesky().WithGradient([]*Tensor{a}, func(l, g *Tensor) []*Tensor {
			// Murray 2016: with P the lower triangle with half its diagonal,
			// L^-T P(L^T G) L^-1, of which the lower triangle counts twice.
			half := l.adjoint().MatMul(g).Tril(0).Contiguous()
			half = half.Sub(half.Tril(0).Sub(half.Tril(-1)).MulScalar(0.5))
			inverse := l.lowerInverse()
			s := inverse.adjoint().MatMul(half).Contiguous().MatMul(inverse).Contiguous()
			s = s.Add(s.adjoint()).MulScalar(0.5)
			return []*Tensor{s.Tril(0).Add(s.Tril(-1))}
		})
	})
}

// cholesky goes down to blocks of panel rows: the upper left one, what follows of it below,
// and what is left at the lower right.
func (t *Tensor) cholesky() *Tensor {
	n := t.Extent(-1)
	if n <= panel {
		return t.choleskySteps()
	}
	top := (n/2 + panel - 1) / panel * panel
	block := func(row, rows, column, columns int) *Tensor {
		return t.SliceInts(-2, row, rows).SliceInts(-1, column, columns)
	}
	first := block(0, top, 0, top).cholesky().Contiguous()
	below := block(top, n-top, 0, top).MatMul(first.lowerInverse().adjoint()).Contiguous()
	last := block(top, n-top, top, n-top).Sub(below.MatMul(below.adjoint())).Contiguous().cholesky()
	return first.Pad(-1, 0, n-top).Cat(-2, below.Cat(-1, last)).Contiguous()
}

// choleskySteps takes the product of each column with itself off the rest. Each step moves the
// first row and column to the end; what is still to be done are the rows in which left is set.
func (t *Tensor) choleskySteps() *Tensor {
	n := t.Extent(-1)
	if n == 0 {
		return t
	}
	first := t.graph.axisIota(ir.I32, t.shape(), t.Rank()-1).Eq(t.graph.Scalar(ir.I32, 0))
	low := t.Tril(0)
	work := low.Add(low.Tril(-1).adjoint())
	left := t.graph.Full(ir.Bool, 1).fill(append(t.Shape()[:t.Rank()-1], t.graph.arena.Index(1))) // [.. n 1]
	return Loop(n, func(state []*Tensor) []*Tensor {
		w, left := state[0], state[1]
		column := w.SliceInts(-1, 0, 1).Div(w.SliceInts(-1, 0, 1).SliceInts(-2, 0, 1).Sqrt())
		column = left.Where(column, t.scalar(0))
		w = first.Where(column, w.Sub(column.Mul(column.adjoint())))
		return []*Tensor{w.Roll([]int{-1, -1}, []int{-1, -2}), left.SliceInts(-2, 1, n-1).Pad(-2, 0, 1)}
	}, work, left)[0].Tril(0).Contiguous()
}

// lowerInverse is the inverse of lower triangular matrices, block by block.
func (t *Tensor) lowerInverse() *Tensor {
	n := t.Extent(-1)
	if n <= panel {
		return t.smallInverse()
	}
	top := (n/2 + panel - 1) / panel * panel
	first := t.SliceInts(-2, 0, top).SliceInts(-1, 0, top).lowerInverse().Contiguous()
	last := t.SliceInts(-2, top, n-top).SliceInts(-1, top, n-top).lowerInverse().Contiguous()
	between := t.SliceInts(-2, top, n-top).SliceInts(-1, 0, top)
	below := last.MatMul(between.MatMul(first).Contiguous()).Neg().Contiguous()
	return first.Pad(-1, 0, n-top).Cat(-2, below.Cat(-1, last)).Contiguous()
}
