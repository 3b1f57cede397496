package ir

import (
	"math"
	"slices"
)

// The tuple reduce of a softmax (online softmax, Milakov and Gimelshein 2018):
// component 0 is the running maximum of a score, component i the sum of
// exp2(c*(score - component 0)) times anything. Rules make it, plans and other
// rules recognise it by its combine step.

// SoftmaxLambda combines n components (max, sums..): the larger maximum, and the
// sums scaled to it. No maximum is below the lowest finite number, so that an
// element of -inf has weight 0 and no inf-inf arises, whatever is combined: an
// element with the identity, or two masked elements with each other.
func (a *Arena) SoftmaxLambda(dtype DType, n int, c *UOp) (identity, combine []*UOp) {
	arg := func(i int) *UOp { return a.Make(OpArg, dtype, IntArg(i)) }
	floor := a.SoftmaxFloor(dtype)
	top := a.Binary(OpMax, a.Binary(OpMax, arg(0), arg(n)), floor)
	identity, combine = []*UOp{floor}, []*UOp{top}
	left := a.Unary(OpExp2, a.Mul(a.Sub(arg(0), top), c))
	right := a.Unary(OpExp2, a.Mul(a.Sub(arg(n), top), c))
	for i := 1; i < n; i++ {
		identity = append(identity, a.Const(dtype, 0))
		combine = append(combine, a.Add(a.Mul(arg(i), left), a.Mul(arg(n+i), right)))
	}
	return identity, combine
}

// SoftmaxFloor is the least maximum: the lowest finite number.
func (a *Arena) SoftmaxFloor(dtype DType) *UOp {
	if dtype == F64 {
		return a.Const(dtype, -math.MaxFloat64)
	}
	return a.Const(dtype, -math.MaxFloat32)
}

// IsSoftmax recognises a tuple REDUCE with that combine step, and its c.
func (a *Arena) IsSoftmax(u *UOp) (c *UOp, ok bool) {
	if u.Op != OpReduce {
		return nil, false
	}
	arg := u.Arg.(ReduceArg)
	if arg.Op != OpInvalid || arg.N < 2 {
		return nil, false
	}
	for _, x := range Toposort(u.Src[2*arg.N+2]) {
		if x.Op == OpExp2 && x.Src[0].Op == OpMul {
			c = x.Src[0].Src[1]
		}
	}
	if c == nil {
		return nil, false
	}
	identity, combine := a.SoftmaxLambda(u.DType, arg.N, c)
	return c, slices.Equal(u.Src[arg.N+1:2*arg.N+1], identity) && slices.Equal(u.Src[2*arg.N+1:], combine)
}
