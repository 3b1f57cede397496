package rewrite

import (
	"math"

	"tgc/ir"
)

// env holds the values of leaves, and of inner nodes once they are computed.
type env map[*ir.UOp]ir.Scalar

// leavesOf lists the ARG, VAR and RANGE nodes under root, extents first.
func leavesOf(root *ir.UOp) []*ir.UOp {
	var list []*ir.UOp
	for _, u := range ir.Toposort(root) {
		switch u.Op {
		case ir.OpArg, ir.OpVar, ir.OpRange:
			list = append(list, u)
		}
	}
	return list
}

// randomEnv gives every leaf a value; ok is false where a RANGE is empty.
func randomEnv(s *Sampler, leaves []*ir.UOp) (e env, ok bool) {
	e = make(env)
	for _, u := range leaves {
		switch u.Op {
		case ir.OpArg:
			e[u] = s.Value(u.DType)
		case ir.OpVar:
			arg := u.Arg.(ir.VarArg)
			lo := (arg.Lo + arg.Multiple - 1) / arg.Multiple
			e[u] = ir.IntScalar((lo + s.Rand.Int64N(arg.Hi/arg.Multiple-lo+1)) * arg.Multiple)
		case ir.OpRange:
			n := eval(u.Src[0], e).I
			if n <= 0 {
				return nil, false
			}
			// The ends of a loop are where index rules go wrong.
			at := []int64{0, n - 1, s.Rand.Int64N(n)}[s.Rand.IntN(3)]
			e[u] = ir.IntScalar(at)
		}
	}
	return e, true
}

// eval computes an expression of elementwise ops; small graphs, so it recurses.
func eval(u *ir.UOp, e env) ir.Scalar {
	if v, ok := e[u]; ok {
		return v
	}
	if v, ok := u.Scalar(); ok {
		return v
	}
	args := make([]ir.Scalar, len(u.Src))
	for i, s := range u.Src {
		args[i] = eval(s, e)
	}
	src := u.DType
	if u.Op != ir.OpWhere {
		src = u.Src[0].DType
	}
	v := ir.EvalScalar(u.Op, u.DType, src, args)
	e[u] = v
	return v
}

// same compares values bit for bit; any NaN equals any other.
func same(x, y ir.Scalar) bool {
	if x.F != x.F && y.F != y.F {
		return true
	}
	return x.I == y.I && math.Float64bits(x.F) == math.Float64bits(y.F)
}
