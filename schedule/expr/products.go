package expr

import (
	"slices"

	"tgc/ir"
)

// Factors flattens a MUL tree, left to right.
func Factors(u *ir.UOp) []*ir.UOp { return flattenTree(u, nil) }

func flattenTree(u *ir.UOp, list []*ir.UOp) []*ir.UOp {
	if u.Op != ir.OpMul {
		return append(list, u)
	}
	return flattenTree(u.Src[1], flattenTree(u.Src[0], list))
}

// Product multiplies factors, left to right; nil for none.
func (s *Exprs) Product(list []*ir.UOp) *ir.UOp {
	var p *ir.UOp
	for _, f := range list {
		if p == nil {
			p = f
		} else {
			p = s.A.Mul(p, f)
		}
	}
	return p
}

// DependsOn reports that u uses one of the ranges.
func (s *Exprs) DependsOn(u *ir.UOp, ranges ...*ir.UOp) bool {
	for _, r := range s.Free.Of(u) {
		if slices.Contains(ranges, r) {
			return true
		}
	}
	return false
}

// AtIndex substitutes an index for ranges in an expression over them.
func (s *Exprs) AtIndex(ranges []*ir.UOp, body *ir.UOp, index []*ir.UOp) *ir.UOp {
	with := make(map[*ir.UOp]*ir.UOp, len(ranges))
	for i, r := range ranges {
		if r != index[i] {
			with[r] = index[i]
		}
	}
	return s.Substitute(body, with)
}

// Operations counts the scalar operations of one evaluation of u, reduces
// counting their body once: index arithmetic is free, shared nodes count once.
func (s *Exprs) Operations(u *ir.UOp) int64 {
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
			n += OperationCost(u.Op)
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

// RewriteReduces applies f to every plain REDUCE of an expression, inner ones
// first, and keeps the canonical names.
func (s *Exprs) RewriteReduces(u *ir.UOp, f func(*ir.UOp) *ir.UOp) *ir.UOp {
	done := make(map[*ir.UOp]*ir.UOp)
	var visit func(u *ir.UOp) *ir.UOp
	visit = func(u *ir.UOp) *ir.UOp {
		if len(u.Src) == 0 || s.Height(u) == 0 {
			return u
		}
		if r, ok := done[u]; ok {
			return r
		}
		src := make([]*ir.UOp, len(u.Src))
		for i, x := range u.Src {
			src[i] = visit(x)
		}
		r := s.A.With(u, src)
		switch u.Op {
		case ir.OpReduce:
			r = s.CloseReduce(r)
			if r.Arg.(ir.ReduceArg).Op != ir.OpInvalid {
				r = f(r)
			}
		case ir.OpStage:
			r = s.CloseStage(r)
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
