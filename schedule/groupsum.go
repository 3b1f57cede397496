package schedule

import (
	"slices"

	"tgc/ir"
)

// R2g, group sums: what integer dots leave over once scales and offsets are
// outside, sums of activations alone, becomes values of their own when there are
// several tokens: one number for a group and token, the same for all rows. Of one
// token a block keeps them itself, beside its activations.

func (s *scheduler) groupSums(v *value) {
	if n := s.opt.Profile.MatrixTokens; n > 0 && s.weightReuse(v)%n == 0 || !s.holdsDot(v.body) {
		return
	}
	before := len(s.values)
	if body := s.sumsApart(v, v.body); body != v.body {
		v.body = body
		s.record(GroupSum, v, true, "sums of activations", Number{"values", int64(len(s.values) - before)})
	}
}

// holdsDot reports sums of integers next to packed weights.
func (s *scheduler) holdsDot(body *ir.UOp) bool {
	return s.height(body) > 0 && s.readsField(body) && slices.ContainsFunc(ir.Toposort(body), func(u *ir.UOp) bool {
		return u.Op == ir.OpReduce && u.DType == ir.I32 && readsValue(u)
	})
}

func readsValue(u *ir.UOp) bool {
	return slices.ContainsFunc(ir.Toposort(u), func(x *ir.UOp) bool { return x.Op == ir.OpValue })
}

// R2o, offsets apart: where lanes run along k (Profile.IntegerSums) an offset
// leaves the group that it stands in, up to the outermost sum, with the
// activations' scale inside:
//
//	sum_g s*sum_a c*(dot + o) -> sum_g s*sum_a c*dot + sum_g sum_a c*(s*o)
//
// A sum over lanes can then stay in its lanes until the end; an offset in its
// midst would fold them for every group.
func (s *scheduler) offsetsApart(v *value) {
	if !s.opt.Profile.IntegerSums || s.height(v.body) < 2 || !s.readsField(v.body) {
		return
	}
	if body := s.rewriteReduces(v.body, s.splitOffset); body != v.body {
		v.body = body
		s.record(OffsetApart, v, true, "offset of integer sums", Number{"loops", s.loopDepth(body)})
	}
}

// splitOffset distributes a float sum over a factor of which some terms hold
// dots and others do not.
func (s *scheduler) splitOffset(u *ir.UOp) *ir.UOp {
	if u.Arg.(ir.ReduceArg).Op != ir.OpAdd || u.DType != ir.F32 {
		return u
	}
	list := factors(u.Src[0])
	for i, f := range list {
		if f.Op != ir.OpAdd || s.height(f) == 0 {
			continue
		}
		var dots, offsets *ir.UOp
		for _, x := range summands(f) {
			into := &offsets
			if s.isDotSide(x) {
				into = &dots
			}
			if *into != nil {
				x = s.a.Add(*into, x)
			}
			*into = x
		}
		if dots == nil || offsets == nil {
			continue
		}
		rest := slices.Delete(slices.Clone(list), i, i+1)
		sum := func(x *ir.UOp) *ir.UOp { return s.closeReduce(s.a.Reduce(ir.OpAdd, x, u.ReduceRange())) }
		return s.a.Add(sum(s.product(append(rest, dots))), sum(s.pushInto(offsets, rest)))
	}
	return u
}

// summands flattens a tree of sums, left to right.
func summands(u *ir.UOp) []*ir.UOp {
	if u.Op != ir.OpAdd {
		return []*ir.UOp{u}
	}
	return append(summands(u.Src[0]), summands(u.Src[1])...)
}

// isDotSide reports a term with an innermost sum of packed weights, or without
// any sum.
func (s *scheduler) isDotSide(x *ir.UOp) bool {
	sums := false
	for _, u := range ir.Toposort(x) {
		if u.Op == ir.OpReduce && s.height(u.Src[0]) == 0 {
			if s.readsField(u) {
				return true
			}
			sums = true
		}
	}
	return !sums
}

// pushInto multiplies an offset by factors. Into a sum of offsets times scales
// those without weights go too, next to the offset.
func (s *scheduler) pushInto(x *ir.UOp, list []*ir.UOp) *ir.UOp {
	weights := slices.DeleteFunc(slices.Clone(list), func(f *ir.UOp) bool { return !s.readsField(f) })
	others := slices.DeleteFunc(slices.Clone(list), s.readsField)
	if x.Op == ir.OpReduce && s.readsField(x) && len(others) > 0 {
		var keep, inner []*ir.UOp
		for _, f := range factors(x.Src[0]) {
			if s.readsField(f) {
				keep = append(keep, f)
			} else {
				inner = append(inner, f)
			}
		}
		inner = append(inner, others...)
		x = s.closeReduce(s.a.Reduce(ir.OpAdd, s.product(append(keep, s.product(inner))), x.ReduceRange()))
		others = nil
	}
	return s.product(append(append(weights, others...), x))
}

// sumsApart replaces the largest expressions around sums of activations by reads
// of values.
func (s *scheduler) sumsApart(v *value, body *ir.UOp) *ir.UOp {
	with := make(map[*ir.UOp]*ir.UOp)
	var seen ir.Visited
	var visit func(u *ir.UOp)
	visit = func(u *ir.UOp) {
		if s.height(u) == 0 || !seen.Add(u) {
			return
		}
		if s.isGroupSum(v, u) {
			with[u] = s.groupValue(u)
			return
		}
		for _, x := range u.Src {
			visit(x)
		}
	}
	visit(body)
	if len(with) == 0 {
		return body
	}
	return s.replaceNodes(body, with)
}

// replaceNodes puts other nodes in place of some and keeps the canonical names.
func (s *scheduler) replaceNodes(body *ir.UOp, with map[*ir.UOp]*ir.UOp) *ir.UOp {
	done := make(map[*ir.UOp]*ir.UOp)
	var visit func(u *ir.UOp) *ir.UOp
	visit = func(u *ir.UOp) *ir.UOp {
		if to := with[u]; to != nil {
			return to
		}
		if len(u.Src) == 0 || s.height(u) == 0 {
			return u
		}
		if r, ok := done[u]; ok {
			return r
		}
		src := make([]*ir.UOp, len(u.Src))
		for i, x := range u.Src {
			src[i] = visit(x)
		}
		r := s.a.With(u, src)
		switch u.Op {
		case ir.OpReduce:
			r = s.closeReduce(r)
		case ir.OpStage:
			r = s.closeStage(r)
		}
		done[u] = r
		return r
	}
	return s.rewriteReduces(visit(body), func(r *ir.UOp) *ir.UOp { return r })
}

// isGroupSum reports arithmetic on sums of integers without weights, in a loop
// of a sum with weights, that some range of v's does not change: rows.
func (s *scheduler) isGroupSum(v *value, u *ir.UOp) bool {
	if u.DType != ir.F32 && u.DType != ir.I32 || s.readsField(u) || !u.Op.IsElementwise() && u.Op != ir.OpReduce {
		return false
	}
	sums := false
	for _, x := range ir.Toposort(u) {
		if x.Op == ir.OpReduce {
			if x.DType != ir.I32 || !readsValue(x) {
				return false
			}
			sums = true
		}
		if x.Op == ir.OpStage {
			return false
		}
	}
	free := s.free.of(u)
	used := func(r *ir.UOp) bool { return s.dependsOn(u, r) }
	return sums && constantExtents(free) && slices.ContainsFunc(free, isClosed) &&
		slices.ContainsFunc(v.ranges, used) && !slices.ContainsFunc(free, func(r *ir.UOp) bool { return !isClosed(r) && !slices.Contains(v.ranges, r) })
}

// groupValue is a read of the value that u is over its free ranges; equal ones
// of several readers are one.
func (s *scheduler) groupValue(u *ir.UOp) *ir.UOp {
	ranges := sorted(s.free.of(u))
	slices.SortStableFunc(ranges, func(x, y *ir.UOp) int { // those of the reader first, then outer sums before inner
		if isClosed(x) != isClosed(y) {
			if isClosed(y) {
				return -1
			}
			return 1
		}
		if isClosed(x) {
			return rangeID(y) - rangeID(x)
		}
		return rangeID(x) - rangeID(y)
	})
	place := make([]*ir.UOp, len(ranges))
	for i, r := range ranges {
		place[i] = s.a.Range(groupPlace+i, r.Src[0])
	}
	key := s.atIndex(ranges, u, place)
	known, ok := s.restMemo[key]
	if !ok {
		known = s.newValue(u.DType, nil, nil)
		s.setSignature(known, ranges, u)
		s.restMemo[key] = known
	}
	return s.a.Load(known.node, ranges...)
}

// groupPlace is the first id of ranges that stand for any: none has it.
const groupPlace = 1 << 30
