package tensor

import "tgc/ir"

// category orders kinds of dtypes as promotion does: Bool, integers, floats.
func category(d ir.DType) int {
	switch {
	case d.IsFloat():
		return 2
	case d.IsInt():
		return 1
	}
	return 0
}

// promoteTypes is the dtype that holds values of both, as PyTorch has it: the
// higher category wins (an integer does not widen a float); of two integers the
// wider, where an unsigned one with a signed one counts as twice as wide; of
// two floats the wider, f32 for f16 with bf16. U64 with a signed dtype has no
// such dtype.
func promoteTypes(a, b ir.DType) (ir.DType, bool) {
	switch {
	case a == b:
		return a, true
	case !promotable(a) || !promotable(b):
		return ir.Void, false
	case category(a) != category(b):
		if category(a) > category(b) {
			return a, true
		}
		return b, true
	case a.IsFloat():
		return promoteFloats(a, b), true
	case a.IsSigned() == b.IsSigned():
		return wider(a, b), true
	}
	signed, unsigned := a, b
	if b.IsSigned() {
		signed, unsigned = b, a
	}
	if unsigned.Size() < signed.Size() {
		return signed, true
	}
	next, ok := map[ir.DType]ir.DType{ir.U8: ir.I16, ir.U16: ir.I32, ir.U32: ir.I64}[unsigned]
	return next, ok
}

func promotable(d ir.DType) bool { return d == ir.Bool || d.IsInt() || d.IsFloat() }

func promoteFloats(a, b ir.DType) ir.DType {
	if a.Size() == b.Size() { // f16 and bf16, f8e4m3 and f8e5m2
		return ir.F32
	}
	return wider(a, b)
}

func wider(a, b ir.DType) ir.DType {
	if a.Size() > b.Size() {
		return a
	}
	return b
}

// promote is promoteTypes of two tensors. A tensor of rank 0 with one that has
// axes is a number: it changes the other's category, never only its width.
func promote(t, u *Tensor) (ir.DType, bool) {
	a, b := t.DType(), u.DType()
	if promotable(a) && promotable(b) && (t.Rank() == 0) != (u.Rank() == 0) {
		number, array := a, b
		if u.Rank() == 0 {
			number, array = b, a
		}
		if category(array) >= category(number) {
			return array, true
		}
		return number, true
	}
	return promoteTypes(a, b)
}

// number gives floats as they are, integers and Bool as f32.
func (t *Tensor) number() *Tensor {
	if t.ok() && !t.DType().IsFloat() {
		return t.Cast(ir.F32)
	}
	return t
}

// widely computes f in f32 at least and rounds once to t's dtype: what a function
// of several roundings does for f16 and bf16. Integers and Bool become f32.
func (t *Tensor) widely(f func(x *Tensor) *Tensor) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	if t.DType().IsFloat() && t.DType().Size() < 4 {
		return f(t.Cast(ir.F32)).Cast(t.DType())
	}
	return f(t.number())
}

// widely2 is widely for two operands, broadcast and promoted.
func (t *Tensor) widely2(op string, u *Tensor, f func(x, y *Tensor) *Tensor) *Tensor {
	t, u = t.together(op, u)
	if !t.ok() || !u.ok() {
		return t.bad()
	}
	if t.DType().IsFloat() && t.DType().Size() < 4 {
		return f(t.Cast(ir.F32), u.Cast(ir.F32)).Cast(t.DType())
	}
	return f(t.number(), u.number())
}

// together promotes two operands to one dtype and checks that their shapes
// broadcast; bad tensors otherwise.
func (t *Tensor) together(op string, u *Tensor) (x, y *Tensor) {
	if !t.ok() || !u.ok() {
		return t.bad(), t.bad()
	}
	if t.graph != u.graph {
		bad := t.graph.fail(op, "%s and %s are of different graphs", t, u)
		return bad, bad
	}
	dtype, ok := promote(t, u)
	if !ok {
		bad := t.graph.fail(op, "%s and %s have no common dtype", t, u)
		return bad, bad
	}
	if _, ok := t.graph.broadcast(t.shape(), u.shape()); !ok {
		bad := t.graph.fail(op, "shapes %s and %s do not broadcast", shapeText(t.shape()), shapeText(u.shape()))
		return bad, bad
	}
	return t.Cast(dtype), u.Cast(dtype)
}
