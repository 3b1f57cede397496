package shape

import (
	"slices"

	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/kernel/plan"
)

// gridAxes are the store axes of which a block of a GPU has one point beside its rows, in a plan that stages what its loops have in
// common: the token of a row of an expert's matrix. What differs along them differs for no row of the block. There are none where a
// block has one row, nor where its rows are points of a stage: such an axis may be the number of the tile.
func gridAxes(st *State, free *plan.Free, sink *ir.UOp, plans []Axis) (grid analyse.RangeSet) {
	staged := func(p Axis) bool { return p.Stage && p.Axis.Kind == plan.ReduceAxis }
	rows := func(p Axis) bool { return p.Axis.Kind == plan.StoreAxis && len(p.Segments) > 0 }
	tiles := free.OfKind(plan.StageAxis)
	inTile := func(u *ir.UOp) bool { return u.Op == ir.OpReduce && !free.Of(u).Meet(tiles).Empty() }
	if st.Threads < 2 || !slices.ContainsFunc(plans, staged) || !slices.ContainsFunc(plans, rows) || analyse.Any(sink, inTile) {
		return grid
	}
	for _, p := range plans {
		if i, ok := free.Index.Get(p.Axis.Range); ok && p.Axis.Kind == plan.StoreAxis && len(p.Segments) == 0 {
			grid.Add(i)
		}
	}
	return grid
}
