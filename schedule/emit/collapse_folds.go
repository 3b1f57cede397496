package emit

import (
	"slices"

	"tgc/ir"
	"tgc/schedule/expr"
	"tgc/schedule/state"
)

// folds: a fold of folds, sum_a sum_b x[.., a, b, ..], that reads side by side along both is one fold. Its lanes
// then run over the whole of an image, not over each of its rows with an end that is masked, and threads of a GPU share
// all of it.

// CollapseFolds merges the folds of every kernel.
func CollapseFolds(s *state.State) { eachWritten(s, flattenSums, "one fold") }

// flattenSums merges the loops of folds of a kernel as long as there are such.
func flattenSums(s *state.State, sink *ir.UOp) *ir.UOp {
	nodes := ir.Toposort(sink)
	for _, u := range nodes {
		inner, ok := foldOfFold(u)
		if !ok {
			continue
		}
		a, b := u.ReduceRange(), inner.ReduceRange()
		if at, ok := sideBySide(withoutFolds(nodes, u, inner), a, b); ok {
			return flattenSums(s, mergeSums(s.Exprs, sink, u, at))
		}
	}
	return sink
}

// foldOfFold is the fold that another one folds, by the same operation, and nothing beside.
func foldOfFold(u *ir.UOp) (inner *ir.UOp, ok bool) {
	if u.Op != ir.OpReduce || u.Src[0].Op != ir.OpReduce {
		return nil, false
	}
	outer, of := u.Arg.(ir.ReduceArg), u.Src[0].Arg.(ir.ReduceArg)
	return u.Src[0], outer.Op != ir.OpInvalid && outer.Op == of.Op && u.DType == u.Src[0].DType && len(u.Src) == 2 && len(u.Src[0].Src) == 2
}

// withoutFolds are the nodes that may use the loops of two folds: all but these.
func withoutFolds(nodes []*ir.UOp, folds ...*ir.UOp) []*ir.UOp {
	return slices.DeleteFunc(slices.Clone(nodes), func(u *ir.UOp) bool { return slices.Contains(folds, u) })
}

// mergeSums writes the kernel with one fold for u and what it folds.
func mergeSums(s *expr.Exprs, sink, u *ir.UOp, at map[*ir.UOp]span) *ir.UOp {
	a, b := u.ReduceRange(), u.Src[0].ReduceRange()
	n, _ := a.Src[0].Int()
	m, _ := b.Src[0].Int()
	both := s.A.Range(expr.RangeID(a), s.A.Index(n*m))
	flat := s.A.Rebuild(sink, func(x *ir.UOp, src []*ir.UOp) *ir.UOp {
		if x == u { // src[0] is the inner fold
			return s.A.With(u, []*ir.UOp{src[0].Src[0], both})
		}
		return nil
	})
	return mergeLoops(s, flat, a, b, at)
}
