package place

import (
	"slices"

	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/schedule/expr"
	"tgc/schedule/state"
)

// BroadcastReduces: a light reduce is recomputed in every reader, once per
// block. unify-loops then lets it share the reader's loop, or it is a loop before it.
func BroadcastReduces(s *state.State, p *state.Value) bool {
	f := s.FactsOf(p.Body)
	if !f.Reduce || p.StoredWithTile {
		return false
	}
	light, _, work := s.IsLight(p, nil)
	if (!light || repeated(s, p)) && oncePerRow(s, p) {
		if !s.ReplaceReads(p, s.AsBody(p), state.BodiesOnly) {
			return false
		}
		s.Record(p, true, "once for each row of its reader", state.Number{Name: "points", Value: s.Points(p.Ranges)}, state.Number{Name: "work", Value: work})
		return true
	}
	if !light {
		s.Record(p, false, s.WhyHeavy(p, nil), state.Number{Name: "work", Value: work}, state.Number{Name: "limit", Value: s.StageWork(s.Points(p.Ranges))})
		return false
	}
	total := s.Work(p.Body, p.Ranges)
	for _, u := range s.PlacedUses(p) {
		if foldedBesideRows(s, p, u.Consumer) {
			s.Record(p, false, "a product of several rows folds the same", state.Number{Name: "rows", Value: s.WeightReuse(u.Consumer)})
			return false
		}
		if placesRows(s, u) {
			s.Record(p, false, placesRowsReason, state.Number{Name: "points", Value: s.Points(p.Ranges)})
			return false
		}
		if isDynamic(s.Exprs, u.Load.Indices(), u.Closed) {
			s.Record(p, false, "read inside a reduce")
			return false
		}
		if other := s.Work(u.Consumer.Body, u.Consumer.StoreLoops()); total > other {
			s.Record(p, false, "more work than its reader", state.Number{Name: "work", Value: total}, state.Number{Name: "reader", Value: other})
			return false
		}
		if repeatedByBlocks(s, p, u) {
			s.Record(p, false, "too much work for every block", state.Number{Name: "work", Value: total}, state.Number{Name: "limit", Value: s.StageWork(s.Points(p.Ranges))})
			return false
		}
	}
	if !s.ReplaceReads(p, s.AsBody(p), state.BodiesOnly) {
		return false
	}
	s.Record(p, true, "light", state.Number{Name: "work", Value: work}, state.Number{Name: "limit", Value: s.StageWork(s.Points(p.Ranges))})
	return true
}

const placesRowsReason = "says where rows of a product lie"

// placesRows reports a use as an index of weights that several rows are multiplied with, or of these rows: each block would fold it
// before it could ask for the first of them, or each thread within its sum.
func placesRows(s *state.State, u state.PlacedUse) bool {
	return s.FactsOf(u.Consumer.Body).Weights && s.WeightReuse(u.Consumer) > 1 && analyse.Any(u.Consumer.Body, func(read *ir.UOp) bool {
		return (read.Op == ir.OpLoad || read.Op == ir.OpField) && slices.ContainsFunc(read.Indices(), func(x *ir.UOp) bool {
			return analyse.Any(x, func(y *ir.UOp) bool { return y == u.Load })
		})
	})
}

// repeatedByBlocks reports that all points of p are too much work for a block
// while the ranges that its index leaves out are many: blocks divide those among
// them, and each would compute all of p. A prompt's norms are stored therefore,
// a token's are not.
func repeatedByBlocks(s *state.State, p *state.Value, u state.PlacedUse) bool {
	others := ir.WithoutRanges(expr.Sorted(u.Consumer.StoreLoops()), s.Free.Of(u.Load))
	return s.Points(others) > s.Opt.Profile.TileCap && s.Work(p.Body, p.Ranges) > s.StageWork(s.Points(p.Ranges))
}

// repeated reports a light reduce that is too much work for every block at some use.
func repeated(s *state.State, p *state.Value) bool {
	return slices.ContainsFunc(s.PlacedUses(p), func(u state.PlacedUse) bool { return repeatedByBlocks(s, p, u) })
}
