package lower

import (
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/ir/program"
	"tgc/kernel/shape"
)

// The TC Opt: a sum over four lanes of products of bytes is one dot instruction,
// which adds to an accumulator:
//
//	sum_j i32(x[4i+j]) * i32(y[4i+j]) -> dot4(acc, x[4i..], y[4i..])
//
// Both factors stay bytes: what computes them works on four or more lanes of a
// register. Either may be signed or not. The sum of bytes alone is a dot with
// ones.

// dotTerm reads REDUCE(ADD; i) at coordinates, i a dot sub-axis, as a term of a
// sum; ok is false where it is no sum of products of bytes.
func (l *widener) dotTerm(u *ir.UOp, i int, at coords, pend analyse.RangeSet) (t term, ok bool) {
	x, y, ok := l.byteFactors(u)
	if !ok {
		return term{}, false
	}
	target := l.exprs.laneSubAxes(x, at)
	if y != nil {
		target = unionSubAxes(target, l.exprs.laneSubAxes(y, at))
	}
	if len(target) == 0 || target[len(target)-1] != i {
		return term{}, false // the four bytes would not be neighbours
	}
	widen := func(u *ir.UOp) val {
		return val{v: l.exprs.expand(l.exprs.settle(l.operand(u, at, target)), target), subAxes: target, depth: l.scopes.top()}
	}
	t = term{x: widen(x), dot: i + 1, pend: pend}
	if y == nil {
		other := ir.U8 // instructions have an unsigned side and a signed one
		if x.DType == ir.U8 {
			other = ir.I8
		}
		ones := program.Vector(other, l.exprs.laneCount(target))
		t.y = val{v: l.b.Int(ones, 1), subAxes: target, depth: l.scopes.top()}
		return t, true
	}
	t.y = widen(y)
	return t, true
}

// byteFactors reads the body of a sum as i32(x)*i32(y) with bytes x and y, or as
// i32(x), y nil.
func (l *widener) byteFactors(u *ir.UOp) (x, y *ir.UOp, ok bool) {
	if u.DType != ir.I32 {
		return nil, nil, false
	}
	if u.Op == ir.OpMul {
		x, y = l.byteOf(u.Src[0]), l.byteOf(u.Src[1])
		if x == nil || y == nil {
			return nil, nil, false
		}
		if x.DType == ir.I8 {
			x, y = y, x // the unsigned side first, as instructions have it
		}
		return x, y, true
	}
	x = l.byteOf(u)
	return x, nil, x != nil
}

// isDot reports a sum of products of bytes, or of bytes.
func (l *widener) isDot(u *ir.UOp) bool {
	_, _, ok := l.byteFactors(u.Src[0])
	return ok
}

// byteOf is x of i32(x) for bytes x, or what holds a wider x that is known to be one; nil for anything else.
func (l *widener) byteOf(u *ir.UOp) *ir.UOp {
	if u.Op != ir.OpCast {
		return nil
	}
	return shape.ByteFactor(l.Arena, l.Bounds, u, true)
}

// dotWith adds a term to an accumulator over sub-axes, which the dot's is not one
// of.
func (l *widener) dotWith(acc *program.Value, t term, subAxes []int) *program.Value {
	wide := append(subAxes[:len(subAxes):len(subAxes)], t.dot-1)
	return l.b.Dot4(acc, l.exprs.expand(t.x, wide), l.exprs.expand(t.y, wide))
}

// dotSubAxes are the lanes of a term's sum.
func dotSubAxes(t term) []int { return t.x.subAxes[:len(t.x.subAxes)-1] }
