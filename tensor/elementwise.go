package tensor

import (
	"math"

	"tgc/ir"
)

// Add is t+u, broadcast.
func (t *Tensor) Add(u *Tensor) *Tensor { return t.binary(ir.OpAdd, u) }

// Sub is t-u, broadcast.
func (t *Tensor) Sub(u *Tensor) *Tensor { return t.binary(ir.OpSub, u) }

// Mul is t*u, broadcast.
func (t *Tensor) Mul(u *Tensor) *Tensor { return t.binary(ir.OpMul, u) }

// Div is t/u of floats, broadcast.
func (t *Tensor) Div(u *Tensor) *Tensor { return t.binary(ir.OpFDiv, u) }

// FloorDiv is floor(t/u) of integers, broadcast.
func (t *Tensor) FloorDiv(u *Tensor) *Tensor { return t.binary(ir.OpFloorDiv, u) }

// FloorMod is t - u*floor(t/u) of integers, broadcast.
func (t *Tensor) FloorMod(u *Tensor) *Tensor { return t.binary(ir.OpFloorMod, u) }

// Maximum is the larger of t and u, broadcast; NaN if either is.
func (t *Tensor) Maximum(u *Tensor) *Tensor { return t.binary(ir.OpMax, u) }

// Minimum is the smaller of t and u, broadcast; NaN if either is.
func (t *Tensor) Minimum(u *Tensor) *Tensor { return t.binary(ir.OpMin, u) }

// Lt is t < u as Bool, broadcast.
func (t *Tensor) Lt(u *Tensor) *Tensor { return t.binary(ir.OpCmpLt, u) }

// Le is t <= u as Bool, broadcast; false with NaN.
func (t *Tensor) Le(u *Tensor) *Tensor {
	if !t.DType().IsFloat() {
		return u.Lt(t).Not()
	}
	return t.Lt(u).Or(t.Eq(u))
}

// Eq is t == u as Bool, broadcast.
func (t *Tensor) Eq(u *Tensor) *Tensor { return t.binary(ir.OpCmpEq, u) }

// And is the bitwise (on Bool logical) and, broadcast.
func (t *Tensor) And(u *Tensor) *Tensor { return t.binary(ir.OpAnd, u) }

// Or is the bitwise (on Bool logical) or, broadcast.
func (t *Tensor) Or(u *Tensor) *Tensor { return t.binary(ir.OpOr, u) }

// Xor is the bitwise exclusive or, broadcast.
func (t *Tensor) Xor(u *Tensor) *Tensor { return t.binary(ir.OpXor, u) }

// Shl is t << u, broadcast.
func (t *Tensor) Shl(u *Tensor) *Tensor { return t.binary(ir.OpShl, u) }

// Shr is t >> u, arithmetic on signed dtypes, broadcast.
func (t *Tensor) Shr(u *Tensor) *Tensor { return t.binary(ir.OpShr, u) }

// Rng is the counter-based random u32 of (seed t, counter u), broadcast.
func (t *Tensor) Rng(u *Tensor) *Tensor { return t.binary(ir.OpRng, u) }

// AddScalar is t+v.
func (t *Tensor) AddScalar(v float64) *Tensor { return t.Add(t.scalar(v)) }

// MulScalar is t*v.
func (t *Tensor) MulScalar(v float64) *Tensor { return t.Mul(t.scalar(v)) }

// scalar is a constant of t's dtype.
func (t *Tensor) scalar(v float64) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	return t.graph.Scalar(t.DType(), v)
}

// Not is the bitwise complement; on Bool logical not.
func (t *Tensor) Not() *Tensor { return t.unary(ir.OpNot) }

// Neg is -t.
func (t *Tensor) Neg() *Tensor { return t.unary(ir.OpNeg) }

// Abs is |t|.
func (t *Tensor) Abs() *Tensor { return t.unary(ir.OpAbs) }

// Recip is 1/t.
func (t *Tensor) Recip() *Tensor { return t.unary(ir.OpRecip) }

// Sqrt is the square root.
func (t *Tensor) Sqrt() *Tensor { return t.unary(ir.OpSqrt) }

// Rsqrt is 1/sqrt(t).
func (t *Tensor) Rsqrt() *Tensor { return t.unary(ir.OpRsqrt) }

// Exp2 is 2**t.
func (t *Tensor) Exp2() *Tensor { return t.unary(ir.OpExp2) }

// Log2 is the binary logarithm.
func (t *Tensor) Log2() *Tensor { return t.unary(ir.OpLog2) }

// Sin is the sine of radians.
func (t *Tensor) Sin() *Tensor { return t.unary(ir.OpSin) }

// Cos is the cosine of radians.
func (t *Tensor) Cos() *Tensor { return t.AddScalar(math.Pi / 2).Sin() }

// Floor rounds toward minus infinity.
func (t *Tensor) Floor() *Tensor { return t.unary(ir.OpFloor) }

// Exp is e**t.
func (t *Tensor) Exp() *Tensor { return t.MulScalar(math.Log2E).Exp2() }

// Log is the natural logarithm.
func (t *Tensor) Log() *Tensor { return t.Log2().MulScalar(math.Ln2) }

// Sigmoid is 1/(1+e**-t).
func (t *Tensor) Sigmoid() *Tensor { return t.Neg().Exp().AddScalar(1).Recip() }

// Silu is t*sigmoid(t).
func (t *Tensor) Silu() *Tensor { return t.Mul(t.Sigmoid()) }

// Tanh is 1 - 2/(e**2t + 1).
func (t *Tensor) Tanh() *Tensor {
	return t.MulScalar(2).Exp().AddScalar(1).Recip().MulScalar(-2).AddScalar(1)
}

// Gelu is the tanh approximation of x*Phi(x) (Hendrycks and Gimpel 2016):
// t/2 * (1 + tanh(sqrt(2/pi)*(t + 0.044715 t^3))), written with the logistic
// function, because 1+tanh(y) = 2*sigmoid(2y) does not cancel.
func (t *Tensor) Gelu() *Tensor {
	inner := t.Mul(t).MulScalar(0.044715).AddScalar(1).Mul(t).MulScalar(2 * math.Sqrt(2/math.Pi))
	return t.Mul(inner.Sigmoid())
}

// Cast converts to a dtype.
func (t *Tensor) Cast(dtype ir.DType) *Tensor {
	if !t.ok() || t.DType() == dtype {
		return t
	}
	return t.make(ir.OpCast, dtype, nil)
}

// Bitcast reads the same bits as another dtype of the same size.
func (t *Tensor) Bitcast(dtype ir.DType) *Tensor {
	if !t.ok() || t.DType() == dtype {
		return t
	}
	if t.DType().Size() != dtype.Size() {
		return t.graph.fail("bitcast", "%s has %d bytes, %s has %d", t.DType(), t.DType().Size(), dtype, dtype.Size())
	}
	return t.make(ir.OpBitcast, dtype, nil)
}

// Where is x where t (Bool) holds, else y; all broadcast.
func (t *Tensor) Where(x, y *Tensor) *Tensor {
	if !t.ok() || !x.ok() || !y.ok() {
		return t.bad()
	}
	if t.DType() != ir.Bool || x.DType() != y.DType() {
		return t.graph.fail("where", "condition %s, arms %s and %s; want bool and one dtype", t, x, y)
	}
	shape, ok := t.graph.broadcast(t.shape(), x.shape(), y.shape())
	if !ok {
		return t.graph.fail("where", "shapes of %s, %s and %s do not broadcast", t, x, y)
	}
	return t.expandTo(shape).make(ir.OpWhere, x.DType(), nil, x.expandTo(shape).node, y.expandTo(shape).node)
}

func (t *Tensor) unary(op ir.Op) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	if op.Info().Type == ir.TypeFloat && !t.DType().IsFloat() {
		return t.graph.fail(op.String(), "dtype %s is no float", t.DType())
	}
	return t.make(op, t.DType(), nil)
}

func (t *Tensor) binary(op ir.Op, u *Tensor) *Tensor {
	if !t.ok() || !u.ok() {
		return t.bad()
	}
	if t.DType() != u.DType() {
		return t.graph.fail(op.String(), "dtypes differ: %s and %s", t, u)
	}
	if op.Info().Type == ir.TypeFloat && !t.DType().IsFloat() {
		return t.graph.fail(op.String(), "dtype %s is no float", t.DType())
	}
	shape, ok := t.graph.broadcast(t.shape(), u.shape())
	if !ok {
		return t.graph.fail(op.String(), "shapes %s and %s do not broadcast", shapeText(t.shape()), shapeText(u.shape()))
	}
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
