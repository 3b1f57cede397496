package place

import (
	"slices"

	"tgc/ir"
	"tgc/schedule/state"
)

// keepsRow reports a pointwise value that takes a fold of its own row in: the kernel that stores it
// costs no launch, since else one would store the fold alone. Readers that overlap, the windows of
// a convolution or a pool, had better read it than compute it for each of their points: 3 x 3 over
// rows divided by their sums take 3.2 us of an H200 with nine quotients, 2.2 with one
// (docs/bench/library-h200.txt).
func keepsRow(s *state.State, p *state.Value) bool {
	folds := func(id int) bool { return s.FactsOf(s.Values[id].Body).Reduce && oncePerRow(s, s.Values[id]) }
	return s.IsPointwise(p) && slices.ContainsFunc(s.ReadMemo[p.ID].Values, folds) && readInWindows(s, p, make(map[*state.Value]bool))
}

// readInWindows reports a value of which some reader, or a reader of pointwise ones that take it,
// reads each point several times.
func readInWindows(s *state.State, p *state.Value, seen map[*state.Value]bool) bool {
	seen[p] = true
	return slices.ContainsFunc(s.PlacedUses(p), func(u state.PlacedUse) bool {
		if s.Points(s.Free.Of(u.Load)) >= 2*s.Points(p.Ranges) {
			return true
		}
		return u.Binder == nil && !seen[u.Consumer] && s.IsPointwise(u.Consumer) && readInWindows(s, u.Consumer, seen)
	})
}

// stagesElsewhere reports a value of whose stages a reader would ask for rows that there are not, a
// padding's, which no condition keeps from being read, or for another row at each element side by side.
func stagesElsewhere(s *state.State, p *state.Value, list []state.PlacedUse) bool {
	if !s.FactsOf(p.Body).Stage {
		return false
	}
	var rows []*ir.UOp
	for _, u := range ir.Toposort(p.Body) {
		if u.Op == ir.OpStage {
			rows = ir.UnionRanges(rows, s.Free.Of(u))
		}
	}
	if len(ir.WithoutRanges(p.Ranges, rows)) == 0 {
		return false // one element a row
	}
	return slices.ContainsFunc(list, func(u state.PlacedUse) bool {
		loops := u.Consumer.StoreLoops()
		for k, x := range u.Load.Indices() {
			if !slices.Contains(rows, p.Ranges[k]) {
				continue
			}
			b := s.Bounds.Of(x)
			if b.Lo < 0 || b.Hi >= s.Points(p.Ranges[k:k+1]) || len(loops) > 0 && slices.Contains(s.Free.Of(x), loops[len(loops)-1]) {
				return true
			}
		}
		return false
	})
}
