package tensor

import (
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
)

// Reshape gives the same elements another shape; one extent may be -1.
func (t *Tensor) Reshape(shape ...int) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	known, hole := 1, -1
	for i, n := range shape {
		if n == -1 && hole < 0 {
			hole = i
			continue
		}
		known *= n
	}
	if hole < 0 {
		return t.ReshapeDims(t.graph.Dims(shape...)...)
	}
	total, symbols := countOf(t.shape())
	if known <= 0 || total%int64(known) != 0 {
		return t.graph.fail("reshape", "%s has no extent for -1 in %v", t, shape)
	}
	shape = append([]int(nil), shape...)
	shape[hole] = 1
	dims := t.graph.Dims(shape...)
	dims[hole] = t.graph.product(append(symbols, t.graph.arena.Index(total/int64(known))))
	return t.ReshapeDims(dims...)
}

// product multiplies extents.
func (g *Graph) product(dims []*ir.UOp) *ir.UOp {
	n := g.arena.Index(1)
	for _, dim := range dims {
		n = g.arena.Mul(n, dim)
	}
	return n
}

// ReshapeDims is Reshape with symbolic extents.
func (t *Tensor) ReshapeDims(shape ...*ir.UOp) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	if !sameCount(t.shape(), shape) {
		return t.graph.fail("reshape", "%s to %s changes the number of elements", t, shapeText(shape))
	}
	return t.make(ir.OpReshape, t.DType(), nil, shape...)
}

// sameCount compares numbers of elements: constants by product, symbolic
// factors must be the same in both.
func sameCount(a, b []*ir.UOp) bool {
	na, left := countOf(a)
	nb, right := countOf(b)
	for _, s := range left {
		i := slices.Index(right, s)
		if i < 0 {
			return false
		}
		right = slices.Delete(right, i, i+1)
	}
	return na == nb && len(right) == 0
}

// countOf is the number of elements of a shape: the product of what is constant in it, and
// the symbolic factors.
func countOf(dims []*ir.UOp) (n int64, symbols []*ir.UOp) {
	n = 1
	for _, dim := range dims {
		if v, ok := dim.Int(); ok {
			n *= v
			continue
		}
		if dim.Op != ir.OpMul {
			symbols = append(symbols, dim)
			continue
		}
		m, inner := countOf(dim.Src)
		n, symbols = n*m, append(symbols, inner...)
	}
	return n, symbols
}

// Permute orders the axes: result axis k is axis axes[k] of t.
func (t *Tensor) Permute(axes ...int) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	rank := t.Rank()
	seen := make([]bool, rank)
	list := make([]int, len(axes))
	for i, axis := range axes {
		k, ok := normalAxis(axis, rank)
		if !ok || seen[k] || len(axes) != rank {
			return t.graph.fail("permute", "axes %v are no permutation for %s", axes, t)
		}
		seen[k], list[i] = true, k
	}
	return t.make(ir.OpPermute, t.DType(), ir.Axes(list...))
}

// Transpose swaps two axes.
func (t *Tensor) Transpose(a, b int) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	rank := t.Rank()
	i, ok1 := normalAxis(a, rank)
	j, ok2 := normalAxis(b, rank)
	if !ok1 || !ok2 {
		return t.graph.fail("transpose", "axes %d and %d of %s", a, b, t)
	}
	axes := lists.Upto(rank)
	axes[i], axes[j] = j, i
	return t.Permute(axes...)
}

// Expand repeats axes of extent 1 (numpy's broadcast_to); -1 keeps an extent.
func (t *Tensor) Expand(shape ...int) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	dims := make([]*ir.UOp, len(shape))
	for k, n := range shape {
		from := k - len(shape) + t.Rank()
		switch {
		case n >= 0:
			dims[k] = t.graph.arena.Index(int64(n))
		case n == -1 && from >= 0:
			dims[k] = t.shape()[from]
		default:
			return t.graph.fail("expand", "%s to %v", t, shape)
		}
	}
	return t.ExpandDims(dims...)
}

// ExpandDims is Expand with symbolic extents.
func (t *Tensor) ExpandDims(shape ...*ir.UOp) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	joined, ok := t.graph.broadcast(t.shape(), shape)
	if !ok || len(joined) != len(shape) {
		return t.graph.fail("expand", "%s to %s", t, shapeText(shape))
	}
	for k := range shape {
		if joined[k] != shape[k] {
			return t.graph.fail("expand", "%s to %s", t, shapeText(shape))
		}
	}
	return t.fill(shape)
}

// Unsqueeze adds an axis of extent 1 at position axis of the result.
func (t *Tensor) Unsqueeze(axis int) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	shape := t.Shape()
	k, ok := normalAxis(axis, len(shape)+1)
	if !ok {
		return t.graph.fail("unsqueeze", "axis %d of %s", axis, t)
	}
	shape = append(shape[:k], append([]*ir.UOp{t.graph.arena.Index(1)}, shape[k:]...)...)
	return t.ReshapeDims(shape...)
}

// Squeeze drops axes of extent 1, all when none is named. A named axis of
// another extent is kept.
func (t *Tensor) Squeeze(axes ...int) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	shape := t.shape()
	drop := slices.Repeat([]bool{len(axes) == 0}, len(shape))
	for _, axis := range axes {
		k, ok := normalAxis(axis, len(shape))
		if !ok {
			return t.graph.fail("squeeze", "axis %d of %s", axis, t)
		}
		drop[k] = true
	}
	var rest []*ir.UOp
	for k, dim := range shape {
		if !drop[k] || !dim.IsInt(1) {
			rest = append(rest, dim)
		}
	}
	return t.ReshapeDims(rest...)
}

// Slice is the part of an axis that starts at offset and has this extent.
func (t *Tensor) Slice(axis int, offset, extent *ir.UOp) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	shape := t.shape()
	k, ok := normalAxis(axis, len(shape))
	if !ok {
		return t.graph.fail("slice", "axis %d of %s", axis, t)
	}
	if o, okO := offset.Int(); okO {
		if n, okN := extent.Int(); okN {
			if full, okF := shape[k].Int(); okF && (o < 0 || n < 0 || o+n > full) {
				return t.graph.fail("slice", "%d..%d of axis %d of %s", o, o+n, k, t)
			}
		}
	}
	var src []*ir.UOp
	for i, dim := range shape {
		if i == k {
			src = append(src, offset, extent)
		} else {
			src = append(src, t.graph.arena.Index(0), dim)
		}
	}
	return t.make(ir.OpShrink, t.DType(), nil, src...)
}

// SliceInts is Slice with constant offset and extent.
func (t *Tensor) SliceInts(axis, offset, extent int) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	a := t.graph.arena
	return t.Slice(axis, a.Index(int64(offset)), a.Index(int64(extent)))
}

// Pad puts zeros before and after an axis.
func (t *Tensor) Pad(axis, before, after int) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	k, ok := normalAxis(axis, t.Rank())
	if !ok || before < 0 || after < 0 {
		return t.graph.fail("pad", "axis %d of %s by %d and %d", axis, t, before, after)
	}
	var src []*ir.UOp
	for i := range t.shape() {
		if i == k {
			src = append(src, t.graph.Dims(before, after)...)
		} else {
			src = append(src, t.graph.Dims(0, 0)...)
		}
	}
	return t.make(ir.OpPad, t.DType(), nil, src...)
}

// Flip reverses axes.
func (t *Tensor) Flip(axes ...int) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	list := make([]int, len(axes))
	for i, axis := range axes {
		k, ok := normalAxis(axis, t.Rank())
		if !ok {
			return t.graph.fail("flip", "axis %d of %s", axis, t)
		}
		list[i] = k
	}
	return t.make(ir.OpFlip, t.DType(), ir.Axes(list...))
}

// Cat joins tensors along an axis.
func (t *Tensor) Cat(axis int, others ...*Tensor) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	k, ok := normalAxis(axis, t.Rank())
	if !ok {
		return t.graph.fail("cat", "axis %d of %s", axis, t)
	}
	all := append([]*Tensor{t}, others...)
	total := 0
	for _, u := range all {
		if !u.ok() || u.DType() != t.DType() || u.Rank() != t.Rank() || !sameBut(k, t.shape(), u.shape()) {
			return t.graph.fail("cat", "%s beside %s along axis %d", u, t, k)
		}
		total += u.Extent(k)
	}
	// From the last part to the first: where the positions end that a part has,
	// those of the next begin.
	at := t.graph.alongAxis(t.Rank(), k, total)
	end := total
	var out *Tensor
	for _, u := range slices.Backward(all) {
		start := end - u.Extent(k)
		part := u.Pad(k, start, total-end)
		switch {
		case out == nil:
			out = part
		case start < end:
			out = at.Lt(at.scalar(float64(end))).Where(part, out)
		}
		end = start
	}
	return out
}

// sameBut reports shapes that agree on all axes but k.
func sameBut(k int, a, b []*ir.UOp) bool {
	return slices.Equal(a[:k], b[:k]) && slices.Equal(a[k+1:], b[k+1:])
}
