package shape

import (
	"fmt"
	"slices"

	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/kernel/plan"
	"tgc/target"
)

// Tiles of a softmax: the Opt TILE. What the Opts before it took of a reduce axis,
// T points, is a tile t of the axis n = T*N + t. An element of the tuple reduce over N
// is what the same combine step would make of a tile, by plain reduces:
//
//	m_N = max_t score    S_N = sum_t exp2(c*(score - m_N)) * g
//
// The sums of a tile are then sums like any other, which lanes, copies and matrix
// instructions take; and of the running sums one rescaling is left for T points.
//
// What threads have of a softmax is such a tile, too: each rescales its own sums by the
// maximum of all, once, and what is left are a maximum and sums. Combined two by two,
// every step would rescale both sides. Blocks of a cluster do combine so: they are few, and
// exchange all that they have at once.

// rebuildSoftmax is a softmax tuple over the sub-axes of its range.
func (sp *splitter) rebuildSoftmax(m *ir.Monoid, s *Split, values []*ir.UOp, tuple *ir.UOp) *ir.UOp {
	var rest, threads, blocks []SubAxis
	var tile Split
	for _, d := range s.nest() {
		switch {
		case s.Tile > 1 && d.Stride < s.Tile:
			tile.SubAxes = append(tile.SubAxes, d)
		case d.Role.IsThread() && !sp.has(plan.Matrix):
			threads = append(threads, d)
		case d.Role == plan.Cluster && len(threads) > 0:
			blocks = append(blocks, d)
		default:
			rest = append(rest, d)
		}
	}
	if len(tile.SubAxes) > 0 {
		slices.Reverse(tile.SubAxes) // high to low
		values = sumsOfTile(sp.Arena, m, &tile, values, sp.has(plan.Matrix) || sp.Desc.Kind == target.GPU)
	}
	out := values[0]
	if len(rest) > 0 {
		out = nestTuple(sp.State, values, rest, tuple)
	}
	if len(threads) == 0 {
		return out
	}
	if len(rest) > 0 {
		values = projections(sp.Arena, out, len(values))
	}
	slices.Reverse(threads)
	values = sumsOfTile(sp.Arena, m, &Split{SubAxes: threads}, values, sp.Desc.Kind == target.GPU)
	if len(blocks) > 0 {
		return nestTuple(sp.State, values, blocks, tuple)
	}
	sp.sums[tuple] = values
	return values[0]
}

// sumsOfTile is what the combine step of a softmax makes of all points of a tile; bounded says that weights are: for matrix
// instructions, and for fewer instructions of a GPU.
func sumsOfTile(a *ir.Arena, m *ir.Monoid, tile *Split, values []*ir.UOp, bounded bool) []*ir.UOp {
	score := values[0]
	top := a.Binary(ir.OpMax, tile.nestPlain(a, ir.OpMax, score), m.LeastKey(a, score.DType))
	weight := m.Weight(a, score, top)
	if bounded {
		weight = m.Share(a, score, top)
	}
	sums := []*ir.UOp{top}
	for _, g := range values[1:] {
		sums = append(sums, tile.nestPlain(a, ir.OpAdd, Times(a, g, weight)))
	}
	return sums
}

// gated is a value where a point exists, else the identity. Of a tile's factors
// that are conversions, or sums of terms, it stands before these: they remain what few terms of a
// matrix instruction hold.
func gated(st *State, s *Split, v, cond, identity *ir.UOp) *ir.UOp {
	a := st.Arena
	if zero, ok := identity.Float(); s.Tile > 1 && ok && zero == 0 {
		switch {
		case v.Op == ir.OpCast:
			return a.Cast(a.Where(cond, v.Src[0], a.ConstInt(v.Src[0].DType, 0)), v.DType)
		case len(StoredTerms(v)) > 1 && v.Op == ir.OpAdd:
			return a.Add(gated(st, s, v.Src[0], cond, identity), gated(st, s, v.Src[1], cond, identity))
		case len(StoredTerms(v)) > 0 && v.Op == ir.OpMul:
			return a.Mul(gated(st, s, v.Src[0], cond, identity), v.Src[1])
		}
	}
	return a.Where(cond, v, identity)
}

// nestTuple nests a reduce like tuple over sub-axes, innermost first, through its
// projections.
func nestTuple(st *State, values []*ir.UOp, nest []SubAxis, tuple *ir.UOp) *ir.UOp {
	var out *ir.UOp
	for _, d := range nest {
		out = st.Arena.TupleReduce(values, d.Range, tuple.ReduceIdentities(), tuple.ReduceCombine())
		values = projections(st.Arena, out, len(values))
	}
	return out
}

// projections are the components of a tuple.
func projections(a *ir.Arena, tuple *ir.UOp, n int) []*ir.UOp {
	out := make([]*ir.UOp, n)
	for k := range out {
		out[k] = a.Proj(tuple, k)
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
