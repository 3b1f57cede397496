package rangeify

import (
	"slices"

	"tgc/ir"
)

// extents are the shapes of a graph in which an extent that has one value only, such as
// min(length, 1) of a length from 1 on, is that number. Were it simplified in one expression
// and not in another, a value and its readers would not agree on its axes.
type extents struct {
	shapes *ir.Shapes
	arena  *ir.Arena
	bounds *ir.Bounds
	memo   map[*ir.UOp][]*ir.UOp
}

func newExtents(a *ir.Arena, bounds *ir.Bounds) *extents {
	return &extents{ir.NewShapes(a), a, bounds, make(map[*ir.UOp][]*ir.UOp)}
}

// Of returns the extents of u, outermost first.
func (e *extents) Of(u *ir.UOp) []*ir.UOp {
	if shape, ok := e.memo[u]; ok {
		return shape
	}
	shape := e.shapes.Of(u)
	for i, extent := range shape {
		if b := e.bounds.Of(extent); b.Lo == b.Hi && extent.Op != ir.OpConst {
			shape = slices.Clone(shape)
			shape[i] = e.arena.Index(b.Lo)
		}
	}
	e.memo[u] = shape
	return shape
}
