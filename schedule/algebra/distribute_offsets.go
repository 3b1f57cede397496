package algebra

import (
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/schedule/expr"
	"tgc/schedule/state"
)

// DistributeOffsets distributes an integer constant: in an innermost REDUCE, a factor
// float(q)+c with integer q, where both are small enough to be exact, gives
// REDUCE(ADD, y*q) + c*REDUCE(ADD, y). After split-groups the second sum is per group and
// shared by all rows. hoist-offsets then takes c out. Only dots of integers
// gain: for floats a conversion of bytes takes c along, on a GPU as on a CPU, and the
// second sum would cost as many additions as a row has points.
func DistributeOffsets(s *state.State, v *state.Value) {
	body := s.RewriteReduces(v.Body, func(u *ir.UOp) *ir.UOp {
		if !splitsSum(s, v, u) || s.Height(u.Src[0]) > 0 || !hasIntegerFactor(s, u) {
			return u
		}
		list := analyse.Factors(u.Src[0])
		for i, f := range list {
			if len(list) > 1 && isOffsetInteger(s.Exprs, f) {
				return splitSum(s.Exprs, u, list, i)
			}
		}
		return u
	})
	if body != v.Body {
		v.Body = body
		s.Record(v, true, "integer plus constant")
	}
}

// maxExactInteger bounds integers whose offset is exact in f32.
const maxExactInteger = 1 << 20

// isOffsetInteger reports float(q)+c or float(q)-c of packed fields.
func isOffsetInteger(s *expr.Exprs, f *ir.UOp) bool {
	if f.Op != ir.OpAdd && f.Op != ir.OpSub {
		return false
	}
	q, c := f.Src[0], f.Src[1]
	value, ok := c.Float()
	if !ok || value != float64(int64(value)) || value > maxExactInteger || value < -maxExactInteger {
		return false
	}
	if q.Op != ir.OpCast || !(q.Src[0].DType.IsInt() || q.Src[0].DType == ir.Bool) || !isFieldsOnly(s, q) {
		return false
	}
	return s.Bounds.Of(q.Src[0]).Within(-maxExactInteger, maxExactInteger)
}
