package shape

import (
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/kernel/plan"
)

// Copies of integer sums around matrix instructions. Activations of two digits and codes with an offset are sums of several products,
// which are put together inside of the copies:
//
//	sum_copies 256*sum_j h*q + sum_j l*q  ->  256*(sum_copies sum_j h*q) + sum_copies sum_j l*q
//
// so that each instruction goes on with the sum of the copy before it, or takes the points of two copies at once, and what stands
// outside is computed once. Integers are exact: any order gives the same.

// separateIntegers rewrites the copies of integer sums.
func separateIntegers(st *State, sink *ir.UOp) *ir.UOp {
	return st.simp.Do(st.Arena.Rebuild(sink, func(u *ir.UOp, src []*ir.UOp) *ir.UOp {
		if !analyse.IsSum(u) || !u.DType.IsInt() || st.roles[u.ReduceRange()] != plan.Unroll {
			return nil
		}
		return st.separated(src[0], u.ReduceRange())
	}))
}

// separated is the sum of x over copies, as sums of what x adds up; nil where one of those is no sum of matrix instructions.
func (st *State) separated(x, copies *ir.UOp) *ir.UOp {
	a := st.Arena
	switch {
	case x.Op == ir.OpAdd:
		left, right := st.separated(x.Src[0], copies), st.separated(x.Src[1], copies)
		if left == nil || right == nil {
			return nil
		}
		return a.Add(left, right)
	case x.Op == ir.OpMul && x.Src[1].Op == ir.OpConst:
		if of := st.separated(x.Src[0], copies); of != nil {
			return a.Mul(of, x.Src[1])
		}
	case st.isOfMatrix(x):
		return a.Reduce(ir.OpAdd, x, copies)
	}
	return nil
}

// isOfMatrix reports a sum of matrix instructions, or copies of one.
func (st *State) isOfMatrix(x *ir.UOp) bool {
	if !analyse.IsSum(x) {
		return false
	}
	role := st.roles[x.ReduceRange()]
	return role == plan.Matrix || role == plan.Unroll && st.isOfMatrix(x.Src[0])
}
