package algebra

import (
	"slices"

	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/schedule/expr"
	"tgc/schedule/state"
)

// SeparateOffsets: where lanes run along k (Profile.IntegerSums) an offset leaves its
// group, up to the outermost sum, with the activations' scale inside:
//
//	sum_g s*sum_a c*(dot + o) -> sum_g s*sum_a c*dot + sum_g sum_a c*(s*o)
//
// A sum over lanes can then stay in its lanes until the end; an offset inside
// would fold them for every group.
func SeparateOffsets(s *state.State, v *state.Value) {
	if !s.Opt.Profile.IntegerSums || s.Height(v.Body) < 2 || !s.ReadsField(v.Body) {
		return
	}
	if body := s.RewriteReduces(v.Body, func(u *ir.UOp) *ir.UOp { return splitOffset(s.Exprs, u) }); body != v.Body {
		v.Body = body
		s.Record(v, true, "offset of integer sums", state.Number{Name: "loops", Value: loopDepth(s.Exprs, body)})
	}
}

// splitOffset distributes a float sum over a factor of which some terms hold
// dots and others do not.
func splitOffset(s *expr.Exprs, u *ir.UOp) *ir.UOp {
	if u.Arg.(ir.ReduceArg).Op != ir.OpAdd || u.DType != ir.F32 {
		return u
	}
	list := analyse.Factors(u.Src[0])
	for i, f := range list {
		if f.Op != ir.OpAdd || s.Height(f) == 0 {
			continue
		}
		var dots, offsets *ir.UOp
		for _, x := range summands(f) {
			into := &offsets
			if isDotSide(s, x) {
				into = &dots
			}
			if *into != nil {
				x = s.A.Add(*into, x)
			}
			*into = x
		}
		if dots == nil || offsets == nil {
			continue
		}
		rest := slices.Delete(slices.Clone(list), i, i+1)
		sum := func(x *ir.UOp) *ir.UOp { return s.CloseReduce(s.A.Reduce(ir.OpAdd, x, u.ReduceRange())) }
		return s.A.Add(sum(analyse.Product(s.A, append(rest, dots))), sum(pushInto(s, offsets, rest)))
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
func isDotSide(s *expr.Exprs, x *ir.UOp) bool {
	sums := false
	for _, u := range ir.Toposort(x) {
		if u.Op == ir.OpReduce && s.Height(u.Src[0]) == 0 {
			if s.ReadsField(u) {
				return true
			}
			sums = true
		}
	}
	return !sums
}

// pushInto multiplies an offset by factors. Into a sum of offsets times scales
// those without weights go too, next to the offset.
func pushInto(s *expr.Exprs, x *ir.UOp, list []*ir.UOp) *ir.UOp {
	weights := slices.DeleteFunc(slices.Clone(list), func(f *ir.UOp) bool { return !s.ReadsField(f) })
	others := slices.DeleteFunc(slices.Clone(list), s.ReadsField)
	if x.Op == ir.OpReduce && s.ReadsField(x) && len(others) > 0 {
		var keep, inner []*ir.UOp
		for _, f := range analyse.Factors(x.Src[0]) {
			if s.ReadsField(f) {
				keep = append(keep, f)
			} else {
				inner = append(inner, f)
			}
		}
		inner = append(inner, others...)
		x = s.CloseReduce(s.A.Reduce(ir.OpAdd, analyse.Product(s.A, append(keep, analyse.Product(s.A, inner))), x.ReduceRange()))
		others = nil
	}
	return analyse.Product(s.A, append(append(weights, others...), x))
}
