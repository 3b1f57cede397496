package shape

import (
	"slices"

	"tgc/ir"
	"tgc/kernel/plan"
)

// SubAxis is a range that is a part of a split one.
type SubAxis struct {
	Range  *ir.UOp
	Stride int64 // elements of the axis
	Role   plan.Role
}

// Split says what replaces a range.
type Split struct {
	SubAxes []SubAxis // high to low; empty where the extent is 1
	Tile    int64     // sub-axes of a smaller stride are a tile of a softmax; 1: none
	Gated   bool      // elements past the extent are left out
	value   *ir.UOp   // the element that the sub-axes stand for
	gate    *ir.UOp   // it exists; nil: always
	first   *ir.UOp   // no tile before its own has it; nil: always
	last    *lastTile // nil: the last tile is one of the loop's
}

// lastTile is the tile of a reduce that follows the loop over all others, or the elements that are no tile.
type lastTile struct {
	start     *ir.UOp // a range that stands for the first element of a tile
	loop, end *ir.UOp // what it is in the loop, and behind it
	apart     *ir.UOp // the range over elements behind the loop, each of which is a tile; nil: one tile is there
}

// nestPlain nests a reduce of one value over sub-axes.
func (s *Split) nestPlain(a *ir.Arena, op ir.Op, out *ir.UOp) *ir.UOp {
	for _, d := range s.nest() {
		out = a.Reduce(op, out, d.Range)
	}
	return out
}

// nest orders the sub-axes of a reduce, innermost first. Threads come late: each
// first sums up its own points; and the blocks of a cluster last.
func (s *Split) nest() []SubAxis {
	var inner, threads, blocks []SubAxis
	for _, d := range slices.Backward(s.SubAxes) {
		switch {
		case d.Role.IsThread():
			threads = append(threads, d)
		case d.Role == plan.Cluster:
			blocks = append(blocks, d)
		default:
			inner = append(inner, d)
		}
	}
	return slices.Concat(inner, threads, blocks)
}
