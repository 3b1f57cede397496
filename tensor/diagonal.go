package tensor

import (
	"tgc/internal/lists"
	"tgc/ir"
)

// Tril keeps, of the last two axes, the columns j of row i with j-i <= k;
// zeros elsewhere.
func (t *Tensor) Tril(k int) *Tensor {
	return t.triangle("tril", func(row, column *Tensor) *Tensor {
		return column.Le(row.AddScalar(float64(k)))
	})
}

// Triu keeps, of the last two axes, the columns j of row i with j-i >= k;
// zeros elsewhere.
func (t *Tensor) Triu(k int) *Tensor {
	return t.triangle("triu", func(row, column *Tensor) *Tensor {
		return row.AddScalar(float64(k)).Le(column)
	})
}

func (t *Tensor) triangle(op string, keep func(row, column *Tensor) *Tensor) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	if t.Rank() < 2 {
		return t.graph.fail(op, "%s, want a matrix or a batch of them", t)
	}
	g := t.graph
	row, column := g.Iota(ir.I32, t.Dim(-2)).Unsqueeze(-1), g.Iota(ir.I32, t.Dim(-1)).Unsqueeze(0)
	return keep(row, column).Where(t, t.scalar(0))
}

// Diagonal is the elements with j = i+offset of axis0 (i) and axis1 (j); the
// two axes go, and the diagonal becomes the last.
func (t *Tensor) Diagonal(offset, axis0, axis1 int) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	i, ok0 := normalAxis(axis0, t.Rank())
	j, ok1 := normalAxis(axis1, t.Rank())
	if !ok0 || !ok1 || i == j {
		return t.graph.fail("diagonal", "axes %d and %d of %s", axis0, axis1, t)
	}
	axes := lists.Filter(lists.Upto(t.Rank()), func(k int) bool { return k != i && k != j })
	t = t.Permute(append(axes, i, j)...)
	i, j = t.Rank()-2, t.Rank()-1
	row, column := max(-offset, 0), max(offset, 0)
	n := max(min(t.Extent(i)-row, t.Extent(j)-column), 0)
	if n == 0 {
		return t.SliceInts(i, 0, 0).Flatten(i, j)
	}
	// A square of n rows is one row of n*n; with rows of n+1, the diagonal is
	// the first column.
	square := t.SliceInts(i, row, n).SliceInts(j, column, n).Flatten(i, j)
	return square.Pad(i, 0, n).rows(i, n, n+1).SliceInts(j, 0, 1).Squeeze(j)
}

// Diag is the square matrix with t [n] on its diagonal and zeros elsewhere.
func (t *Tensor) Diag() *Tensor {
	if !t.ok() {
		return t.bad()
	}
	if t.Rank() != 1 {
		return t.graph.fail("diag", "%s, want a vector", t)
	}
	at := t.graph.Iota(ir.I32, t.Dim(0))
	return at.Unsqueeze(1).Eq(at).Where(t.Unsqueeze(0), t.scalar(0))
}
