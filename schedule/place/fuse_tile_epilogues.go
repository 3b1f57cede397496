package place

import (
	"slices"

	"tgc/schedule/state"
)

// fuse-tile-epilogues: p is a reduce (a projection, say) that one consumer C
// reads in small tiles: rotary pairs, a head to be normalised. C's ranges are
// split into outer and inner sub-axes so that, for fixed outer ranges, all
// reads of p fall on one tile A(outer) + step*z, z in 0..size-1, that no other
// outer point reads. Then C computes the tile itself: p's points are computed
// once, and never stored.
//
// The split changes C's loops, not its signature: readers of C keep their
// indices, and C must not be inlined any more.

// FuseTileEpilogues tries the rule on p.
func FuseTileEpilogues(s *state.State, p *state.Value) bool {
	if p.StoredWithTile {
		return false
	}
	consumers := s.Consumers(p)
	f := s.FactsOf(p.Body)
	if !f.Reduce || len(consumers) > maxTileReaders || slices.ContainsFunc(consumers, func(c *state.Value) bool { return c.Split }) {
		return false
	}
	if goesIntoPrologue(s, p, consumers) {
		s.Record(p, false, "a prologue takes it with its readers")
		return false
	}
	if len(consumers) > 1 {
		return tileReaders(s, p, consumers)
	}
	c := consumers[0]
	plan := tilePlanOf(s, c, p)
	if plan == nil {
		return false
	}
	if multiplies(s, c, p) && manyRows(s, p, c, p.Ranges[plan.axis:plan.axis+1]) {
		s.Record(p, false, "a matrix product reads many of its rows at once", state.Number{Name: "points", Value: s.Points(p.Ranges)}, state.Number{Name: "tile", Value: plan.size})
		return false
	}
	body, ok := tileBody(s.Graph, c, p, plan)
	if !ok {
		return false
	}
	if !s.Pays(p, consumers, []state.Form{plan.form(body)}) {
		return false
	}
	applyTile(s, c, p, plan, body)
	s.Record(p, true, "tile", state.Number{Name: "tiles", Value: s.Points(plan.outer)}, state.Number{Name: "size", Value: plan.size})
	return true
}

// readByWeights reports that a reader of v is a product with weights.
func readByWeights(s *state.State, v *state.Value) bool {
	return slices.ContainsFunc(s.Users[v.ID], func(id int) bool { return s.FactsOf(s.Values[id].Body).Weights })
}

// goesIntoPrologue reports a light value whose readers are light too and are
// read by products with weights: stage-prologues stages all of them before those loops,
// which costs no launch. A normalised row and its quantised form, say.
func goesIntoPrologue(s *state.State, p *state.Value, consumers []*state.Value) bool {
	if s.Opt.Off.Has(state.StagePrologues) {
		return false
	}
	work := s.Work(p.Body, p.Ranges)
	if light, _, _ := s.IsLight(p, p.Ranges); !light {
		return false
	}
	for _, c := range consumers {
		light, _, own := s.IsLight(c, c.Ranges)
		if work += own; !light || !readByWeights(s, c) || work > s.StageWork(s.Points(p.Ranges)) {
			return false
		}
	}
	return !slices.ContainsFunc(s.PlacedUses(p), func(u state.PlacedUse) bool { return repeatedByBlocks(s, p, u) })
}
