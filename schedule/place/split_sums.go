package place

import (
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/schedule/algebra"
	"tgc/schedule/expr"
	"tgc/schedule/state"
)

// split-sums: sum_k x[m,k]*w[k,n], whose columns lie side by side,
// becomes a chain of sums over pieces of k, each of which adds to what the one
// before it stored. A CPU copies columns into a panel, [k, lanes], that all rows
// of x read; of a long k the panel would leave the core's cache, and narrower
// tiles would read x more often. Tile instructions read all activations of a sum for every
// tile of rows: of a piece the second cache holds them. A piece costs one pass over the results.

// SplitSums applies the rule to every value.
func SplitSums(s *state.State) {
	if s.Opt.Profile.SumPiece == 0 {
		return
	}
	for i, n := 0, len(s.Values); i < n; i++ {
		v := s.Values[i]
		if v.Dead || s.Height(v.Body) == 0 {
			continue
		}
		terms := combinations(s, v, v.Body)
		for _, sum := range terms {
			if pieces := termPieces(s, v, sum); pieces > 1 {
				chainPieces(s, v, sum, pieces)
			}
		}
		list := gridReduces(s.Exprs, v.Body)
		if len(terms) > 0 || len(list) != 1 {
			continue
		}
		if pieces := sumPieces(s, v, list[0]); pieces > 1 {
			chainPieces(s, v, list[0], pieces)
		}
	}
}

// sumPieces is the number of pieces that a sum is worth, 1 for none.
func sumPieces(s *state.State, v *state.Value, u *ir.UOp) int64 {
	if arg := u.Arg.(ir.ReduceArg); arg.Op != ir.OpAdd || !u.DType.IsFloat() || s.Height(u.Src[0]) > 0 {
		return 1
	}
	extent, known := u.ReduceRange().Src[0].Int()
	limit := s.Opt.Profile.SumPiece
	if !known || extent <= limit || !readsColumns(s, v, u) {
		return 1
	}
	for pieces := (extent + limit - 1) / limit; pieces <= extent/limit*2+1; pieces++ {
		if extent%pieces == 0 && pieces < extent {
			s.Record(v, true, "a panel of columns must fit", state.Number{Name: "extent", Value: extent}, state.Number{Name: "pieces", Value: pieces})
			return pieces
		}
	}
	s.Record(v, false, "no equal pieces", state.Number{Name: "extent", Value: extent}, state.Number{Name: "limit", Value: limit})
	return 1
}

// combinations are the largest expressions of additions and subtractions of sums alone that
// read activations as terms.
func combinations(s *state.State, v *state.Value, body *ir.UOp) (list []*ir.UOp) {
	ir.Walk(func(u *ir.UOp) []*ir.UOp {
		switch {
		case s.Height(u) == 0 || u.Op == ir.OpStage:
			return nil
		case len(summands(u)) > 0:
			if slices.ContainsFunc(summands(u), func(x *ir.UOp) bool { return algebra.TermBytes(s, v, x) > 0 }) {
				list = append(list, u)
			}
			return nil
		}
		return u.Src
	}, body)
	return list
}

// summands are the sums of which u is a combination, none where it is another expression.
func summands(u *ir.UOp) (list []*ir.UOp) {
	switch {
	case analyse.IsFloatSum(u):
		return []*ir.UOp{u}
	case u.Op != ir.OpAdd && u.Op != ir.OpSub:
		return nil
	}
	for _, x := range u.Src {
		of := summands(x)
		if len(of) == 0 {
			return nil
		}
		list = append(list, of...)
	}
	return list
}

// termPieces is in how many pieces the second cache holds the terms that a combination of sums reads:
// 1 where it holds all of them, or where the sums have not as many points of an outer range each.
func termPieces(s *state.State, v *state.Value, u *ir.UOp) int64 {
	sums, bytes := summands(u), int64(0)
	extent, _ := sums[0].ReduceRange().Src[0].Int()
	for _, x := range sums {
		if n, known := x.ReduceRange().Src[0].Int(); !known || n != extent {
			s.Record(v, false, "sums of different extents")
			return 1
		}
		bytes = max(bytes, algebra.TermBytes(s, v, x))
	}
	pieces := min((bytes+s.Opt.Profile.FloatTiles-1)/s.Opt.Profile.FloatTiles, extent/2)
	if pieces > 1 {
		s.Record(v, true, "terms of activations must fit", state.Number{Name: "bytes", Value: bytes}, state.Number{Name: "pieces", Value: pieces})
	}
	return pieces
}

// readsColumns reports a product of two reads, both over k: one along a row of
// results, the other for enough of the rest.
func readsColumns(s *state.State, v *state.Value, u *ir.UOp) bool {
	list := analyse.Factors(u.Src[0])
	if len(list) != 2 {
		return false
	}
	for i, f := range list {
		other := list[1-i]
		n := columnOf(s.Exprs, f, u.ReduceRange())
		if n == nil || s.DependsOn(other, n) || columnOf(s.Exprs, other, u.ReduceRange()) == n || !s.DependsOn(other, u.ReduceRange()) {
			continue
		}
		if slices.Contains(v.StoreLoops(), n) && s.Points(ir.WithoutRanges(s.Free.Of(other), []*ir.UOp{u.ReduceRange()})) >= s.Opt.Profile.PanelRows {
			return true
		}
	}
	return false
}

// columnOf is the range along which a read's elements lie side by side if its k
// is further out, nil if that is not so. Packed blocks lie along k.
func columnOf(s *expr.Exprs, f, k *ir.UOp) *ir.UOp {
	for f.Op == ir.OpCast {
		f = f.Src[0]
	}
	if f.Op != ir.OpLoad || len(f.Indices()) < 2 {
		return nil
	}
	n := f.Indices()[len(f.Indices())-1]
	if n.Op != ir.OpRange || n == k || !s.DependsOn(f, k) {
		return nil
	}
	return n
}

// chainPieces stores a combination of sums over all pieces but the last, each with those
// before it; v adds the last. Pieces differ by one point where the extent is no multiple.
func chainPieces(s *state.State, v *state.Value, u *ir.UOp, pieces int64) {
	a, sums := s.A, summands(u)
	extent, _ := sums[0].ReduceRange().Src[0].Int()
	scope := lists.Filter(v.StoreLoops(), func(r *ir.UOp) bool { return slices.Contains(s.Free.Of(u), r) })
	var sum *ir.UOp
	for i := range pieces {
		first := i * extent / pieces
		inner := s.NewRange(a.Index((i+1)*extent/pieces - first))
		k, with := s.Simplify(a.Add(inner, a.Index(first))), make(map[*ir.UOp]*ir.UOp)
		for _, x := range sums {
			with[x] = s.CloseReduce(a.Reduce(ir.OpAdd, s.Substitute(x.Src[0], map[*ir.UOp]*ir.UOp{x.ReduceRange(): k}), inner))
		}
		piece := s.Substitute(u, with)
		if sum != nil {
			piece = a.Add(sum, piece)
		}
		if i == pieces-1 {
			s.SetBody(v, s.Substitute(v.Body, map[*ir.UOp]*ir.UOp{u: piece}))
			return
		}
		part := s.NewValue(u.DType, nil, nil)
		s.SetSignature(part, scope, piece)
		part.Pinned = true
		part.Reasons = []string{s.Pass.Name + " of " + v.Label()}
		s.Users, s.ReadMemo = append(s.Users, nil), append(s.ReadMemo, state.Reads{})
		s.LinkReads(part)
		sum = a.Load(part.Node, scope...)
	}
}
