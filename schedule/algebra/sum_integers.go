package algebra

import (
	"tgc/ir"
	"tgc/schedule/expr"
	"tgc/schedule/state"
)

// sum-integers: a float sum whose terms are all integers (converted from
// integer dtypes, and sums, differences and products of such) is the sum in I32,
// converted once:
//
//	sum_j f(x)*f(y) -> f(sum_j x*y)
//
// Guard: bounds and known bits prove every intermediate result to stay below
// largestInteger. Below 2^24 the float sum has no rounding and both sides are the
// same bits; above it the right side rounds once where the left one rounds at
// every step. What it is for: dot products of bytes.

// largestInteger bounds integer sums: a result that the bounds analysis gives up
// on has all of I32.
const largestInteger = 1 << 30

// SumIntegers applies the rule to a value.
func SumIntegers(s *state.State, v *state.Value) {
	sums := int64(0)
	body := s.RewriteReduces(v.Body, func(u *ir.UOp) *ir.UOp {
		if u.Arg.(ir.ReduceArg).Op != ir.OpAdd || u.DType != ir.F32 {
			return u
		}
		x := asInteger(s.Exprs, u.Src[0])
		if x == nil {
			return u
		}
		total := s.CloseReduce(s.A.Reduce(ir.OpAdd, x, u.ReduceRange()))
		if !isSmall(s.Exprs, total) {
			return u
		}
		sums++
		return s.A.Cast(total, u.DType)
	})
	if sums > 0 {
		v.Body = joinIntegers(s.Exprs, body)
		s.Record(v, true, "sum of integers", state.Number{Name: "sums", Value: sums})
	}
}

// joinIntegers adds converted sums as integers, where they are small enough:
// c*f(sum) + f(sum') -> f(c*sum + sum'), one conversion.
func joinIntegers(s *expr.Exprs, body *ir.UOp) *ir.UOp {
	with := make(map[*ir.UOp]*ir.UOp)
	ir.Walk(func(u *ir.UOp) []*ir.UOp {
		if s.Height(u) == 0 {
			return nil
		}
		if (u.Op == ir.OpAdd || u.Op == ir.OpSub) && u.DType == ir.F32 {
			if x := asInteger(s, u); x != nil {
				with[u] = s.A.Cast(x, u.DType)
				return nil
			}
		}
		return u.Src
	}, body)
	if len(with) == 0 {
		return body
	}
	return s.ReplaceNodes(body, with)
}

// asInteger is a float expression of integers in I32; nil where it is not one, or
// may be too large.
func asInteger(s *expr.Exprs, u *ir.UOp) *ir.UOp {
	a := s.A
	var out *ir.UOp
	switch u.Op {
	case ir.OpConst:
		v, ok := u.Float()
		if !ok || v != float64(int64(v)) || v >= largestInteger || v <= -largestInteger {
			return nil
		}
		return a.ConstInt(ir.I32, int64(v))
	case ir.OpCast:
		x := u.Src[0]
		if !x.DType.IsInt() && x.DType != ir.Bool || x.DType == ir.Idx || !s.Bounds.Of(x).Within(-largestInteger, largestInteger) {
			return nil
		}
		return a.Cast(x, ir.I32)
	case ir.OpAdd, ir.OpSub, ir.OpMul:
		x, y := asInteger(s, u.Src[0]), asInteger(s, u.Src[1])
		if x == nil || y == nil {
			return nil
		}
		out = a.Binary(u.Op, x, y)
	case ir.OpNeg:
		x := asInteger(s, u.Src[0])
		if x == nil {
			return nil
		}
		out = a.Unary(ir.OpNeg, x)
	default:
		return nil
	}
	if !isSmall(s, out) {
		return nil
	}
	return out
}

func isSmall(s *expr.Exprs, u *ir.UOp) bool {
	return s.Bounds.Of(u).Within(-largestInteger, largestInteger)
}
