package schedule

import (
	"slices"

	"tgc/ir"
)

// factors flattens a MUL tree, left to right.
func factors(u *ir.UOp) []*ir.UOp { return flattenTree(u, nil) }

func flattenTree(u *ir.UOp, list []*ir.UOp) []*ir.UOp {
	if u.Op != ir.OpMul {
		return append(list, u)
	}
	return flattenTree(u.Src[1], flattenTree(u.Src[0], list))
}

// product multiplies factors, left to right; nil for none.
func (s *scheduler) product(list []*ir.UOp) *ir.UOp {
	var p *ir.UOp
	for _, f := range list {
		if p == nil {
			p = f
		} else {
			p = s.a.Mul(p, f)
		}
	}
	return p
}

// dependsOn reports that u uses one of the ranges.
func (s *scheduler) dependsOn(u *ir.UOp, ranges ...*ir.UOp) bool {
	for _, r := range s.free.of(u) {
		if slices.Contains(ranges, r) {
			return true
		}
	}
	return false
}

// isRead reports LOAD(VALUE, ..) and returns the value.
func (s *scheduler) isRead(u *ir.UOp) (*value, bool) {
	if u.Op == ir.OpLoad && u.Src[0].Op == ir.OpValue {
		return s.values[u.Src[0].Arg.(ir.ValueArg).ID], true
	}
	return nil, false
}

// isPointwise reports a body without REDUCE or STAGE.
func (s *scheduler) isPointwise(v *value) bool { return s.height(v.body) == 0 }

// instKey identifies the expression of a value's element.
type instKey struct{ body, index *ir.UOp }

// instantiate is a value's body at an index into its signature. The index must
// not use closed ranges that the body closes too (see value): callers rename
// the reduces around a use first.
func (s *scheduler) instantiate(v *value, index []*ir.UOp) *ir.UOp {
	key := instKey{v.body, s.a.Make(ir.OpSink, ir.Void, nil, index...)}
	if e, ok := s.instMemo[key]; ok {
		return e
	}
	e := s.atIndex(v.ranges, v.body, index)
	s.instMemo[key] = e
	return e
}

// atIndex substitutes an index for ranges in an expression over them.
func (s *scheduler) atIndex(ranges []*ir.UOp, body *ir.UOp, index []*ir.UOp) *ir.UOp {
	with := make(map[*ir.UOp]*ir.UOp, len(ranges))
	for i, r := range ranges {
		if r != index[i] {
			with[r] = index[i]
		}
	}
	return s.substitute(body, with)
}

// operations counts the scalar operations of one evaluation of u, reduces
// counting their body once: index arithmetic is free, shared nodes count once.
func (s *scheduler) operations(u *ir.UOp) int64 {
	if n, ok := s.opsMemo[u]; ok {
		return n
	}
	var n int64
	var seen ir.Visited
	var visit func(u *ir.UOp)
	visit = func(u *ir.UOp) {
		if len(u.Src) == 0 || u.DType == ir.Idx || !seen.Add(u) {
			return
		}
		if !(u.Op == ir.OpCast && isFreeCast(u)) {
			n += operationCost(u.Op)
		}
		for _, src := range u.Src {
			visit(src)
		}
	}
	visit(u)
	s.opsMemo[u] = n
	return n
}

// isFreeCast reports a conversion that a load or a wider operation absorbs.
func isFreeCast(u *ir.UOp) bool {
	from := u.Src[0]
	return from.Op == ir.OpLoad && from.Src[0].Op == ir.OpParam || from.DType == ir.Idx
}

// rewriteReduces applies f to every plain REDUCE of an expression, inner ones
// first, and keeps the canonical names.
func (s *scheduler) rewriteReduces(u *ir.UOp, f func(*ir.UOp) *ir.UOp) *ir.UOp {
	done := make(map[*ir.UOp]*ir.UOp)
	var visit func(u *ir.UOp) *ir.UOp
	visit = func(u *ir.UOp) *ir.UOp {
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
			if r.Arg.(ir.ReduceArg).Op != ir.OpInvalid {
				r = f(r)
			}
		case ir.OpStage:
			r = s.closeStage(r)
		}
		done[u] = r
		return r
	}
	out := visit(u)
	if out != u { // inner reduces may have made way for outer names: settle
		clear(done)
		f = func(r *ir.UOp) *ir.UOp { return r }
		out = visit(out)
	}
	return out
}
