package place

import (
	"slices"

	"tgc/ir"
	"tgc/schedule/expr"
	"tgc/schedule/state"
)

// turnsAgain reports rows that are columns of memory, which a GPU's readers both fold and take point by point. What is
// stored along a row is then read along another axis twice over, a sector of memory for each element; stored as rows,
// it is read so once, by tiles. Products read columns as well as rows. H200, us: softmax of a transpose of 256 x 256 3.1 and 2.4, of 1024 x 1024 16.7 and 7.5
// (docs/bench/library-h200.txt).
func turnsAgain(s *state.State, p *state.Value, list []state.PlacedUse) bool {
	if !s.Opt.Profile.SharedStages || len(p.Ranges) < 2 || !isTurned(s, p) {
		return false
	}
	last, folds, points := len(p.Ranges)-1, false, false
	for _, u := range list {
		at := u.Load.Indices()[last]
		folds = folds || u.Binder != nil && u.Binder.Op == ir.OpReduce && u.Binder.ReduceRange() == at && !isProduct(u.Binder)
		points = points || u.Binder == nil && isStoredAlong(s, u.Consumer, at)
	}
	return folds && points && int64(len(list))*s.Points(p.Ranges) >= s.Opt.Profile.Launch
}

// isStoredAlong reports a value that is stored along a range, or read point by point: products would take the
// rows as they are.
func isStoredAlong(s *state.State, v *state.Value, along *ir.UOp) bool {
	folded := func(u state.PlacedUse) bool { return u.Binder != nil }
	return len(v.Ranges) > 0 && v.Ranges[len(v.Ranges)-1] == along && !slices.ContainsFunc(s.PlacedUses(v), folded)
}

// isTurned reports a value that reads memory side by side along another of its axes than the last.
func isTurned(s *state.State, p *state.Value) bool {
	last := p.Ranges[len(p.Ranges)-1]
	return slices.ContainsFunc(ir.Toposort(p.Body), func(u *ir.UOp) bool {
		if u.Op != ir.OpLoad || u.Src[0].Op == ir.OpTable {
			return false
		}
		index := u.Indices()
		if len(index) < 2 {
			return false
		}
		return slices.Contains(p.Ranges[:len(p.Ranges)-1], index[len(index)-1]) && slices.Contains(s.Free.Of(u), last)
	})
}

// isProduct reports a sum of products of two operands that memory holds.
func isProduct(reduce *ir.UOp) bool {
	x := reduce.ReduceValues()[0]
	return x.Op == ir.OpMul && x.Src[0] != x.Src[1] && expr.HasLoad(x.Src[0]) && expr.HasLoad(x.Src[1])
}
