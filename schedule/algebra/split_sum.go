package algebra

import (
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/schedule/expr"
)

// splitSum distributes a REDUCE over its factor i, an ADD or SUB.
func splitSum(s *expr.Exprs, u *ir.UOp, list []*ir.UOp, i int) *ir.UOp {
	f := list[i]
	half := func(term *ir.UOp) *ir.UOp {
		part := make([]*ir.UOp, len(list))
		copy(part, list)
		part[i] = term
		return sumOf(s, part, u)
	}
	return s.A.Make(f.Op, f.DType, nil, half(f.Src[0]), half(f.Src[1]))
}

// isFieldSum reports t1+t2 or t1-t2 of FIELDs only where some term has a factor
// that is coarser in k than the whole.
func isFieldSum(s *expr.Exprs, f, k *ir.UOp) bool {
	if f.Op != ir.OpAdd && f.Op != ir.OpSub || !isFieldsOnly(s, f) {
		return false
	}
	whole := s.Granularity(f, k)
	for _, t := range f.Src {
		if t.Op == ir.OpConst {
			return false // an integer constant: distribute-offsets
		}
	}
	for _, t := range f.Src {
		for _, g := range analyse.Factors(t) {
			if c := s.Granularity(g, k); c > whole || c == 0 {
				return true
			}
		}
	}
	return false
}

// isFieldsOnly reports an expression that reads packed fields and tables only. A
// row may be gathered: what its index reads is not decoded (an expert's number).
func isFieldsOnly(s *expr.Exprs, u *ir.UOp) bool {
	found, only := false, true
	var seen ir.Visited
	var visit func(u *ir.UOp)
	visit = func(u *ir.UOp) {
		if !only || !seen.Add(u) {
			return
		}
		list := u.Src
		switch u.Op {
		case ir.OpField:
			found = true
			list = u.Src[2:]
		case ir.OpValue, ir.OpReduce, ir.OpStage:
			only = false
		case ir.OpLoad:
			only = only && u.Src[0].Op == ir.OpTable
		}
		for _, x := range list {
			visit(x)
		}
	}
	visit(u)
	return found && only
}
