package shape

import (
	"fmt"

	"tgc/ir"
	"tgc/ir/analyse"
)

// Tiles of a softmax: the Opt TILE. What the Opts before it took of a reduce axis,
// T points, is a tile t of the axis n = T*N + t. An element of the tuple reduce over N
// is what the same combine step would make of a tile, by plain reduces:
//
//	m_N = max_t score    S_N = sum_t exp2(c*(score - m_N)) * g
//
// The sums of a tile are then sums like any other, which lanes, copies and matrix
// instructions take; and of the running sums one rescaling is left for T points.

// tiledReduce is a softmax tuple over the sub-axes of its range, of which those in
// front of the tile's stride are plain reduces.
func tiledReduce(st *State, m *ir.Monoid, s *Split, values []*ir.UOp, tuple *ir.UOp) *ir.UOp {
	a := st.Arena
	var tile, rest Split
	for _, d := range s.SubAxes {
		if d.Stride < s.Tile {
			tile.SubAxes = append(tile.SubAxes, d)
		} else {
			rest.SubAxes = append(rest.SubAxes, d)
		}
	}
	score := values[0]
	top := a.Binary(ir.OpMax, tile.nestPlain(a, ir.OpMax, score), m.LeastKey(a, score.DType))
	weight := m.Weight(a, score, top)
	elements := []*ir.UOp{top}
	for _, g := range values[1:] {
		elements = append(elements, tile.nestPlain(a, ir.OpAdd, Times(a, g, weight)))
	}
	return nestTuple(st, elements, &rest, tuple)
}

// gated is a value where a point exists, else the identity. Of a tile's factors
// that are conversions it stands before them: they remain what few terms of a
// matrix instruction hold.
func gated(st *State, s *Split, v, cond, identity *ir.UOp) *ir.UOp {
	a := st.Arena
	if zero, ok := identity.Float(); s.Tile > 1 && v.Op == ir.OpCast && ok && zero == 0 {
		return a.Cast(a.Where(cond, v.Src[0], a.ConstInt(v.Src[0].DType, 0)), v.DType)
	}
	return a.Where(cond, v, identity)
}

// nestTuple nests a reduce like tuple over sub-axes, through its projections.
func nestTuple(st *State, values []*ir.UOp, s *Split, tuple *ir.UOp) *ir.UOp {
	a := st.Arena
	var out *ir.UOp
	for _, d := range s.nest() {
		out = a.TupleReduce(values, d.Range, tuple.ReduceIdentities(), tuple.ReduceCombine())
		values = append([]*ir.UOp(nil), values...)
		for k := range values {
			values[k] = a.Proj(out, k)
		}
	}
	return out
}

// checkTiles finds TILE of an axis over which a tuple runs that is no softmax.
func checkTiles(a *ir.Arena, sink *ir.UOp, plans []Axis) error {
	tiled := make(map[*ir.UOp]string)
	for _, p := range plans {
		if p.Tile > 0 {
			tiled[p.Axis.Range] = p.Axis.Name
		}
	}
	if len(tiled) == 0 {
		return nil
	}
	for _, u := range ir.Toposort(sink) {
		if analyse.IsTuple(u) && tiled[u.ReduceRange()] != "" && !a.MonoidOf(u).Rescales {
			return fmt.Errorf("kernel: plan: TILE %s of a tuple that is no softmax", tiled[u.ReduceRange()])
		}
	}
	return nil
}
