package shape

import (
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/kernel/plan"
)

// Sums of products of bytes, as floats. An f16 holds every byte, and an f32 every
// integer up to 2^24, so that the instruction on halves sums bytes as exactly as the
// one on bytes does. What stands around it gets cheaper: no integer is converted for
// each scale, a scale and the factor of a row are one number, and multiply-adds of
// f32 run at twice the rate of those of integers. Of panels, which convert a byte
// once for a block, 14 instructions for 16 x 8 x 32 products replace 22.

// exactInteger is the magnitude up to which an f32 holds every integer.
const exactInteger = 1 << 24

// sumBytesAsFloats rewrites floats of sums of MMA over bytes in a kernel with panels.
func sumBytesAsFloats(st *State, sink *ir.UOp) *ir.UOp {
	if tile := st.Tile; tile == nil || !tile.Rows.Staged || !tile.Columns.Staged {
		return sink
	}
	return st.Arena.Rebuild(sink, func(u *ir.UOp, _ []*ir.UOp) *ir.UOp {
		if u.Op == ir.OpCast && u.DType == ir.F32 && u.Src[0].DType == ir.I32 && sumsMatrix(st, u.Src[0]) {
			if f, ok := floatSum(st, u.Src[0]); ok {
				return f.value
			}
		}
		return nil
	})
}

// floatInteger is an integer as an f32 that is exact, and the most that it and all
// that it is made of can be.
type floatInteger struct {
	value *ir.UOp
	most  int64
}

// floatSum is an i32 with a sum of MMA in it, computed in f32; ok is false where a part
// of it could be no exact f32.
func floatSum(st *State, u *ir.UOp) (f floatInteger, ok bool) {
	switch u.Op {
	case ir.OpReduce:
		r := u.ReduceRange()
		n, constant := r.Src[0].Int()
		product := u.Src[0]
		if st.roles[r] == plan.Matrix {
			f, ok = floatProduct(st, product)
		} else {
			f, ok = floatSum(st, product)
		}
		if !ok || !constant || !analyse.IsSum(u) || f.most > exactInteger/n {
			return f, false
		}
		return floatInteger{st.Arena.Reduce(ir.OpAdd, f.value, r), f.most * n}, true
	case ir.OpMul:
		return floatProduct(st, u)
	}
	return f, false
}

// floatProduct is a product of exact factors.
func floatProduct(st *State, u *ir.UOp) (out floatInteger, ok bool) {
	a := st.Arena
	for _, factor := range analyse.Factors(u) {
		var f floatInteger
		if sumsMatrix(st, factor) {
			f, ok = floatSum(st, factor)
		} else {
			f, ok = floatFactor(st, factor)
		}
		if !ok {
			return out, false
		}
		if out.value == nil {
			out = f
			continue
		}
		if f.most > 0 && out.most > exactInteger/f.most {
			return out, false
		}
		out = floatInteger{a.Mul(out.value, f.value), out.most * f.most}
	}
	return out, true
}

// floatFactor is a byte, or one with an offset, as a float.
func floatFactor(st *State, u *ir.UOp) (floatInteger, bool) {
	b := st.bounds.Of(u)
	f := floatInteger{most: max(b.Hi, -b.Lo)}
	if x := ByteFactor(st.Arena, st.bounds, u, true); x != nil {
		f.value = st.Arena.Cast(x, ir.F32)
	}
	return f, f.value != nil
}

// sumsMatrix reports a value with a sum of MMA in it.
func sumsMatrix(st *State, u *ir.UOp) bool {
	return analyse.Any(u, func(x *ir.UOp) bool { return x.Op == ir.OpReduce && st.roles[x.ReduceRange()] == plan.Matrix })
}
