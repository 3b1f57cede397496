package place

import (
	"slices"

	"tgc/ir"
	"tgc/schedule/state"
)

// JoinProjections: a value that is arithmetic on projections of a tuple,
// read only in values that hold the same tuple, goes into them.
func JoinProjections(s *state.State, p *state.Value) bool {
	if !holdsTuple(s.Exprs, p) {
		return false
	}
	for _, u := range s.PlacedUses(p) {
		if u.Binder != nil {
			return false
		}
		have := s.TuplesOf(u.Consumer.Body)
		for _, t := range s.TuplesOf(s.Instantiate(p, u.Load.Indices())) {
			same := func(h *ir.UOp) bool {
				return h == t || s.IsCascade(h) && s.IsCascade(t) && h.Src[0] == t.Src[0] && h.ReduceRange() == t.ReduceRange()
			}
			if !slices.ContainsFunc(have, same) {
				return false
			}
		}
	}
	if !s.ReplaceReads(p, s.AsBody(p), state.BodiesOnly) {
		return false
	}
	s.Record(p, true, "readers hold the same tuple")
	return true
}
