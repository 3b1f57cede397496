package ptx

import (
	"fmt"
	"math/bits"

	"tgc/ir"
)

// Integer arithmetic. Narrow integers are computed in 32 bits on extended
// lanes; where the result may leave their range it is extended again.

func (r *renderer) computeInt(op ir.Op, n number, x []operand) (operand, error) {
	var o operand
	bitType := fmt.Sprintf("b%d", n.bits())
	switch op {
	case ir.OpAdd, ir.OpSub:
		if op == ir.OpAdd && x[0].literal() {
			x[0], x[1] = x[1], x[0]
		}
		name := map[ir.Op]string{ir.OpAdd: "add.", ir.OpSub: "sub."}[op]
		o = r.emit(name+n.suffix(), n, x...)
	case ir.OpMul:
		return r.wrap(n, r.product(n, x[0], x[1])), nil
	case ir.OpNeg:
		o = r.emit("neg."+signedSuffix(n), n, x[0])
	case ir.OpNot:
		o = r.emit("not."+bitType, n, x[0])
	case ir.OpAnd:
		return r.emit("and."+bitType, n, x...), nil
	case ir.OpOr:
		return r.emit("or."+bitType, n, x...), nil
	case ir.OpXor:
		return r.emit("xor."+bitType, n, x...), nil
	case ir.OpMin:
		return r.emit("min."+n.suffix(), n, x...), nil
	case ir.OpMax:
		return r.emit("max."+n.suffix(), n, x...), nil
	case ir.OpCmpLt:
		return r.compare("lt", n, x[0], x[1]), nil
	case ir.OpCmpEq:
		return r.compare("eq", n, x[0], x[1]), nil
	case ir.OpShl, ir.OpShr:
		o = r.shift(op, n, x[0], x[1])
	case ir.OpFloorDiv, ir.OpFloorMod:
		o = r.division(op == ir.OpFloorDiv, n, x[0], x[1])
	case ir.OpMulHi:
		return r.emit("mul.hi."+n.suffix(), n, x...), nil
	case ir.OpPopc, ir.OpClz:
		return r.countBits(op, n, x[0]), nil
	default:
		return operand{}, fmt.Errorf("no %s of %s", op, n.dtype)
	}
	return r.wrap(n, o), nil
}

func signedSuffix(n number) string { return fmt.Sprintf("s%d", n.bits()) }

// wrap extends the low bits of a narrow result.
func (r *renderer) wrap(n number, o operand) operand {
	if n.dtype.Size() >= 4 {
		return o
	}
	return r.narrowTo(n.dtype, o)
}

// narrowTo is the low bits of a 32-bit register as a lane of a narrow dtype.
func (r *renderer) narrowTo(d ir.DType, o operand) operand {
	if o.literal() {
		return operand{bits: uint64(extend(d, int64(o.bits)))}
	}
	v := r.reg(word)
	if d.IsSigned() && !d.IsFloat() {
		r.ins("cvt.s32.s%d %s, %s", d.Bits(), v.reg, o.reg)
	} else {
		r.ins("and.b32 %s, %s, %d", v.reg, o.reg, 1<<d.Bits()-1)
	}
	return v
}

// product is a shift for powers of two.
func (r *renderer) product(n number, x, y operand) operand {
	if x.literal() {
		x, y = y, x
	}
	if v := int64(y.bits); y.literal() && v > 0 && v&(v-1) == 0 {
		if v == 1 {
			return x
		}
		return r.shiftBy("shl.b", n, x, bits.TrailingZeros64(uint64(v)))
	}
	return r.emit("mul.lo."+n.suffix(), n, x, y)
}

func (r *renderer) shiftBy(name string, n number, x operand, count int) operand {
	d := r.reg(n.class)
	r.ins("%s%d %s, %s, %d", name, n.bits(), d.reg, x.as(ir.I64, n.class), count)
	return d
}

// shift: PTX limits counts to the register's width, which gives 0 or the sign
// as the op demands; narrow lanes are extended, so the same holds for them.
func (r *renderer) shift(op ir.Op, n number, x, count operand) operand {
	if n.class == wide { // the count is 32 bits: larger ones must not wrap
		if count.literal() {
			count = operand{bits: min(count.bits, 64)}
		} else {
			limited := r.reg(wide)
			r.ins("min.u64 %s, %s, 64", limited.reg, count.reg)
			count = r.low(limited)
		}
	}
	if w, ok := r.upper[x.reg]; ok && op == ir.OpShl && n.class == word && count.literal() && count.bits == 16 {
		return r.emit("and.b32", number{dtype: ir.U32, class: word}, operand{reg: w}, operand{bits: 0xffff0000})
	}
	name := "shl.b"
	if op == ir.OpShr {
		name = "shr.u"
		if n.signed() {
			name = "shr.s"
		}
	}
	d := r.reg(n.class)
	r.ins("%s%d %s, %s, %s", name, n.bits(), d.reg, x.as(ir.I64, n.class), count.i32())
	return d
}

func (r *renderer) countBits(op ir.Op, n number, x operand) operand {
	width := n.dtype.Bits()
	if n.dtype.Size() < 4 && n.signed() {
		d := r.reg(word)
		r.ins("and.b32 %s, %s, %d", d.reg, x.i32(), 1<<width-1)
		x = d
	}
	name := "popc.b"
	if op == ir.OpClz {
		name = "clz.b"
	}
	d := r.reg(word) // also of 64 bits
	r.ins("%s%d %s, %s", name, n.bits(), d.reg, x.as(ir.I64, n.class))
	if op == ir.OpClz && width < 32 {
		e := r.reg(word)
		r.ins("sub.s32 %s, %s, %d", e.reg, d.reg, 32-width)
		return e
	}
	if n.class == wide {
		return r.widen(d, false)
	}
	return d
}

// division is FLOORDIV or FLOORMOD. By a power of two it is a shift or a mask,
// which round down already; without negative operands the machine's division;
// else its truncated quotient is corrected.
func (r *renderer) division(isDiv bool, n number, x, y operand) operand {
	if d := int64(y.bits); y.literal() && d > 0 && d&(d-1) == 0 {
		switch {
		case !isDiv:
			return r.emit(fmt.Sprintf("and.b%d", n.bits()), n, x, operand{bits: uint64(d - 1)})
		case d == 1:
			return x
		case n.signed() && !n.positive:
			return r.shiftBy("shr.s", n, x, bits.TrailingZeros64(uint64(d)))
		}
		return r.shiftBy("shr.u", n, x, bits.TrailingZeros64(uint64(d)))
	}
	var isZero operand
	safe := y
	zero, one := operand{}, operand{bits: 1}
	if y.literal() && y.bits == 0 {
		return zero
	}
	if !y.literal() {
		isZero = r.compare("eq", n, y, zero)
		safe = r.choose(isZero, one, y, n)
	}
	var v operand
	switch {
	case !n.signed() || n.positive:
		v = r.unsignedDivision(isDiv, n, x, safe)
	default:
		v = r.signedDivision(isDiv, n, x, safe)
	}
	if y.literal() {
		return v
	}
	return r.choose(isZero, zero, v, n)
}

func (r *renderer) unsignedDivision(isDiv bool, n number, x, y operand) operand {
	if isDiv {
		return r.emit(fmt.Sprintf("div.u%d", n.bits()), n, x, y)
	}
	return r.emit(fmt.Sprintf("rem.u%d", n.bits()), n, x, y)
}

// signedDivision divides by y, not 0. The least integer by -1 has no quotient,
// so -1 is taken out: x / -1 = -x, x mod -1 = 0.
func (r *renderer) signedDivision(isDiv bool, n number, x, y operand) operand {
	s := signedSuffix(n)
	zero := operand{}
	minusOne := operand{bits: ^uint64(0)}
	safe := y
	var isMinusOne operand
	special := !y.literal() || int64(y.bits) == -1
	if special {
		isMinusOne = r.compare("eq", n, r.inReg(y, n.class), minusOne)
		safe = r.choose(isMinusOne, operand{bits: 1}, y, n)
	}
	q := r.emit("div."+s, n, x, safe)
	rem := r.emit("sub."+s, n, x, r.emit("mul.lo."+s, n, q, safe))
	// The quotient was rounded up if there is a remainder of the other sign.
	mixed := r.compare("lt", n, r.emit(fmt.Sprintf("xor.b%d", n.bits()), n, rem, safe), zero)
	nonzero := r.compare("ne", n, rem, zero)
	r.ins("and.pred %s, %s, %s", mixed.reg, mixed.reg, nonzero.reg)
	var v, other operand
	if isDiv {
		v = r.choose(mixed, r.emit("add."+s, n, q, minusOne), q, n)
		other = zero
		if special {
			other = r.emit("neg."+s, n, x)
		}
	} else {
		v = r.choose(mixed, r.emit("add."+s, n, rem, safe), rem, n)
		other = zero
	}
	if !special {
		return v
	}
	return r.choose(isMinusOne, other, v, n)
}
