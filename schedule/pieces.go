package schedule

import (
	"slices"

	"tgc/ir"
)

// R8k, pieces of a long sum: sum_k x[m,k]*w[k,n], whose columns lie side by side,
// becomes a chain of sums over pieces of k, each of which adds to what the one
// before it stored. A CPU copies columns into a panel, [k, lanes], that all rows
// of x read; of a long k the panel would leave the core's cache, and narrower
// tiles would read x more often. A piece costs one pass over the results.

// splitSums applies R8k.
func (s *scheduler) splitSums() {
	if s.opt.Profile.SumPiece == 0 {
		return
	}
	for i, n := 0, len(s.values); i < n; i++ {
		v := s.values[i]
		if v.dead || s.height(v.body) == 0 {
			continue
		}
		list := s.gridReduces(v.body)
		if len(list) != 1 {
			continue
		}
		if pieces := s.sumPieces(v, list[0]); pieces > 1 {
			s.chainPieces(v, list[0], pieces)
		}
	}
}

// sumPieces is the number of pieces that a sum is worth, 1 for none.
func (s *scheduler) sumPieces(v *value, u *ir.UOp) int64 {
	if arg := u.Arg.(ir.ReduceArg); arg.Op != ir.OpAdd || !u.DType.IsFloat() || s.height(u.Src[0]) > 0 {
		return 1
	}
	extent, known := u.ReduceRange().Src[0].Int()
	limit := s.opt.Profile.SumPiece
	if !known || extent <= limit || !s.readsColumns(v, u) {
		return 1
	}
	for pieces := (extent + limit - 1) / limit; pieces <= extent/limit*2+1; pieces++ {
		if extent%pieces == 0 && pieces < extent {
			s.record(SumPieces, v, true, "a panel of columns must fit", Number{"extent", extent}, Number{"pieces", pieces})
			return pieces
		}
	}
	s.record(SumPieces, v, false, "no equal pieces", Number{"extent", extent}, Number{"limit", limit})
	return 1
}

// readsColumns reports a product of two reads, both over k: one along a row of
// results, the other for enough of the rest.
func (s *scheduler) readsColumns(v *value, u *ir.UOp) bool {
	list := factors(u.Src[0])
	if len(list) != 2 {
		return false
	}
	for i, f := range list {
		other := list[1-i]
		n := s.columnOf(f, u.ReduceRange())
		if n == nil || s.dependsOn(other, n) || s.columnOf(other, u.ReduceRange()) == n || !s.dependsOn(other, u.ReduceRange()) {
			continue
		}
		if slices.Contains(v.storeLoops(), n) && s.points(without(s.free.of(other), []*ir.UOp{u.ReduceRange()})) >= s.opt.Profile.PanelRows {
			return true
		}
	}
	return false
}

// columnOf is the range along which a read's elements lie side by side if its k
// stands further out, nil if that is not so. Packed blocks lie along k.
func (s *scheduler) columnOf(f, k *ir.UOp) *ir.UOp {
	for f.Op == ir.OpCast {
		f = f.Src[0]
	}
	if f.Op != ir.OpLoad || len(f.Indices()) < 2 {
		return nil
	}
	n := f.Indices()[len(f.Indices())-1]
	if n.Op != ir.OpRange || n == k || !s.dependsOn(f, k) {
		return nil
	}
	return n
}

// chainPieces stores the sums over all pieces but the last, each with those
// before it; v adds the last.
func (s *scheduler) chainPieces(v *value, u *ir.UOp, pieces int64) {
	a := s.a
	extent, _ := u.ReduceRange().Src[0].Int()
	var scope []*ir.UOp
	for _, r := range v.storeLoops() {
		if slices.Contains(s.free.of(u), r) {
			scope = append(scope, r)
		}
	}
	var sum *ir.UOp
	for i := range pieces {
		inner := s.newRange(a.Index(extent / pieces))
		k := s.simplify(a.Add(inner, a.Index(i*(extent/pieces))))
		piece := s.closeReduce(a.Reduce(ir.OpAdd, s.substitute(u.Src[0], map[*ir.UOp]*ir.UOp{u.ReduceRange(): k}), inner))
		if sum != nil {
			piece = a.Add(sum, piece)
		}
		if i == pieces-1 {
			s.setBody(v, s.substitute(v.body, map[*ir.UOp]*ir.UOp{u: piece}))
			return
		}
		part := s.newValue(u.DType, nil, nil)
		s.setSignature(part, scope, piece)
		part.pinned = true
		part.reasons = []string{SumPieces.String() + " of " + v.label()}
		s.users, s.readMemo = append(s.users, nil), append(s.readMemo, reads{})
		s.linkReads(part)
		sum = a.Load(part.node, scope...)
	}
}
