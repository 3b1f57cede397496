package shape

import (
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/kernel/plan"
)

// joinOffsets undoes the distribution of a constant over a sum of MMA:
//
//	sum_k x*q + c*sum_k x  ->  sum_k x*(q+c)
//
// A sum of its own would take as many instructions as the product, while q+c, a
// small integer, still is one term (class A).
func joinOffsets(st *State, sink *ir.UOp) *ir.UOp {
	matrix := make(map[*ir.UOp]bool)
	for _, p := range st.Axes {
		matrix[p.Axis.Range] = p.Has(plan.Matrix)
	}
	return st.Arena.Rebuild(sink, func(u *ir.UOp, src []*ir.UOp) *ir.UOp {
		if u.Op != ir.OpAdd || u.DType != ir.F32 && u.DType != ir.I32 {
			return nil
		}
		if joined := joinOffset(st, src[0], src[1], matrix); joined != nil {
			return joined
		}
		return joinOffset(st, src[1], src[0], matrix)
	})
}

// joinOffset is the sum x + y in one reduce, if y is a constant times a sum over
// the range of x, or one like it, whose factors are all but one of those of x; else nil.
func joinOffset(st *State, x, y *ir.UOp, matrix map[*ir.UOp]bool) *ir.UOp {
	a := st.Arena
	if y.Op == ir.OpLoad && y.Src[0].Op == ir.OpStage { // summed once, for all rows
		y = bodyAt(st, y.Src[0], y.Indices())
	}
	if y.Op != ir.OpMul {
		return nil
	}
	scaled, c := y.Src[0], y.Src[1]
	if c.Op != ir.OpConst {
		scaled, c = c, scaled
	}
	if c.Op != ir.OpConst || !analyse.IsSum(x) || !matrix[x.ReduceRange()] || !analyse.IsSum(scaled) || x.ReduceRange().Src[0] != scaled.ReduceRange().Src[0] {
		return nil
	}
	activations := a.Substitute(scaled.Src[0], map[*ir.UOp]*ir.UOp{scaled.ReduceRange(): x.ReduceRange()})
	both, left, right := analyse.CommonFactors(x.Src[0], activations)
	if len(left) != 1 || len(right) > 0 {
		return nil
	}
	product := a.Add(left[0], c)
	for _, f := range both {
		product = a.Mul(f, product)
	}
	return a.Reduce(ir.OpAdd, product, x.ReduceRange())
}
