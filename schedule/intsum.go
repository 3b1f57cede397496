package schedule

import "tgc/ir"

// R3i, integer sum: a float sum whose terms are all integers (converted from
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

func (s *scheduler) integerSums(v *value) {
	sums := int64(0)
	body := s.rewriteReduces(v.body, func(u *ir.UOp) *ir.UOp {
		if u.Arg.(ir.ReduceArg).Op != ir.OpAdd || u.DType != ir.F32 {
			return u
		}
		x := s.asInteger(u.Src[0])
		if x == nil {
			return u
		}
		total := s.closeReduce(s.a.Reduce(ir.OpAdd, x, u.ReduceRange()))
		if !s.isSmall(total) {
			return u
		}
		sums++
		return s.a.Cast(total, u.DType)
	})
	if sums > 0 {
		v.body = s.joinIntegers(body)
		s.record(IntegerSum, v, true, "sum of integers", Number{"sums", sums})
	}
}

// joinIntegers adds converted sums as integers, where they are small enough:
// c*f(sum) + f(sum') -> f(c*sum + sum'), one conversion.
func (s *scheduler) joinIntegers(body *ir.UOp) *ir.UOp {
	with := make(map[*ir.UOp]*ir.UOp)
	var seen ir.Visited
	var visit func(u *ir.UOp)
	visit = func(u *ir.UOp) {
		if s.height(u) == 0 || !seen.Add(u) {
			return
		}
		if (u.Op == ir.OpAdd || u.Op == ir.OpSub) && u.DType == ir.F32 {
			if x := s.asInteger(u); x != nil {
				with[u] = s.a.Cast(x, u.DType)
				return
			}
		}
		for _, x := range u.Src {
			visit(x)
		}
	}
	visit(body)
	if len(with) == 0 {
		return body
	}
	return s.replaceNodes(body, with)
}

// asInteger is a float expression of integers in I32; nil where it is none, or
// may be too large.
func (s *scheduler) asInteger(u *ir.UOp) *ir.UOp {
	a := s.a
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
		if !x.DType.IsInt() && x.DType != ir.Bool || x.DType == ir.Idx || !s.bounds.Of(x).Within(-largestInteger, largestInteger) {
			return nil
		}
		return a.Cast(x, ir.I32)
	case ir.OpAdd, ir.OpSub, ir.OpMul:
		x, y := s.asInteger(u.Src[0]), s.asInteger(u.Src[1])
		if x == nil || y == nil {
			return nil
		}
		out = a.Binary(u.Op, x, y)
	case ir.OpNeg:
		x := s.asInteger(u.Src[0])
		if x == nil {
			return nil
		}
		out = a.Unary(ir.OpNeg, x)
	default:
		return nil
	}
	if !s.isSmall(out) {
		return nil
	}
	return out
}

func (s *scheduler) isSmall(u *ir.UOp) bool {
	return s.bounds.Of(u).Within(-largestInteger, largestInteger)
}
