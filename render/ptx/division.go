package ptx

import (
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
		return divide(isDiv, n, x, y)
	}
	isZero := r.compare("eq", n, y, operand{})
	v := divide(isDiv, n, x, r.Pick(isZero, literal(1), y, n.Type))
	return r.Pick(isZero, operand{}, v, n.Type)
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
