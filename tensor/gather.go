package tensor

import (
	"math"

	"tgc/ir"
)

// GatherElements takes one element of t for each element of index: along axis 0,
// out[i][j] = t[index[i][j]][j] (torch.gather). index has t's rank and may be
// shorter than t off the axis. Indices are clamped into range.
func (t *Tensor) GatherElements(axis int, index *Tensor) *Tensor {
	if !t.ok() || !index.ok() {
		return t.bad()
	}
	k, ok := normalAxis(axis, t.Rank())
	if !ok || !index.DType().IsInt() || index.Rank() != t.Rank() {
		return t.graph.fail("gather_elements", "%s along axis %d at %s; want integers of one rank", t, axis, index)
	}
	from := t
	for i := range t.Rank() {
		if i == k || index.Dim(i) == t.Dim(i) {
			continue
		}
		n := index.Extent(i)
		if n > t.Extent(i) {
			return t.graph.fail("gather_elements", "%s along axis %d at %s: axis %d of the index is longer", t, axis, index, i)
		}
		if n < t.Extent(i) {
			from = from.SliceInts(i, 0, n)
		}
	}
	coords := make([]*Tensor, t.Rank())
	for i := range coords {
		coords[i] = index
		if i != k {
			coords[i] = t.graph.axisIota(ir.I32, index.shape(), i)
		}
	}
	return from.elementsAt(coords, coords[k].shape())
}

// TakeAlong is GatherElements with all axes but the one gathered along
// broadcast (numpy.take_along_axis).
func (t *Tensor) TakeAlong(axis int, index *Tensor) *Tensor {
	if !t.ok() || !index.ok() {
		return t.bad()
	}
	k, ok := normalAxis(axis, t.Rank())
	if !ok || index.Rank() != t.Rank() {
		return t.graph.fail("take_along", "%s along axis %d at %s; want one rank", t, axis, index)
	}
	a, b := t.Shape(), index.Shape()
	a[k], b[k] = t.graph.arena.Index(1), t.graph.arena.Index(1)
	shape, ok := t.graph.broadcast(a, b)
	if !ok {
		return t.graph.fail("take_along", "shapes of %s and %s do not broadcast off axis %d", t, index, k)
	}
	with := func(dim *ir.UOp) []*ir.UOp {
		full := append([]*ir.UOp(nil), shape...)
		full[k] = dim
		return full
	}
	return t.expandTo(with(t.Dim(k))).GatherElements(k, index.expandTo(with(index.Dim(k))))
}

// GatherND takes elements, or slices, by integer coordinates of the leading
// axes, broadcast together: out[p..] = t[coords[0][p], coords[1][p], ..]
// (advanced indexing). Negative coordinates count from the end.
func (t *Tensor) GatherND(coords ...*Tensor) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	if len(coords) == 0 || len(coords) > t.Rank() {
		return t.graph.fail("gather_nd", "%d coordinates for %s", len(coords), t)
	}
	var shape []*ir.UOp
	wrapped := make([]*Tensor, len(coords))
	for k, c := range coords {
		if !c.ok() {
			return t.bad()
		}
		joined, ok := t.graph.broadcast(shape, c.shape())
		if !ok || !c.DType().IsInt() {
			return t.graph.fail("gather_nd", "coordinate %d of %s is %s; want integers that broadcast to %s", k, t, c, shapeText(shape))
		}
		shape, wrapped[k] = joined, c
		if c.DType().IsSigned() {
			wrapped[k] = c.Lt(c.scalar(0)).Where(c.AddScalar(float64(t.Extent(k))), c)
		}
	}
	return t.elementsAt(wrapped, shape)
}

// elementsAt reads t at coordinates of its leading axes, which broadcast to a
// shape. Each is clamped into its axis first, so that the position in the
// flattened axes falls apart again into plain indices.
func (t *Tensor) elementsAt(coords []*Tensor, shape []*ir.UOp) *Tensor {
	dtype := ir.I32
	if count, symbols := countOf(t.shape()[:len(coords)]); count > math.MaxInt32 || len(symbols) > 0 {
		dtype = ir.I64
	}
	var flat *Tensor
	for k, c := range coords {
		var extent *Tensor
		if n, constant := t.shape()[k].Int(); constant {
			c, extent = c.clampIndex(int(n)).Cast(dtype), t.graph.Scalar(dtype, float64(n))
		} else {
			extent = t.graph.Size(t.shape()[k], dtype)
			c = c.Cast(dtype).Maximum(extent.scalar(0)).Minimum(extent.AddScalar(-1))
		}
		if flat == nil {
			flat = c
		} else {
			flat = flat.Mul(extent).Add(c)
		}
	}
	return t.Flatten(0, len(coords)-1).Gather(0, flat.expandTo(shape))
}

// clampIndex moves integers into 0..n-1.
func (t *Tensor) clampIndex(n int) *Tensor {
	if n > 127 && t.DType().Size() == 1 || n > 1<<15-1 && t.DType().Size() == 2 {
		t = t.Cast(ir.I32) // the dtype may not reach n-1
	}
	return t.Maximum(t.scalar(0)).Minimum(t.scalar(float64(max(n, 1) - 1)))
}

// MaskedFill is value where mask (Bool, broadcast) holds, else t.
func (t *Tensor) MaskedFill(mask *Tensor, value float64) *Tensor {
	if !t.ok() || !mask.ok() {
		return t.bad()
	}
	return mask.Where(t.scalar(value), t)
}

// OneHot adds a last axis of classes elements: 1 at the index that t (integers)
// holds, 0 elsewhere; all 0 where t is out of range.
func (t *Tensor) OneHot(classes int, dtype ir.DType) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	if !t.DType().IsInt() || classes < 0 {
		return t.graph.fail("one_hot", "%s with %d classes; want integers", t, classes)
	}
	class := t.graph.Iota(t.DType(), t.graph.arena.Index(int64(classes)))
	return t.Unsqueeze(-1).Eq(class).Where(t.graph.Scalar(dtype, 1), t.graph.Scalar(dtype, 0))
}
