package shape

import (
	"tgc/kernel/plan"
)

import "tgc/ir"

// Sums of products of bytes, as floats. An f16 holds every byte, and an f32 every
// integer up to 2^24, so that the instruction on halves sums bytes as exactly as the
// one on bytes does. What stands around it gets cheaper: no integer is converted for
// each scale, a scale and the factor of a row are one number, and multiply-adds of
// f32 run at twice the rate of those of integers. Of panels, which convert a byte
// once for a block, 14 instructions for 16 x 8 x 32 products replace 22.

// exactInteger is the magnitude up to which an f32 holds every integer.
const exactInteger = 1 << 24

// floatSums rewrites floats of sums of MMA over bytes in a kernel with panels.
func (ap *applier) floatSums(sink *ir.UOp, tile *MatrixTile) *ir.UOp {
	if tile == nil || !tile.Rows.Staged || !tile.Columns.Staged {
		return sink
	}
	done := make(map[*ir.UOp]*ir.UOp)
	for _, u := range ir.Toposort(sink) {
		src := make([]*ir.UOp, len(u.Src))
		for i, x := range u.Src {
			src[i] = done[x]
		}
		done[u] = ap.arena.With(u, src)
		if u.Op == ir.OpCast && u.DType == ir.F32 && u.Src[0].DType == ir.I32 && ap.sumsMatrix(u.Src[0]) {
			if f, ok := ap.floatSum(u.Src[0]); ok {
				done[u] = f.value
			}
		}
	}
	return done[sink]
}

// floatInteger is an integer as an f32 that is exact, and the most that it and all
// that it is made of can be.
type floatInteger struct {
	value *ir.UOp
	most  int64
}

// floatSum is an i32 computed in f32; ok is false where a part of it could be no
// exact f32.
func (ap *applier) floatSum(u *ir.UOp) (f floatInteger, ok bool) {
	a := ap.arena
	if !ap.sumsMatrix(u) {
		b := ap.bounds.Of(u)
		f = floatInteger{a.Cast(u, ir.F32), max(b.Hi, -b.Lo)}
		if u.Op == ir.OpCast {
			f.value = a.Cast(u.Src[0], ir.F32)
		}
		return f, b.Within(-exactInteger, exactInteger)
	}
	switch u.Op {
	case ir.OpReduce:
		r := u.ReduceRange()
		n, constant := r.Src[0].Int()
		product := u.Src[0]
		if ap.roles[r] == plan.Matrix {
			f, ok = ap.floatProduct(product)
		} else {
			f, ok = ap.floatSum(product)
		}
		if !ok || !constant || !isPlainAdd(u) || f.most > exactInteger/n {
			return f, false
		}
		return floatInteger{a.Reduce(ir.OpAdd, f.value, r), f.most * n}, true
	case ir.OpMul:
		return ap.floatProduct(u)
	}
	return f, false
}

// floatProduct is a product of exact factors.
func (ap *applier) floatProduct(u *ir.UOp) (out floatInteger, ok bool) {
	a := ap.arena
	for _, factor := range FlattenProduct(u) {
		var f floatInteger
		if ap.sumsMatrix(factor) {
			f, ok = ap.floatSum(factor)
		} else {
			f, ok = ap.floatFactor(factor)
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
func (ap *applier) floatFactor(u *ir.UOp) (floatInteger, bool) {
	b := ap.bounds.Of(u)
	f := floatInteger{most: max(b.Hi, -b.Lo)}
	if x := ByteFactor(ap.arena, ap.bounds, u, true); x != nil {
		f.value = ap.arena.Cast(x, ir.F32)
	}
	return f, f.value != nil
}

// sumsMatrix reports a value with a sum of MMA in it.
func (ap *applier) sumsMatrix(u *ir.UOp) bool {
	for _, x := range ir.Toposort(u) {
		if x.Op == ir.OpReduce && ap.roles[x.ReduceRange()] == plan.Matrix {
			return true
		}
	}
	return false
}
