package shape

import (
	"slices"
	"tgc/ir"
	"tgc/kernel/plan"
)

// has reports a plan with a sub-axis of a role.
func (st *State) has(role plan.Role) bool {
	return slices.ContainsFunc(st.Axes, func(p Axis) bool { return p.Has(role) })
}

// findMatrixTile finds the sub-axes of a plan's tile.
func findMatrixTile(st *State) error {
	points, err := matrixPoints(st.Axes)
	if err != nil {
		return err
	}
	t := &MatrixTile{Point: st.newRange(st.Arena.Index(points / plan.ColumnLanes))}
	for _, p := range st.Axes {
		s := p.Split
		if p.Axis.Kind != plan.StoreAxis || s == nil || len(p.Segments) < 2 || len(s.SubAxes) < 2 {
			continue
		}
		low, high := s.SubAxes[len(s.SubAxes)-1].Range, s.SubAxes[len(s.SubAxes)-2].Range
		switch {
		case plan.StartsWith(p.Segments, plan.RowSegments) && !s.Gated:
			t.RowLane, t.RowCopy, t.Rows = low, high, sideOf(s, p)
		case plan.StartsWith(p.Segments, plan.ColumnSegments) && !s.Gated:
			t.ColumnCopy, t.ColumnLane, t.Columns = low, high, sideOf(s, p)
		}
	}
	if t.RowLane == nil || t.ColumnLane == nil {
		return planError("MMA needs store axes with LOCAL %d; UPCAST %d and UPCAST %d; LOCAL %d, of no fewer elements", plan.RowLanes, plan.RowCopies, plan.ColumnCopies, plan.ColumnLanes)
	}
	if points > plan.MatrixPoints && (t.Rows.Staged || t.Columns.Staged) {
		return planError("MMA of %d elements with factors in shared memory: tiles lie there for %d", points, plan.MatrixPoints)
	}
	if st.Options.Groups {
		if err := t.findGroup(st.Axes); err != nil {
			return err
		}
		if points > plan.MatrixPoints {
			return planError("WGMMA of %d elements, want %d", points, plan.MatrixPoints)
		}
	}
	st.place(t.Point, plan.Lane, orderKey{panelOrder, 1})
	st.Tile = t
	return nil
}

// findGroup finds the sub-axes of a warpgroup's tile.
func (t *MatrixTile) findGroup(axes []Axis) error {
	g := &TileGroup{}
	for _, p := range axes {
		if p.Split == nil || p.Axis.Kind != plan.StoreAxis {
			continue
		}
		list := slices.Clone(p.Split.SubAxes)
		slices.Reverse(list)
		switch {
		case plan.StartsWith(p.Segments, append(slices.Clone(plan.RowSegments), plan.GroupSegment)):
			g.Warp = list[len(plan.RowSegments)].Range
		case plan.StartsWith(p.Segments, plan.ColumnSegments):
			for _, d := range list[len(plan.ColumnSegments):] {
				if d.Role != plan.Unroll {
					break
				}
				g.ColumnTiles = append(g.ColumnTiles, d.Range)
			}
		}
	}
	switch n := g.Columns(); {
	case g.Warp == nil:
		return planError("WGMMA needs rows with LOCAL %d; UPCAST %d; LOCAL %d", plan.RowLanes, plan.RowCopies, plan.GroupWarps)
	case n > plan.MostGroupColumns:
		return planError("WGMMA of %d columns, at most %d are allowed", n, plan.MostGroupColumns)
	case !t.Rows.Staged || !t.Columns.Staged:
		return planError("WGMMA needs rows and columns in shared memory")
	}
	t.Group = g
	return nil
}

// matrixPoints is how many elements the matrix instructions of a plan sum up, all alike.
func matrixPoints(axes []Axis) (points int64, err error) {
	for _, p := range axes {
		for _, s := range p.Segments {
			if s.Role != plan.Matrix || s.Size == points {
				continue
			}
			if points > 0 {
				return 0, planError("MMA of %d elements and of %d: a lane has as many of all sums", points, s.Size)
			}
			points = s.Size
		}
	}
	return points, nil
}

// Times is a product, of which a factor of 1 is left out.
func Times(a *ir.Arena, x, y *ir.UOp) *ir.UOp {
	if f, ok := x.Float(); ok && f == 1 || x.IsInt(1) {
		return y
	}
	return a.Mul(x, y)
}

// ByteFactor is an i32 as the byte that holds it: signed, or unsigned where that
// is allowed; nil where none does.
func ByteFactor(a *ir.Arena, bounds *ir.Bounds, u *ir.UOp, unsigned bool) *ir.UOp {
	b := bounds.Of(u)
	if n, ok := u.Int(); ok && b.Within(-128, 127) {
		return a.ConstInt(ir.I8, n)
	}
	x, offset := u, int64(0)
	if c, ok := u.Src[len(u.Src)-1].Int(); ok && u.Op == ir.OpAdd {
		x, offset = u.Src[0], c
	}
	if x.Op != ir.OpCast || !x.Src[0].DType.IsInt() {
		return nil
	}
	switch x = x.Src[0]; {
	case x.DType == ir.U8 || x.DType == ir.I8:
	case bounds.Of(x).Within(0, 255):
		x = a.Cast(x, ir.U8)
	case bounds.Of(x).Within(-128, 127):
		x = a.Cast(x, ir.I8)
	default:
		return nil
	}
	switch {
	case offset == 0 && x.DType == ir.U8 && unsigned:
		return x
	case !b.Within(-128, 127):
		return nil
	case x.DType == ir.U8:
		x = a.Cast(x, ir.I8)
	}
	if offset != 0 {
		x = a.Add(x, a.ConstInt(ir.I8, offset)) // wraps to what the bounds promise
	}
	return x
}

// sideOf are the sub-axes of a split axis within a block.
func sideOf(s *Split, p Axis) *TileSide {
	side := &TileSide{Staged: p.Fragment}
	for _, d := range slices.Backward(s.SubAxes) {
		if d.Role != plan.Grid && d.Role != plan.Serial {
			side.SubAxes = append(side.SubAxes, d)
		}
	}
	return side
}

// panelOrder puts the ranges of panels after those of all axes.
const panelOrder = 1 << 20
