package tensor

import (
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
)

// Gather takes slices of t along an axis at integer indices: the shape is
// t[:axis] + index + t[axis+1:]. Indices are clamped into range.
func (t *Tensor) Gather(axis int, index *Tensor) *Tensor {
	if !t.ok() || !index.ok() {
		return t.bad()
	}
	k, ok := normalAxis(axis, t.Rank())
	if !ok || !(index.DType().IsInt() || index.DType() == ir.Idx) {
		return t.graph.fail("gather", "%s along axis %d at %s; want integers", t, axis, index)
	}
	return t.make(ir.OpGather, t.DType(), ir.IntArg(k), index.node)
}

// Assign replaces the whole contents of a buffer by u (broadcast) and returns
// the buffer's next version. t must be a buffer or an earlier version of one.
func (t *Tensor) Assign(u *Tensor) *Tensor {
	if !t.ok() || !u.ok() {
		return t.bad()
	}
	shape := t.shape()
	coords := lists.Make(len(shape), func(k int) *Tensor { return t.graph.axisIota(ir.I32, shape, k) })
	joined, ok := t.graph.broadcast(u.shape(), shape)
	if !ok || len(joined) != len(shape) {
		return t.graph.fail("assign", "values %s into %s", u, t)
	}
	return t.AssignAt(u.fill(shape), coords...)
}

// fill is expandTo that also gives a rank-0 constant all its axes.
func (t *Tensor) fill(shape []*ir.UOp) *Tensor {
	if t.Rank() > 0 || len(shape) == 0 {
		return t.expandTo(shape)
	}
	ones := lists.Make(len(shape), func(int) *ir.UOp { return t.graph.arena.Index(1) })
	return t.make(ir.OpReshape, t.DType(), nil, ones...).expandTo(shape)
}

// AssignAt writes u into a buffer at coordinates: one integer tensor per axis
// of t, broadcast to u's shape; u[p] goes to t[coords[0][p], coords[1][p], ..].
// Points not named keep their value, coordinates must be distinct, and those
// out of range are not written. It returns the buffer's next version.
func (t *Tensor) AssignAt(u *Tensor, coords ...*Tensor) *Tensor {
	if !t.ok() || !u.ok() {
		return t.bad()
	}
	if t.node.Op != ir.OpBuffer && t.node.Op != ir.OpAssign {
		return t.graph.fail("assign", "target is a %s, want a buffer or a version of one", t.node.Op)
	}
	if t.DType() != u.DType() || len(coords) != t.Rank() {
		return t.graph.fail("assign", "values %s with %d coordinates into %s", u, len(coords), t)
	}
	src := []*ir.UOp{u.node}
	for k, c := range coords {
		if !c.ok() {
			return t.bad()
		}
		joined, ok := t.graph.broadcast(c.shape(), u.shape())
		if !ok || !slices.Equal(joined, u.shape()) || !(c.DType().IsInt() || c.DType() == ir.Idx) {
			return t.graph.fail("assign", "coordinate %d is %s, values are %s", k, c, u)
		}
		src = append(src, c.expandTo(u.shape()).node)
	}
	return t.make(ir.OpAssign, t.DType(), nil, src...)
}

// Contiguous gives the value a buffer of its own.
func (t *Tensor) Contiguous() *Tensor {
	if !t.ok() {
		return t.bad()
	}
	return t.make(ir.OpContiguous, t.DType(), nil)
}

// Detach is the same value as a constant to derivatives: no gradient flows
// through it.
func (t *Tensor) Detach() *Tensor {
	if !t.ok() {
		return t.bad()
	}
	return t.make(ir.OpDetach, t.DType(), nil)
}
