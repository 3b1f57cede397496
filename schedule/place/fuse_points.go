package place

import (
	"tgc/ir"
	"tgc/schedule/state"
)

// FusePoints: every point of p is read once, nowhere inside a loop that
// would repeat it: p moves into its readers without recomputation. Two sums over weights
// stay apart where their rows would leave workers without any.
func FusePoints(s *state.State, p *state.Value) bool {
	list := s.PlacedUses(p)
	for _, u := range list {
		if repeated := s.Multiplicity(u.Consumer, u.Use); len(repeated) > 0 {
			s.Record(p, false, "repeated inside a reduce", state.Number{Name: "times", Value: s.Points(repeated)})
			return false
		}
		if u.Binder != nil && u.Binder.Op == ir.OpStage && s.Opt.Profile.SharedStages && s.OperandReuse(p) > 1 {
			s.Record(p, false, "rows of a product share its columns, blocks would read all of them each")
			return false
		}
		if u.Binder != nil && s.FactsOf(p.Body).Weights && s.FactsOf(u.Consumer.Body).Weights && rowsOf(s.Exprs, u) < s.Opt.Profile.Workers {
			s.Record(p, false, "both read weights: a grid barrier")
			return false
		}
	}
	if !jointlyInjective(s.Graph, list) {
		s.Record(p, false, "points are read more than once", state.Number{Name: "uses", Value: int64(len(list))}, state.Number{Name: "readers", Value: int64(len(s.Users[p.ID]))})
		return false
	}
	if crowded(s, p) {
		return false
	}
	if stagesElsewhere(s, p, list) {
		s.Record(p, false, "its stages would be rows of a padding, or of single elements")
		return false
	}
	if keepsRow(s, p) {
		s.Record(p, false, "it takes a fold of its row in, and windows read it")
		return false
	}
	if !s.ReplaceReads(p, s.AsBody(p), state.BodiesOnly) {
		return false
	}
	s.Record(p, true, "every point is read once", state.Number{Name: "points", Value: s.Points(p.Ranges)})
	return true
}
