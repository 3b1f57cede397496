package cuda

import (
	"fmt"
	"math/bits"

	"tgc/ir"
)

// Integer arithmetic. Narrow integers are computed in 32 bits on extended
// lanes; where the result may leave their range it is extended again. What may
// wrap is computed unsigned: a signed overflow has no meaning in C.

// intOps are operators that may wrap.
var intOps = map[ir.Op]string{ir.OpAdd: "+", ir.OpSub: "-", ir.OpMul: "*"}

// bitOps never leave the range of their operands.
var bitOps = map[ir.Op]string{ir.OpAnd: "&", ir.OpOr: "|", ir.OpXor: "^"}

// relations give a bool.
var relations = map[ir.Op]string{ir.OpCmpLt: "<", ir.OpCmpEq: "=="}

func (r *renderer) computeInt(op ir.Op, n number, x []operand) (operand, error) {
	t := n.t
	if operator, ok := relations[op]; ok {
		return r.let(boolean, "%s %s %s", x[0].as(t), operator, x[1].as(t)), nil
	}
	if operator, ok := bitOps[op]; ok {
		return r.let(t, "%s %s %s", x[0].as(t), operator, x[1].as(t)), nil
	}
	if operator, ok := intOps[op]; ok {
		if n.exact {
			return r.wrap(n, r.let(t, "%s %s %s", x[0].as(t), operator, x[1].as(t))), nil
		}
		u := t.unsigned()
		return r.wrap(n, r.let(t, "%s", wrapped(t, x[0].as(u)+" "+operator+" "+x[1].as(u)))), nil
	}
	switch op {
	case ir.OpNeg:
		return r.wrap(n, r.let(t, "%s", wrapped(t, "0u - "+x[0].as(t.unsigned())))), nil
	case ir.OpNot:
		return r.wrap(n, r.let(t, "~%s", x[0].as(t))), nil
	case ir.OpMin:
		return r.let(t, "min(%s, %s)", x[0].as(t), x[1].as(t)), nil
	case ir.OpMax:
		return r.let(t, "max(%s, %s)", x[0].as(t), x[1].as(t)), nil
	case ir.OpShl, ir.OpShr:
		return r.wrap(n, r.shift(op, n, x[0], x[1])), nil
	case ir.OpFloorDiv, ir.OpFloorMod:
		return r.wrap(n, r.division(op == ir.OpFloorDiv, n, x[0], x[1])), nil
	case ir.OpMulHi:
		return r.let(t, "%s(%s, %s)", upperProducts[t], x[0].as(t), x[1].as(t)), nil
	case ir.OpPopc, ir.OpClz:
		return r.countBits(op, n, x[0]), nil
	}
	return operand{}, fmt.Errorf("no %s of %s", op, n.dtype)
}

// upperProducts are functions for the upper half of a product.
var upperProducts = map[ctype]string{
	int32Type: "__mulhi", uint32Type: "__umulhi", int64Type: "__mul64hi", uint64Type: "__umul64hi",
}

// wrap extends the low bits of a narrow result.
func (r *renderer) wrap(n number, o operand) operand {
	if n.dtype.Size() >= 4 {
		return o
	}
	return r.extend(n.dtype, o)
}

// shift: counts past the width give 0 or the sign. Narrow lanes are extended,
// so the same holds for them.
func (r *renderer) shift(op ir.Op, n number, x, count operand) operand {
	t, width := n.t, uint64(n.t.bits())
	signed := op == ir.OpShr && t != t.unsigned()
	past := count.literal() && count.bits >= width
	u := t.unsigned()
	switch {
	case past && !signed:
		return operand{t: t}
	case past:
		return r.let(t, "%s >> %d", x.as(t), width-1)
	case count.literal() && op == ir.OpShl:
		return r.let(t, "%s", wrapped(t, fmt.Sprintf("%s << %d", x.as(u), count.bits)))
	case count.literal():
		return r.let(t, "%s >> %d", x.as(t), count.bits)
	case signed:
		return r.let(t, "%s >> min(%s, %s)", x.as(t), count.as(u), literal(u, width-1))
	case op == ir.OpShl:
		shifted := wrapped(t, fmt.Sprintf("%s << %s", x.as(u), count.as(u)))
		return r.let(t, "%s < %s ? %s : %s", count.as(u), literal(u, width), shifted, literal(t, 0))
	}
	return r.let(t, "%s < %s ? %s >> %s : %s", count.as(u), literal(u, width), x.as(t), count.as(u), literal(t, 0))
}

func (r *renderer) countBits(op ir.Op, n number, x operand) operand {
	width := n.dtype.Bits()
	wide := n.t.bits() == 64
	value := x.as(n.t.unsigned())
	if n.dtype.Size() < 4 && n.t == int32Type {
		value = fmt.Sprintf("(%s & %su)", value, hex(1<<width-1))
	}
	name, as := "__popc", ""
	if op == ir.OpClz {
		name, as = "__clz", "(int)"
		if wide {
			as = "(long long)"
		}
	}
	if wide {
		name += "ll"
	}
	call := fmt.Sprintf("%s(%s%s)", name, as, value)
	if op == ir.OpClz && width < 32 {
		call += fmt.Sprintf(" - %d", 32-width)
	}
	return r.let(n.t, "%s", call)
}

// division is FLOORDIV or FLOORMOD. By a power of two it is a shift or a mask,
// which round down already; without negative operands the machine's division;
// else its truncated quotient is corrected.
func (r *renderer) division(isDiv bool, n number, x, y operand) operand {
	t := n.t
	unsigned := n.positive || t == t.unsigned()
	if d := int64(y.bits); y.literal() && d > 0 && d&(d-1) == 0 {
		switch {
		case !isDiv:
			return r.let(t, "%s & %s", x.as(t), literal(t, uint64(d-1)))
		case d == 1:
			return r.sameType(x, t)
		}
		return r.let(t, "%s >> %d", x.as(t), bits.TrailingZeros64(uint64(d)))
	}
	zero := operand{t: t}
	if y.literal() && y.bits == 0 {
		return zero
	}
	isZero := operand{t: boolean}
	if !y.literal() {
		isZero = r.let(boolean, "%s == 0", y.text())
		y = r.let(t, "%s ? 1 : %s", isZero.text(), y.as(t))
	}
	var v operand
	if unsigned {
		u := t.unsigned()
		operator := map[bool]string{true: "/", false: "%"}[isDiv]
		v = r.let(t, "%s", wrapped(t, x.as(u)+" "+operator+" "+y.as(u)))
	} else {
		v = r.signedDivision(isDiv, t, x, y)
	}
	return r.choose(isZero, zero, v, t)
}

// signedDivision divides by y, not 0. The least integer by -1 has no quotient,
// so -1 is taken out: x / -1 = -x, x mod -1 = 0.
func (r *renderer) signedDivision(isDiv bool, t ctype, x, y operand) operand {
	isMinusOne := operand{t: boolean}
	if !y.literal() || int64(y.bits) == -1 {
		isMinusOne = r.let(boolean, "%s == -1", y.as(t))
		y = r.let(t, "%s ? 1 : %s", isMinusOne.text(), y.as(t))
	}
	q := r.let(t, "%s / %s", x.as(t), y.as(t))
	rest := r.let(t, "%s %% %s", x.as(t), y.as(t))
	// The quotient was rounded up if there is a remainder of the other sign.
	mixed := r.let(boolean, "%s != 0 && (%s ^ %s) < 0", rest.text(), rest.text(), y.as(t))
	v, other := operand{}, operand{t: t}
	if isDiv {
		v = r.let(t, "%s ? %s - 1 : %s", mixed.text(), q.text(), q.text())
		if !isMinusOne.literal() {
			other = r.let(t, "%s", wrapped(t, "0u - "+x.as(t.unsigned())))
		}
	} else {
		v = r.let(t, "%s ? %s + %s : %s", mixed.text(), rest.text(), y.as(t), rest.text())
	}
	return r.choose(isMinusOne, other, v, t)
}
