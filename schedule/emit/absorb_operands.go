package emit

import (
	"slices"

	"tgc/schedule/state"
)

// AbsorbOperands moves pointwise temporaries into the update that is their only
// reader: the stores of a point share what they compute, so nothing is computed
// twice.
func AbsorbOperands(s *state.State) {
	for _, p := range s.LiveValues() {
		if p.Target >= 0 || p.Pinned || p.Split || p.StoredWithTile || p.Group > 0 || s.Height(p.Body) > 0 {
			continue
		}
		readers := s.Consumers(p)
		if slices.ContainsFunc(readers, func(v *state.Value) bool { return !mayAbsorb(s.Graph, p, v, readers[0]) }) {
			continue
		}
		if s.ReplaceReads(p, s.AsBody(p), state.BodiesOnly) {
			s.Record(p, true, "all its readers are stored by one kernel")
		}
	}
}

// mayAbsorb reports that v, of the same update as first, reads p at its own
// point only, and that p reads what the update writes there only.
func mayAbsorb(s *state.Graph, p, v, first *state.Value) bool {
	if v.Update == 0 || v.Update != first.Update || !equalLoops(p, v) {
		return false
	}
	for _, load := range s.LoadsOf(v.Body, p.Node) {
		if !slices.Equal(load.Indices(), v.StoreLoops()) {
			return false
		}
	}
	return !slices.ContainsFunc(s.Values, func(w *state.Value) bool { return w.Update == v.Update && !readsOwnPoint(s, p, w) })
}
