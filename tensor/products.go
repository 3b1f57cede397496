package tensor

import (
	"math"
	"slices"

	"tgc/internal/lists"
)

// Tensordot sums products over pairs of axes: axes[i] of t with others[i] of u. What is
// left are t's other axes, then u's. It is one matrix product.
func (t *Tensor) Tensordot(u *Tensor, axes, others []int) *Tensor {
	if !t.ok() || !u.ok() {
		return t.bad()
	}
	left, ok1 := t.listedLast(axes)
	right, ok2 := u.listedLast(others)
	n := len(axes)
	if !ok1 || !ok2 || n != len(others) || t.graph != u.graph || t.DType() != u.DType() ||
		!slices.Equal(left.shape()[left.Rank()-n:], right.shape()[right.Rank()-n:]) {
		return t.graph.fail("", "axes %v of %s with axes %v of %s; want pairs of one extent and one dtype", axes, t, others, u)
	}
	rows, columns := left.Shape()[:left.Rank()-n], right.Shape()[:right.Rank()-n]
	inner := t.graph.product(left.shape()[left.Rank()-n:])
	product := left.ReshapeDims(t.graph.product(rows), inner).Linear(right.ReshapeDims(t.graph.product(columns), inner))
	return product.ReshapeDims(append(rows, columns...)...)
}

// listedLast moves axes to the end, in the order of the list.
func (t *Tensor) listedLast(axes []int) (moved *Tensor, ok bool) {
	last := make([]int, len(axes))
	for i, axis := range axes {
		k, ok := normalAxis(axis, t.Rank())
		if !ok || slices.Contains(last[:i], k) {
			return nil, false
		}
		last[i] = k
	}
	first := lists.Filter(lists.Upto(t.Rank()), func(k int) bool { return !slices.Contains(last, k) })
	return t.Permute(append(first, last...)...), true
}

// Kron is the Kronecker product: each element of t times all of u, axes joined.
func (t *Tensor) Kron(u *Tensor) *Tensor {
	if !t.ok() || !u.ok() {
		return t.bad()
	}
	x, y := t, u
	for x.Rank() < y.Rank() {
		x = x.Unsqueeze(0)
	}
	for y.Rank() < x.Rank() {
		y = y.Unsqueeze(0)
	}
	shape := make([]int, x.Rank())
	for k := x.Rank() - 1; k >= 0; k-- {
		shape[k] = x.Extent(k) * y.Extent(k)
		x, y = x.Unsqueeze(k+1), y.Unsqueeze(k)
	}
	return x.Mul(y).Reshape(shape...)
}

// Cross is the vector product of three elements along an axis; t and u broadcast.
func (t *Tensor) Cross(u *Tensor, axis int) *Tensor {
	x, y := t.together("cross", u)
	if !x.ok() || !y.ok() {
		return t.bad()
	}
	shape, _ := x.graph.broadcast(x.shape(), y.shape())
	k, ok := normalAxis(axis, len(shape))
	if !ok || !shape[k].IsInt(3) {
		return x.graph.fail("", "%s and %s along axis %d; want three elements there", t, u, axis)
	}
	x, y = x.expandTo(shape), y.expandTo(shape)
	next := func(v *Tensor, by int) *Tensor { return v.Roll([]int{-by}, []int{k}) }
	return next(x, 1).Mul(next(y, 2)).Sub(next(x, 2).Mul(next(y, 1)))
}

// CDist is the p-norm of the differences of all pairs: rows of t [.. M K] and of u [.. N K]
// give [.. M N]. The work is M*N*K; differences are taken first, so that near points keep
// their precision. The derivative of a distance of 0 is 0.
func (t *Tensor) CDist(u *Tensor, p float64) *Tensor {
	if !t.ok() || !u.ok() {
		return t.bad()
	}
	if t.Rank() < 2 || u.Rank() < 2 || t.Dim(-1) != u.Dim(-1) || !(p > 0) {
		return t.graph.fail("", "%s and %s, p %v; want [.. M K], [.. N K] and a norm above 0", t, u, p)
	}
	return t.Unsqueeze(-2).Sub(u.Unsqueeze(-3)).lengths(p)
}

// lengths are p-norms of the last axis, whose derivative at 0 is 0.
func (t *Tensor) lengths(p float64) *Tensor {
	return t.widely(func(x *Tensor) *Tensor {
		size := x.Abs()
		switch {
		case p == 1:
			return size.Sum(-1)
		case math.IsInf(p, 1):
			return size.Max(-1)
		case p == 2:
			return x.Mul(x).Sum(-1).awayFromZero(func(sum *Tensor) *Tensor { return sum.Sqrt() })
		}
		return size.powerOf(p).Sum(-1).awayFromZero(func(sum *Tensor) *Tensor { return sum.Pow(sum.scalar(1 / p)) })
	})
}

// awayFromZero is f where t is not 0, else 0 with the derivative 0.
func (t *Tensor) awayFromZero(f func(x *Tensor) *Tensor) *Tensor {
	none := t.Eq(t.scalar(0))
	return none.Where(t.scalar(0), f(none.Where(t.scalar(1), t)))
}
