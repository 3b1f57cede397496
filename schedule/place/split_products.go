package place

import (
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/schedule/state"
)

// Long products of few results: the derivative of a layer's weights sums over all rows of a batch, 64 x 64
// results over 100,000 points, say. As many blocks as there are tiles of results take the whole sum, or smaller
// tiles, which read their factors more often. So such a sum is cut into parts, too: whole tiles of each
// part are a block's.
const (
	// tileSide is how many rows and columns a tile has that reads its factors seldom enough.
	tileSide = 64
	// partPoints is the least length of a part: a tile is stored and added up for it.
	partPoints = 256
	// tileLoads is how many rows and columns of a tile take as long as an operation of a block does otherwise: a step of a tile
	// reads both.
	tileLoads = 4
	// fewestParts is how many parts there are at least: 500 x 4096 x 500 in halves takes 51.4 us, 49.8 as a whole.
	fewestParts = 3
)

// matrixTiles is the size and number of tiles of a product of matrices that matrix instructions sum; product is
// false for any other reduce. Weights that are decoded on the way have plans that share sums.
func matrixTiles(s *state.State, v *state.Value, u *ir.UOp) (rows, columns, tiles int64, product bool) {
	least := s.Opt.Profile.MatrixTokens
	x, y, ok := s.FactorRanges(u)
	if !ok || least == 0 || !analyse.IsFloatSum(u) || s.ReadsField(u) {
		return 0, 0, 0, false
	}
	loops := v.StoreLoops()
	points := func(in, without []*ir.UOp) int64 {
		return s.Points(lists.Filter(ir.WithoutRanges(in, without), func(r *ir.UOp) bool { return slices.Contains(loops, r) }))
	}
	allRows, allColumns := points(x, y), points(y, x)
	if allRows < least || allColumns < least {
		return 0, 0, 0, false
	}
	rows, columns = min(allRows, tileSide), min(allColumns, tileSide)
	others := max(s.Points(loops)/(allRows*allColumns), 1)
	return rows, columns, (allRows + rows - 1) / rows * ((allColumns + columns - 1) / columns) * others, true
}

// matrixSplits is the number of chunks that the sum of a product of matrices is worth, about: see productChunk.
// product is false for any other reduce.
func matrixSplits(s *state.State, v *state.Value, u *ir.UOp) (splits int64, product bool) {
	rows, columns, tiles, product := matrixTiles(s, v, u)
	extent, constant := u.ReduceRange().Src[0].Int()
	if !product || !constant {
		return 1, false
	}
	points := foldedPoints(s, u)
	splits = min(s.Opt.Profile.Workers/tiles, points/partPoints)
	parts := extent / productChunk(u, splits)
	if parts < fewestParts {
		s.Record(v, false, "enough tiles", state.Number{Name: "tiles", Value: tiles}, state.Number{Name: "points", Value: points})
		return 1, true
	}
	work := s.Work(u, nil) * (rows + columns) / tileLoads
	edge := s.Opt.Profile.LaunchEdge
	if saved := work - work/parts; saved < edge {
		s.Record(v, false, "a launch edge costs more", state.Number{Name: "saved", Value: saved}, state.Number{Name: "edge", Value: edge})
		return 1, true
	}
	s.Record(v, true, "parts of a product", state.Number{Name: "splits", Value: parts}, state.Number{Name: "points", Value: points}, state.Number{Name: "tiles", Value: tiles})
	return splits, true
}

// productChunk is how many points of a sum a part has of so many, or somewhat fewer: of a sum of sums, which go on
// inside, all parts have as many; of others they are whole steps of tiles, and few points are left over.
func productChunk(u *ir.UOp, splits int64) int64 {
	extent, _ := u.ReduceRange().Src[0].Int()
	if splits < 2 {
		return extent
	}
	chunk := max(extent/splits, 1)
	if u.Src[0].Op == ir.OpReduce {
		for extent%chunk != 0 || extent/chunk > splits {
			chunk++
		}
		return chunk
	}
	least := (chunk + tileStep - 1) / tileStep * tileStep
	if extent/least < 2 {
		return chunk
	}
	best := least
	for steps := least; steps <= least*3/2 && extent/steps > 1; steps += tileStep {
		if extent%steps < extent%best {
			best = steps
		}
	}
	return best
}

// tileStep is how many points of a sum lanes read side by side.
const tileStep = 32

// tailPoints is how many points that are left over are summed where the parts are added up, one after the other.
const tailPoints = 4

// splitProduct makes the parts of a product and puts their sum into with; v stays a kernel: another product, or attention, that made
// the sum for itself would read all parts as often as it reads an element. Points that are left over are a
// part of their own, or summed with the parts.
func splitProduct(s *state.State, v *state.Value, u *ir.UOp, splits int64, parts map[*ir.UOp]*state.Value, with map[*ir.UOp]*ir.UOp) {
	a := s.A
	s.Groups++
	extent, _ := u.ReduceRange().Src[0].Int()
	chunk := productChunk(u, splits)
	over := func(first *ir.UOp, n int64) *ir.UOp {
		if n == 1 {
			return s.Substitute(u.Src[0], map[*ir.UOp]*ir.UOp{u.ReduceRange(): first})
		}
		inner := s.NewRange(a.Index(n))
		at := s.Simplify(a.Add(first, inner))
		return s.CloseReduce(a.Reduce(ir.OpAdd, s.Substitute(u.Src[0], map[*ir.UOp]*ir.UOp{u.ReduceRange(): at}), inner))
	}
	c, combine := s.NewRange(a.Index(extent/chunk)), s.NewRange(a.Index(extent/chunk))
	part := over(s.Simplify(a.Mul(c, a.Index(chunk))), chunk)
	sum := s.CloseReduce(a.Reduce(ir.OpAdd, partRead(s, v, part, chunks{at: c, combine: combine, outermost: true}, parts), combine))
	if rest := extent % chunk; rest > 0 {
		tail := over(a.Index(extent-rest), rest)
		if rest > tailPoints {
			tail = partRead(s, v, tail, chunks{}, parts)
		}
		sum = a.Add(sum, tail)
	}
	with[u], v.Pinned = sum, true
}
