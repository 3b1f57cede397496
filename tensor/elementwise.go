package tensor

import "tgc/ir"

// Operands are broadcast (numpy's rule) and promoted to one dtype (PyTorch's):
// see promoteTypes.

// Add is t+u; integers wrap; on Bool: or.
func (t *Tensor) Add(u *Tensor) *Tensor { return t.binary(ir.OpAdd, u) }

// Sub is t-u; integers wrap.
func (t *Tensor) Sub(u *Tensor) *Tensor { return t.binary(ir.OpSub, u) }

// Mul is t*u; integers wrap; on Bool: and.
func (t *Tensor) Mul(u *Tensor) *Tensor { return t.binary(ir.OpMul, u) }

// Div is the true quotient t/u; integers give f32.
func (t *Tensor) Div(u *Tensor) *Tensor {
	x, y := t.together("fdiv", u)
	return x.number().binary(ir.OpFDiv, y.number())
}

// Maximum is the larger of t and u; NaN if either is.
func (t *Tensor) Maximum(u *Tensor) *Tensor {
	if t.DType() == ir.Bool && u.DType() == ir.Bool {
		return t.Or(u)
	}
	return t.binary(ir.OpMax, u)
}

// Minimum is the smaller of t and u; NaN if either is.
func (t *Tensor) Minimum(u *Tensor) *Tensor {
	if t.DType() == ir.Bool && u.DType() == ir.Bool {
		return t.And(u)
	}
	return t.binary(ir.OpMin, u)
}

// Lt is t < u as Bool.
func (t *Tensor) Lt(u *Tensor) *Tensor { return t.binary(ir.OpCmpLt, u) }

// Gt is t > u as Bool.
func (t *Tensor) Gt(u *Tensor) *Tensor {
	x, y := t.together("gt", u)
	return y.Lt(x)
}

// Le is t <= u as Bool; false with NaN.
func (t *Tensor) Le(u *Tensor) *Tensor {
	x, y := t.together("le", u)
	if !x.DType().IsFloat() {
		return y.Lt(x).Not()
	}
	return x.Lt(y).Or(x.Eq(y))
}

// Ge is t >= u as Bool; false with NaN.
func (t *Tensor) Ge(u *Tensor) *Tensor {
	x, y := t.together("ge", u)
	return y.Le(x)
}

// Eq is t == u as Bool; false with NaN.
func (t *Tensor) Eq(u *Tensor) *Tensor { return t.binary(ir.OpCmpEq, u) }

// Ne is t != u as Bool; true with NaN.
func (t *Tensor) Ne(u *Tensor) *Tensor { return t.Eq(u).Not() }

// And is the bitwise and of integers, on Bool the logical one.
func (t *Tensor) And(u *Tensor) *Tensor { return t.bits(ir.OpAnd, u) }

// Or is the bitwise or of integers, on Bool the logical one.
func (t *Tensor) Or(u *Tensor) *Tensor { return t.bits(ir.OpOr, u) }

// Xor is the bitwise exclusive or of integers, on Bool the logical one.
func (t *Tensor) Xor(u *Tensor) *Tensor { return t.bits(ir.OpXor, u) }

// Shl is t << u of integers; u at or past the width gives 0.
func (t *Tensor) Shl(u *Tensor) *Tensor { return t.bits(ir.OpShl, u) }

// Shr is t >> u of integers, arithmetic on signed dtypes.
func (t *Tensor) Shr(u *Tensor) *Tensor { return t.bits(ir.OpShr, u) }

// Rng is the counter-based random u32 of (seed t, counter u).
func (t *Tensor) Rng(u *Tensor) *Tensor { return t.binary(ir.OpRng, u) }

// LogicalAnd is true where both are not zero (NaN is not).
func (t *Tensor) LogicalAnd(u *Tensor) *Tensor { return t.Truth().And(u.Truth()) }

// LogicalOr is true where one is not zero.
func (t *Tensor) LogicalOr(u *Tensor) *Tensor { return t.Truth().Or(u.Truth()) }

// LogicalXor is true where exactly one is not zero.
func (t *Tensor) LogicalXor(u *Tensor) *Tensor { return t.Truth().Xor(u.Truth()) }

// LogicalNot is t == 0 as Bool.
func (t *Tensor) LogicalNot() *Tensor { return t.Truth().Not() }

// Truth is t != 0 as Bool.
func (t *Tensor) Truth() *Tensor { return t.Cast(ir.Bool) }

// AddScalar is t+v with v of t's dtype.
func (t *Tensor) AddScalar(v float64) *Tensor { return t.Add(t.scalar(v)) }

// MulScalar is t*v with v of t's dtype.
func (t *Tensor) MulScalar(v float64) *Tensor { return t.Mul(t.scalar(v)) }

// scalar is a constant of t's dtype.
func (t *Tensor) scalar(v float64) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	return t.graph.Scalar(t.DType(), v)
}

// Not is the bitwise complement of integers; on Bool logical not.
func (t *Tensor) Not() *Tensor {
	if t.ok() && t.DType().IsFloat() {
		return t.graph.fail("not", "%s; want integers or bool", t)
	}
	return t.unary(ir.OpNot)
}

// Neg is -t; integers wrap.
func (t *Tensor) Neg() *Tensor {
	if t.ok() && t.DType() == ir.Bool {
		return t.graph.fail("neg", "%s has no sign; use Not", t)
	}
	return t.unary(ir.OpNeg)
}

// Abs is |t|; the least integer wraps to itself.
func (t *Tensor) Abs() *Tensor {
	if t.ok() && !t.DType().IsSigned() {
		return t
	}
	return t.unary(ir.OpAbs)
}

// Sign is -1, 0 or 1 of t's dtype, 0 for NaN.
func (t *Tensor) Sign() *Tensor {
	if !t.ok() || t.DType() == ir.Bool {
		return t
	}
	zero, one := t.scalar(0), t.scalar(1)
	if !t.DType().IsSigned() {
		return zero.Lt(t).Where(one, zero)
	}
	return zero.Lt(t).Where(one, t.Lt(zero).Where(t.scalar(-1), zero))
}

// Square is t*t.
func (t *Tensor) Square() *Tensor { return t.Mul(t) }

// Clamp is t no less than lo and no more than hi, which wins if it is below lo;
// NaN stays.
func (t *Tensor) Clamp(lo, hi float64) *Tensor { return t.ClampMin(lo).ClampMax(hi) }

// ClampMin is t no less than lo; NaN stays. Its derivative at lo is 1, where
// Maximum would share the adjoint of equal operands.
func (t *Tensor) ClampMin(lo float64) *Tensor { return t.Lt(t.scalar(lo)).Where(t.scalar(lo), t) }

// ClampMax is t no more than hi; NaN stays; the derivative at hi is 1.
func (t *Tensor) ClampMax(hi float64) *Tensor { return t.scalar(hi).Lt(t).Where(t.scalar(hi), t) }

// Lerp is t + (u-t)*w: t where w is 0, u where it is 1.
func (t *Tensor) Lerp(u, w *Tensor) *Tensor { return t.Add(u.Sub(t).Mul(w)) }

// Where is x where t (Bool) holds, else y; all broadcast, x and y promoted to
// one dtype.
func (t *Tensor) Where(x, y *Tensor) *Tensor {
	if !t.ok() || !x.ok() || !y.ok() {
		return t.bad()
	}
	dtype, ok := promote(x, y)
	if t.DType() != ir.Bool || !ok {
		return t.graph.fail("where", "condition %s, arms %s and %s; want bool and one dtype", t, x, y)
	}
	x, y = x.Cast(dtype), y.Cast(dtype)
	shape, ok := t.graph.broadcast(t.shape(), x.shape(), y.shape())
	if !ok {
		return t.graph.fail("where", "shapes of %s, %s and %s do not broadcast", t, x, y)
	}
	return t.expandTo(shape).make(ir.OpWhere, x.DType(), nil, x.expandTo(shape).node, y.expandTo(shape).node)
}

// unary is an op of one operand; those of floats take integers as f32.
func (t *Tensor) unary(op ir.Op) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	if op.Info().Type == ir.TypeFloat {
		t = t.number()
	}
	return t.make(op, t.DType(), nil)
}

// bits is a bitwise op: of integers, or of Bool where it is no shift.
func (t *Tensor) bits(op ir.Op, u *Tensor) *Tensor {
	if !t.ok() || !u.ok() {
		return t.bad()
	}
	boolean := t.DType() == ir.Bool && u.DType() == ir.Bool
	if t.DType().IsFloat() || u.DType().IsFloat() || boolean && (op == ir.OpShl || op == ir.OpShr) {
		return t.graph.fail(op.String(), "%s and %s; want integers", t, u)
	}
	return t.binary(op, u)
}

func (t *Tensor) binary(op ir.Op, u *Tensor) *Tensor {
	t, u = t.together(op.String(), u)
	if !t.ok() || !u.ok() {
		return t.bad()
	}
	if op == ir.OpSub && t.DType() == ir.Bool {
		return t.graph.fail("sub", "%s minus %s; use Xor or LogicalAnd", t, u)
	}
	shape, _ := t.graph.broadcast(t.shape(), u.shape())
	dtype := t.DType()
	if op.Info().Type == ir.TypeCompare {
		dtype = ir.Bool
	}
	return t.expandTo(shape).make(op, dtype, nil, u.expandTo(shape).node)
}

// broadcast is the common shape under numpy's rule: aligned at the last axis,
// extents equal or 1.
func (g *Graph) broadcast(shapes ...[]*ir.UOp) (shape []*ir.UOp, ok bool) {
	rank := 0
	for _, s := range shapes {
		rank = max(rank, len(s))
	}
	shape = make([]*ir.UOp, rank)
	for k := range shape {
		shape[k] = g.arena.Index(1)
		for _, s := range shapes {
			i := k - rank + len(s)
			if i < 0 || s[i].IsInt(1) || s[i] == shape[k] {
				continue
			}
			if !shape[k].IsInt(1) {
				return nil, false
			}
			shape[k] = s[i]
		}
	}
	return shape, true
}

// expandTo broadcasts a tensor whose shape is known to fit. A rank-0 constant
// stays as it is: it fits everywhere.
func (t *Tensor) expandTo(shape []*ir.UOp) *Tensor {
	own := t.shape()
	if len(own) == 0 && (t.node.Op == ir.OpConst || len(shape) == 0) {
		return t
	}
	aligned := make([]*ir.UOp, len(shape))
	for k := range aligned {
		aligned[k] = t.graph.arena.Index(1)
		if i := k - len(shape) + len(own); i >= 0 {
			aligned[k] = own[i]
		}
	}
	out := t
	if len(own) != len(shape) {
		out = out.make(ir.OpReshape, out.DType(), nil, aligned...)
	}
	for k := range shape {
		if aligned[k] != shape[k] {
			return out.make(ir.OpExpand, out.DType(), nil, shape...)
		}
	}
	return out
}
