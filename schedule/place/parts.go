package place

import (
	"slices"

	"tgc/ir"
	"tgc/schedule/expr"
	"tgc/schedule/state"
)

// Parts of a reduce are values of their own.

// chunks say which chunk a part is of, and where it is read: at nil, where there is but one.
type chunks struct {
	at, combine *ir.UOp
	outermost   bool // the parts of a chunk lie together
}

// partRead makes the value of a part, or finds an equal one, and reads it at the loops of v.
func partRead(s *state.State, v *state.Value, body *ir.UOp, of chunks, parts map[*ir.UOp]*state.Value) *ir.UOp {
	var ranges, private []*ir.UOp
	free, scope := s.Free.Of(body), scopeOf(s.Exprs, body)
	if body.Op == ir.OpProj && !s.A.MonoidOf(body.Src[0]).Separable {
		free = s.Free.Of(body.Src[0]) // the number of elements is counted where the mean is
		scope = free
	}
	for _, r := range v.StoreLoops() {
		switch {
		case !slices.Contains(free, r):
		case slices.Contains(scope, r):
			ranges = append(ranges, r)
		default:
			private = append(private, r)
		}
	}
	switch {
	case of.at == nil:
	case of.outermost:
		ranges = slices.Insert(ranges, 0, of.at)
	default:
		ranges = append(ranges, of.at)
	}
	ranges = append(ranges, private...)
	with := make(map[*ir.UOp]*ir.UOp, len(ranges))
	for i, r := range ranges {
		with[r] = s.A.Range(expr.AnchorBase+i, r.Src[0])
	}
	key := s.Substitute(body, with)
	part, ok := parts[key]
	if !ok {
		part = s.NewValue(body.DType, nil, nil)
		s.SetSignature(part, ranges, body)
		part.Pinned, part.Group = true, s.Groups
		part.Reasons = []string{s.Pass.Name + " of " + v.Label()}
		s.Users = append(s.Users, nil)
		s.ReadMemo = append(s.ReadMemo, state.Reads{})
		s.LinkReads(part)
		parts[key] = part
	}
	index := make([]*ir.UOp, len(ranges))
	for i, r := range ranges {
		index[i] = r
		if r == of.at {
			index[i] = of.combine
		}
	}
	return s.A.Load(part.Node, index...)
}

// scopeOf lists the ranges of a part that are not private to a component.
func scopeOf(s *expr.Exprs, body *ir.UOp) []*ir.UOp {
	if body.Op == ir.OpProj {
		return s.Free.Of(body.Src[0].Src[0])
	}
	return s.Free.Of(body)
}

// foldedPoints is how many points a fold of folds has, as many as the first components of its tuples.
func foldedPoints(s *state.State, u *ir.UOp) int64 {
	points := int64(1)
	for ; u.Op == ir.OpReduce; u = u.ReduceValues()[0] {
		points = expr.Saturate(points, max(s.Bounds.Of(u.ReduceRange().Src[0]).Hi, 1))
	}
	return points
}
