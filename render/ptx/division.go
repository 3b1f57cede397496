package ptx

import (
	mathbits "math/bits"

	"tgc/ir"
	"tgc/render/gpu"
)

// Divide is the machine's division where no operand is negative, else its
// truncated quotient corrected.
func (r *printer) Divide(isDiv bool, n gpu.Number, x, y operand) operand {
	divide := r.unsignedDivision
	if n.DType.IsSigned() && !n.Positive {
		divide = r.signedDivision
	}
	if y.Literal() {
		if n.Type.Bits() == 32 && int64(y.Bits) > 2 && int64(y.Bits) < 1<<31 && (n.Positive && n.DType.IsSigned() || n.DType.Size() < 4 && !n.DType.IsSigned()) {
			return r.divisionByProduct(isDiv, n, x, y)
		}
		return divide(isDiv, n, x, y)
	}
	isZero := r.compare("eq", n, y, operand{})
	v := divide(isDiv, n, x, r.Pick(isZero, literal(1), y, n.Type))
	return r.Pick(isZero, operand{}, v, n.Type)
}

// divisionByProduct divides x, of 31 bits, by a constant: with m = 2^(31+l)/d rounded up,
// 2^(l-1) < d <= 2^l, the upper word of x*m without its low l-1 bits is the quotient, because
// x times what m is too large by is less than 2^(31+l). The assembler takes the reciprocal of
// a constant at run time, and five instructions for each quotient.
func (r *printer) divisionByProduct(isDiv bool, n gpu.Number, x, y operand) operand {
	factor, shift := reciprocalOf(y.Bits)
	n.DType = ir.U32
	q := r.emit("shr.u32", n, r.emit("mul.hi.u32", n, x, literal(factor)), literal(shift))
	if isDiv {
		return q
	}
	return r.emit("sub.s32", n, x, r.emit("mul.lo.s32", n, q, y))
}

// reciprocalOf are m and l-1 of a constant.
func reciprocalOf(d uint64) (factor, shift uint64) {
	l := uint64(mathbits.Len64(d - 1))
	return 1<<(31+l)/d + 1, l - 1
}

func (r *printer) unsignedDivision(isDiv bool, n gpu.Number, x, y operand) operand {
	n.DType = ir.U64
	if isDiv {
		return r.emit("div."+suffix(n), n, x, y)
	}
	return r.emit("rem."+suffix(n), n, x, y)
}

// signedDivision divides by y, not 0. The least integer by -1 has no quotient,
// so -1 is taken out: x / -1 = -x, x mod -1 = 0.
func (r *printer) signedDivision(isDiv bool, n gpu.Number, x, y operand) operand {
	s := signed(n)
	zero, minusOne := operand{}, literal(^uint64(0))
	safe := y
	var isMinusOne operand
	special := !y.Literal() || int64(y.Bits) == -1
	if special {
		isMinusOne = r.compare("eq", n, r.Variable(y, n.Type), minusOne)
		safe = r.Pick(isMinusOne, literal(1), y, n.Type)
	}
	q := r.emit("div."+s, n, x, safe)
	rem := r.emit("sub."+s, n, x, r.emit("mul.lo."+s, n, q, safe))
	// The quotient was rounded up if there is a remainder of the other sign.
	mixed := r.compare("lt", n, r.emit("xor."+untyped(n), n, rem, safe), zero)
	nonzero := r.compare("ne", n, rem, zero)
	r.ins("and.pred %s, %s, %s", mixed.Name, mixed.Name, nonzero.Name)
	var v, other operand
	if isDiv {
		v = r.Pick(mixed, r.emit("add."+s, n, q, minusOne), q, n.Type)
		if special {
			other = r.emit("neg."+s, n, x)
		}
	} else {
		v = r.Pick(mixed, r.emit("add."+s, n, rem, safe), rem, n.Type)
	}
	if !special {
		return v
	}
	return r.Pick(isMinusOne, other, v, n.Type)
}
