package place

import (
	"slices"

	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/schedule/state"
)

// recordRows is of what number the rows of a tile must be a multiple: of those that are
// interleaved with each other, which are lanes.
func recordRows(s *state.State, p *state.Value) int64 {
	if s.ReadsRecords(p.Body) {
		return s.Opt.Profile.RecordRows
	}
	return 1
}

// breaksStream reports a reader that folds points of p which are rows of several packed matrices, chosen when a step runs:
// rows of each would be read in turn, and a core follows no stream that ends so soon. One Zen 4 core that shows AVX2,
// eight of 64 matrices, a sum over them of 2048 x 1024, in one kernel and in two: int8 in records Q4_K 10 and 20 GB/s, Q6_K
// 11 and 22; exact in the file's order 3.6 and 5.5, 5 and 6.7.
func breaksStream(s *state.State, p *state.Value, u state.PlacedUse) bool {
	if !s.Opt.Profile.OneStream || u.Binder == nil || u.Binder.Op != ir.OpReduce {
		return false
	}
	var folded []*ir.UOp
	for i, x := range u.Load.Indices() {
		if slices.Contains(s.Free.Of(x), u.Binder.ReduceRange()) {
			folded = append(folded, p.Ranges[i])
		}
	}
	chosen := func(x *ir.UOp) bool {
		return (x.Op == ir.OpLoad || x.Op == ir.OpReduce) && slices.ContainsFunc(folded, func(r *ir.UOp) bool { return slices.Contains(s.Free.Of(x), r) })
	}
	return analyse.Any(p.Body, func(field *ir.UOp) bool { return field.Op == ir.OpField && analyse.Any(field.Src[1], chosen) })
}
