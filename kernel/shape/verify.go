package shape

import (
	"fmt"
	"slices"

	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/kernel/plan"
)

// Verify checks a kernel between two steps: every range has a role or is an axis that
// is still to be split; sub-axes do not overlap; where an axis was rounded up, stores
// are gated; a matrix tile has the shape of the instruction.
func Verify(st *State) error {
	if st.Axes == nil {
		return ir.VerifyKernel(st.Sink)
	}
	for _, check := range []func(*State) error{verifyGraph, verifyRanges, verifySplits, verifyGates, verifyTile} {
		if err := check(st); err != nil {
			return fmt.Errorf("shape: %w", err)
		}
	}
	return nil
}

// verifyGraph checks the nodes, and that the loops of each store are those that it
// depends on. The contract of kernels asks for more than holds of sub-axes: of a
// softmax whose tiles are plain reduces, the weights are summed over the same
// sub-axes as the maximum inside them, and that two stores write the same elements
// cannot be seen from sums of sub-axes.
func verifyGraph(st *State) error {
	for _, u := range ir.Toposort(st.Sink) {
		if err := ir.VerifyNode(u); err != nil {
			return err
		}
	}
	free := ir.NewFreeRanges()
	for i, store := range st.Sink.Src {
		if store.Op != ir.OpStore {
			return fmt.Errorf("source %d of the sink is %s, want a store", i, ir.NodeText(store))
		}
		loops := store.Ranges()
		for _, r := range free.Of(store) {
			if !slices.Contains(loops, r) {
				return fmt.Errorf("store %d depends on range %d, which is none of its loops", i, r.Arg.(ir.RangeArg).ID)
			}
		}
	}
	return nil
}

func verifyRanges(st *State) error {
	whole := make(map[*ir.UOp]bool) // axes that are still to be split
	for _, x := range st.Axes {
		whole[x.Axis.Range] = x.Split == nil
	}
	ranges := analyse.RangesIn(st.Sink)
	if len(ranges) > analyse.MaxRanges {
		return fmt.Errorf("%d ranges after splitting, at most %d are allowed", len(ranges), analyse.MaxRanges)
	}
	for _, r := range ranges {
		id, role := r.Arg.(ir.RangeArg).ID, st.roles[r]
		_, constant := r.Src[0].Int()
		switch {
		case id >= st.next:
			return fmt.Errorf("range %d, the next new one is %d", id, st.next)
		case role == plan.NoRole && !whole[r]:
			return fmt.Errorf("range %d has no role and is no axis", id)
		case role != plan.NoRole && role != plan.Serial && !constant:
			return planError("range %d has no constant extent and cannot be %s", id, role)
		}
	}
	return nil
}

func verifySplits(st *State) error {
	for _, x := range st.Axes {
		if x.Split == nil {
			continue
		}
		least := int64(1) // stride of the next sub-axis
		for _, d := range slices.Backward(x.Split.SubAxes) {
			if st.roles[d.Range] != d.Role {
				return fmt.Errorf("axis %s: range %d is %s, in the split %s", x.Axis.Name, d.Range.Arg.(ir.RangeArg).ID, st.roles[d.Range], d.Role)
			}
			if d.Stride < least {
				return fmt.Errorf("axis %s: sub-axes overlap at stride %d", x.Axis.Name, d.Stride)
			}
			least = d.Stride
			if n, constant := d.Range.Src[0].Int(); constant && n > 0 {
				least *= n
			}
		}
	}
	return nil
}

// verifyGates finds a store over an axis that was rounded up without a condition
// that mentions its highest sub-axis.
func verifyGates(st *State) error {
	for i, store := range st.Sink.Src {
		gated := make(map[*ir.UOp]bool)
		for _, g := range st.gates[i] {
			if g.DType != ir.Bool {
				return fmt.Errorf("store %d has a gate of %s", i, g.DType)
			}
			for _, r := range analyse.RangesIn(g) {
				gated[r] = true
			}
		}
		for _, r := range store.Ranges() {
			for _, x := range st.Axes {
				if x.Split != nil && x.Split.Gated && x.Split.SubAxes[0].Range == r && !gated[r] {
					return fmt.Errorf("store %d runs over axis %s, which was rounded up, without a gate", i, x.Axis.Name)
				}
			}
		}
	}
	return nil
}

func verifyTile(st *State) error {
	t := st.Tile
	if t == nil {
		return nil
	}
	for _, want := range []struct {
		name string
		r    *ir.UOp
		size int64
		role plan.Role
		side *TileSide
	}{
		{"row lane", t.RowLane, plan.RowLanes, plan.Local, t.Rows},
		{"row copy", t.RowCopy, plan.RowCopies, plan.Unroll, t.Rows},
		{"column lane", t.ColumnLane, plan.ColumnLanes, plan.Local, t.Columns},
		{"column copy", t.ColumnCopy, plan.ColumnCopies, plan.Unroll, t.Columns},
	} {
		if !want.r.Src[0].IsInt(want.size) || st.roles[want.r] != want.role {
			return fmt.Errorf("the %s of the tile is %s, want %d of %s", want.name, ir.NodeText(want.r), want.size, want.role)
		}
		if want.side != nil && !want.side.has(want.r) {
			return fmt.Errorf("the %s of the tile is not in its side", want.name)
		}
	}
	if n := t.Point.Src[0]; !n.IsInt(plan.LanePoints) && !n.IsInt(plan.WidePoints/plan.ColumnLanes) || st.roles[t.Point] != plan.Lane {
		return fmt.Errorf("the element of the tile is %s, want %d or %d of %s", ir.NodeText(t.Point), plan.LanePoints, plan.WidePoints/plan.ColumnLanes, plan.Lane)
	}
	if err := verifyGroup(st); err != nil {
		return err
	}
	if t.Points != nil && (len(t.Points.SubAxes) == 0 || t.Points.SubAxes[0].Role != plan.Matrix) {
		return fmt.Errorf("the lowest elements of the tile are not summed by a matrix instruction")
	}
	return nil
}

func verifyGroup(st *State) error {
	t := st.Tile
	g := t.Group
	if g == nil {
		return nil
	}
	if !g.Warp.Src[0].IsInt(plan.GroupWarps) || st.roles[g.Warp] != plan.Local || t.Rows != nil && !t.Rows.has(g.Warp) {
		return fmt.Errorf("the warps of the tile are %s, want %d of %s among its rows", ir.NodeText(g.Warp), plan.GroupWarps, plan.Local)
	}
	for _, r := range g.ColumnTiles {
		if st.roles[r] != plan.Unroll || t.Columns != nil && !t.Columns.has(r) {
			return fmt.Errorf("the columns of the tile's instruction go on with %s, want %s among its columns", ir.NodeText(r), plan.Unroll)
		}
	}
	if n := g.Columns(); n > plan.MostGroupColumns {
		return fmt.Errorf("an instruction of %d columns, want up to %d", n, plan.MostGroupColumns)
	}
	return nil
}
