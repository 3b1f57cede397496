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
