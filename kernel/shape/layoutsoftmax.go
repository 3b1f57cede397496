package shape

import (
	"slices"

	"tgc/ir"
	"tgc/kernel/plan"
)

// What lanes hold of the points of a tile of a softmax (TILE) whose sub-axis is one of
// MMA. The weighted sum over points t is a product for the instruction, with the
// weights as its rows: of 16 points, the lanes of a row have four neighbours each.
// Maximum and sum of weights fold those four and then the lanes; and the scores,
// products of their own, are computed where they are wanted: their columns are the
// points,
//
//	t = 4*(lane%4) + point
//
// two tiles of eight columns, of which a lane holds two points each. So a weight
// never leaves the lane that has its score.

// findTileElements notes the sub-axes of a tile of a softmax, low first.
func findTileElements(st *State) error {
	tile := st.Tile
	for _, p := range st.Axes {
		s := p.Split
		if tile == nil || s == nil || p.Axis.Kind != plan.ReduceAxis || s.Tile < plan.MatrixPoints {
			continue
		}
		side := &TileSide{Staged: p.Fragment}
		for i := len(s.SubAxes) - 1; i >= 0 && s.SubAxes[i].Stride < s.Tile; i-- {
			side.SubAxes = append(side.SubAxes, s.SubAxes[i])
		}
		if side.SubAxes[0].Role == plan.Matrix {
			if !tile.Point.Src[0].IsInt(plan.LanePoints) {
				return planError("MMA of more than %d elements of a TILE", plan.MatrixPoints)
			}
			tile.Points = side
		}
	}
	return nil
}

// layOutSoftmax rewrites the reduces over sub-axes of MMA that are no products of rows
// and columns to reduces over a lane's points, then copies, then the lanes.
func layOutSoftmax(st *State) error {
	sink, tile := st.Sink, st.Tile
	if tile == nil || tile.Points == nil {
		return nil
	}
	subAxis := tile.Points.SubAxes[0].Range
	a := st.Arena
	nodes := ir.Toposort(sink)
	chains := make(map[*ir.UOp][]*ir.UOp) // reduces of one kind, the outermost one first, down to such a sub-axis
	inner := make(map[*ir.UOp]bool)
	for _, u := range slices.Backward(nodes) {
		if !inner[u] {
			if chain := pointChain(u, subAxis); chain != nil && !dependsOnAny(u, tile.ColumnLane, tile.ColumnCopy) {
				chains[u] = chain
				for _, x := range chain[1:] {
					inner[x] = true
				}
			}
		}
	}
	points := a.Add(a.Mul(tile.ColumnLane, a.Index(plan.LanePoints)), tile.Point)
	var err error
	r := ir.Rebuild{Arena: a}
	r.Visit = func(u *ir.UOp, _ []*ir.UOp) *ir.UOp {
		chain := chains[u]
		if chain == nil {
			return nil
		}
		body := r.Of(chain[len(chain)-1].Src[0])
		if dependsOnAny(body, tile.Point) {
			err = planError("MMA of a tile within a tile")
			return nil
		}
		op := u.Arg.(ir.ReduceArg).Op
		body = a.Reduce(op, st.simp.Do(a.Substitute(body, map[*ir.UOp]*ir.UOp{subAxis: points})), tile.Point)
		for k := len(chain) - 2; k >= 0; k-- {
			body = a.Reduce(op, body, chain[k].ReduceRange())
		}
		return a.Reduce(op, body, tile.ColumnLane)
	}
	if sink = r.Do(sink); err != nil {
		return err
	}
	st.Sink = st.simp.Do(sink)
	return nil
}

// pointChain is the nest of plain reduces of one kind from u down to a sub-axis; nil
// where there is none.
func pointChain(u, subAxis *ir.UOp) []*ir.UOp {
	var chain []*ir.UOp
	for u.Op == ir.OpReduce && u.Arg.(ir.ReduceArg).Op != ir.OpInvalid {
		if len(chain) > 0 && chain[0].Arg != u.Arg {
			return nil
		}
		chain = append(chain, u)
		if u.ReduceRange() == subAxis {
			return chain
		}
		u = u.Src[0]
	}
	return nil
}

// dependsOnAny reports that some ranges stand free under a node.
func dependsOnAny(u *ir.UOp, ranges ...*ir.UOp) bool {
	own := ir.NewFreeRanges().Of(u)
	return slices.ContainsFunc(ranges, func(r *ir.UOp) bool { return slices.Contains(own, r) })
}
