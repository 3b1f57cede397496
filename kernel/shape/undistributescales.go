package shape

import (
	"cmp"
	"slices"
	"tgc/ir"
	"tgc/ir/analyse"
)

// undistributeScales undoes, for sums whose weights lie in panels, what makes a sum cheap
// that decodes as it goes: factors of coarser granularity outside of inner sums
// and offsets summed on their own. Decoded once and used by many tokens, a
// weight is best one number:
//
//	d * sum_b s * (sum_j x*q + -32 * sum_j x) -> sum_b sum_j x * (d*s*(q-32))
//
// It re-associates (class A), as STAGE does.
func undistributeScales(st *State, sink *ir.UOp) *ir.UOp {
	if !slices.ContainsFunc(st.Axes, func(p Axis) bool { return p.StageAmount > 0 }) {
		return sink
	}
	a := st.Arena
	return a.Rebuild(sink, func(u *ir.UOp, src []*ir.UOp) *ir.UOp {
		out := a.With(u, src)
		switch {
		case isSumOrDifference(out) && analyse.IsFloatSum(src[0]) && analyse.IsFloatSum(src[1]):
			return intoSums(st, out)
		case analyse.IsFloatSum(out):
			return a.Reduce(ir.OpAdd, intoSums(st, out.Src[0]), out.ReduceRange())
		}
		return out
	})
}

func isSumOrDifference(u *ir.UOp) bool {
	return (u.Op == ir.OpAdd || u.Op == ir.OpSub) && u.DType.IsFloat()
}

// intoSums moves factors and other terms of a sum's body into the sums in it.
func intoSums(st *State, u *ir.UOp) *ir.UOp {
	a := st.Arena
	switch {
	case !u.DType.IsFloat():
		return u
	case isSumOrDifference(u):
		x, y := intoSums(st, u.Src[0]), intoSums(st, u.Src[1])
		if analyse.IsFloatSum(x) && analyse.IsFloatSum(y) && x.ReduceRange() == y.ReduceRange() {
			return a.Reduce(ir.OpAdd, intoSums(st, a.Binary(u.Op, x.Src[0], y.Src[0])), x.ReduceRange())
		}
		if analyse.IsFloatSum(x) || analyse.IsFloatSum(y) {
			return a.Binary(u.Op, x, y)
		}
		return commonFactors(st, u.Op, x, y)
	case u.Op == ir.OpMul:
		factors := analyse.Factors(u)
		for i, f := range factors {
			if f = intoSums(st, f); !analyse.IsFloatSum(f) {
				continue
			}
			body := f.Src[0]
			for k, other := range factors {
				if k != i {
					body = a.Mul(body, other)
				}
			}
			return a.Reduce(ir.OpAdd, intoSums(st, body), f.ReduceRange())
		}
	}
	return u
}

// commonFactors is x+y or x-y with the factors that both have in front.
func commonFactors(st *State, op ir.Op, x, y *ir.UOp) *ir.UOp {
	a := st.Arena
	both, left, right := analyse.CommonFactors(x, y)
	if len(both) == 0 {
		return a.Binary(op, x, y)
	}
	product := func(list []*ir.UOp) *ir.UOp { return cmp.Or(analyse.Product(a, list), a.Const(x.DType, 1)) }
	return a.Mul(product(both), a.Binary(op, product(left), product(right)))
}
