package place

import (
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/schedule/expr"
	"tgc/schedule/state"
)

// oncePerRow reports a reduce that can move into its only reader without being
// computed more often, whatever the size of what it reads: the reader uses it
// outside of its own reduces, and each point for one setting of its outer loops. So
// a row's maximum, mean or norm is computed before the loop over the row, by the
// block that computes the row. The rows must be so short that dividing one among
// blocks would not pay for a launch.
func oncePerRow(s *state.State, p *state.Value) bool {
	f := s.FactsOf(p.Body)
	readers := s.Consumers(p)
	if f.State || f.Stage || !f.Constant || p.Pinned || p.StoredWithTile || p.Target >= 0 || len(readers) != 1 || !expr.ConstantExtents(p.Ranges) {
		return false
	}
	c := readers[0]
	loops := c.StoreLoops()
	if len(p.Ranges) == 0 || len(p.Ranges) > len(loops) || !expr.ConstantExtents(loops) {
		return false
	}
	rows, inner := loops[:len(p.Ranges)], loops[len(p.Ranges):]
	for _, u := range s.UsesOf(c, p) {
		if !slices.Equal(u.Load.Indices(), rows) {
			return false
		}
	}
	for i, r := range rows {
		if s.Points([]*ir.UOp{r}) != s.Points(p.Ranges[i:i+1]) {
			return false
		}
	}
	if len(inner) > 1 || len(inner) == 1 && s.Points(inner) < s.Opt.Profile.RowLanes && !short(s, rows) {
		return false // nobody could share the row's points
	}
	if foldsAlong(s.Exprs, c, inner) {
		return false // a product with a matrix: its rows and columns are tiled together
	}
	profile := &s.Opt.Profile
	return s.Work(p.Body, nil) <= profile.LaunchEdge && s.Work(c.Body, inner) <= profile.LaunchEdge
}

// foldsAlong reports a reduce in c's body that depends on one of the ranges.
func foldsAlong(s *expr.Exprs, c *state.Value, ranges []*ir.UOp) bool {
	return analyse.Any(c.Body, func(u *ir.UOp) bool {
		return (u.Op == ir.OpReduce || u.Op == ir.OpStage) && s.DependsOn(u, ranges...)
	})
}

// rowsOf is the number of points of the reader's store loops that the index of
// a use distinguishes.
func rowsOf(s *expr.Exprs, u state.PlacedUse) int64 {
	rows := lists.Filter(u.Consumer.StoreLoops(), func(r *ir.UOp) bool { return slices.Contains(s.Free.Of(u.Load), r) })
	return s.Points(rows)
}

// multiplies reports a reader that sums products of p with a weight.
func multiplies(s *state.State, c, p *state.Value) bool {
	return slices.ContainsFunc(ir.Toposort(c.Body), func(u *ir.UOp) bool {
		return analyse.IsSum(u) && s.FactsOf(u.Src[0]).Weights && analyse.Uses(u.Src[0], p.Node)
	})
}

// shortRowLanes is how many of a row's lanes are enough where rows are many.
const shortRowLanes = 8

// short reports rows so many that a few threads each are enough: they share short rows.
func short(s *state.State, rows []*ir.UOp) bool {
	p := &s.Opt.Profile
	return s.Points(rows) >= p.Parallel*p.RowLanes/shortRowLanes
}

// foldedTiles is of how many tiles of rows at most a block has all: those of its warps' tiles where weights are used a few times.
const foldedTiles = 4

// foldedBesideRows reports a fold, one for each row, of what its reader also multiplies by weights, which it uses for several of these
// rows: in the product's loops the fold takes instructions beside those of matrices, in every block for all rows. Exact
// steps of batches of 2 to 6 took 0.85 to 1.02 of the time on an H200 with the sums of norms stored, 0.91 in the geometric mean of 13; of
// one row a launch would cost more (docs/bench/h200-survey.txt). Integers of a row, which a product reads instead, are made of it only once.
func foldedBesideRows(s *state.State, p, reader *state.Value) bool {
	if !s.FactsOf(p.Body).Reduce || !s.FactsOf(reader.Body).Weights || len(axesIn(s, reader, p)) > 0 {
		return false
	}
	if rows := s.WeightReuse(reader); rows <= 1 || rows > foldedTiles*s.Opt.Profile.MatrixTokens {
		return false
	}
	return slices.ContainsFunc(s.ReadMemo[p.ID].Values, func(id int) bool { return slices.Contains(s.ReadMemo[reader.ID].Values, id) })
}
