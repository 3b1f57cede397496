package algebra

import (
	"math"
	"slices"

	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/schedule/expr"
	"tgc/schedule/state"
)

// CHAN: a sum S of x over k, and a sum of squares of y = x - S/n over the same
// range, become one tuple reduce (mean, M2, count) with the pairwise update of
// Chan, Golub and LeVeque 1979. Component 0 is the mean, 1 the sum of squared
// deviations, 2 the number of elements.

// FuseMoments looks for sums of squares around the mean that value m sums up.
func FuseMoments(s *state.State, m *state.Value) {
	u := m.Body
	if !analyse.IsFloatSum(u) {
		return
	}
	n, ok := u.ReduceRange().Src[0].Int()
	if !ok {
		return
	}
	found := false
	for _, b := range reducesOver(s.Graph, m) {
		body := s.RewriteReduces(b.Body, func(r *ir.UOp) *ir.UOp {
			if r.Arg.(ir.ReduceArg).Op != ir.OpAdd || r.ReduceRange().Src[0] != u.ReduceRange().Src[0] {
				return r
			}
			x, ok := deviationSquare(s.Graph, m, r, n)
			if !ok {
				return r
			}
			return s.A.Proj(chanTuple(s.Exprs, x, r.ReduceRange()), 1)
		})
		if body != b.Body {
			b.Body, found = body, true
			s.Record(b, true, "squares around a mean", state.Number{Name: "extent", Value: n})
		}
	}
	if found {
		mean := s.A.Proj(chanTuple(s.Exprs, u.Src[0], u.ReduceRange()), 0)
		m.Body = s.A.Mul(mean, s.A.Const(u.DType, float64(n)))
	}
}

// deviationSquare matches REDUCE(ADD, y*y; k) where y = x - m/n and m sums x.
// Both factors must be one node.
func deviationSquare(s *state.Graph, m *state.Value, r *ir.UOp, n int64) (x *ir.UOp, ok bool) {
	list := analyse.Factors(r.Src[0])
	if len(list) != 2 || list[0] != list[1] {
		return nil, false
	}
	k := r.ReduceRange()
	form := linearForm(s, list[0])
	read, c := takeMaximum(s, &form, m) // the read of m, with coefficient -c
	if read == nil || math.Abs(c*float64(n)-1) > 1e-6 || !s.PlainRanges(read.Indices(), k) {
		return nil, false
	}
	index := append(slices.Clone(read.Indices()), k)
	x = s.AtIndex(append(slices.Clone(m.Ranges), m.Body.ReduceRange()), m.Body.Src[0], index)
	want := linearForm(s, x)
	return x, want.equal(form) && !reaches(s, x, m.ID)
}

// chanTuple is the tuple reduce of x over a range.
func chanTuple(s *expr.Exprs, x, k *ir.UOp) *ir.UOp {
	zero, one := s.A.Const(x.DType, 0), s.A.Const(x.DType, 1)
	return s.CloseReduce(s.A.Fold(ir.Moments(), []*ir.UOp{x, zero, one}, k))
}
