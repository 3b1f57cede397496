package cuda

import (
	"fmt"
	"math"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/render/gpu"
)

// Elementwise instructions. Every function on floats states its rounding: an
// operator may be contracted. Integers that may wrap are computed unsigned: a
// signed overflow has no meaning in C.

// floatOps are functions of f32 and of f64.
var floatOps = map[ir.Op][2]string{
	ir.OpAdd: {"__fadd_rn", "__dadd_rn"}, ir.OpSub: {"__fsub_rn", "__dsub_rn"}, ir.OpMul: {"__fmul_rn", "__dmul_rn"},
	ir.OpFma: {"__fmaf_rn", "__fma_rn"}, ir.OpFDiv: {"__fdiv_rn", "__ddiv_rn"}, ir.OpRecip: {"__frcp_rn", "__drcp_rn"},
	ir.OpSqrt: {"__fsqrt_rn", "__dsqrt_rn"}, ir.OpNeg: {"-", "-"},
	ir.OpAbs: {"fabsf", "fabs"}, ir.OpFloor: {"floorf", "floor"}, ir.OpTrunc: {"truncf", "trunc"}, ir.OpRound: {"rintf", "rint"},
}

// approximations of f32, left by opt.Has.Approx: the same instructions as in
// render/ptx.
var approximations = map[ir.Op]string{
	ir.OpExp2: "exp2_approx", ir.OpLog2: "__log2f", ir.OpSin: "__sinf", ir.OpRsqrt: "rsqrtf",
}

// wrappingOps are operators that may wrap; bitOps and functions never leave the
// range of their operands.
var (
	wrappingOps = map[ir.Op]string{ir.OpAdd: "+", ir.OpSub: "-", ir.OpMul: "*"}
	bitOps      = map[ir.Op]string{ir.OpAnd: "&", ir.OpOr: "|", ir.OpXor: "^"}
	functions   = map[ir.Op]string{ir.OpMin: "min", ir.OpMax: "max"}
)

// upperProducts are functions for the upper half of a product.
var upperProducts = map[gpu.Type]string{
	gpu.I32: "__mulhi", gpu.U32: "__umulhi", gpu.I64: "__mul64hi", gpu.U64: "__umul64hi",
}

// Arithmetic is an operator or a function.
func (r *printer) Arithmetic(op ir.Op, n gpu.Number, x []operand) (operand, bool) {
	t, u := n.Type, n.Type.Unsigned()
	if t.Float() {
		return r.float(op, t, x)
	}
	if operator, ok := bitOps[op]; ok {
		return r.let(t, "%s %s %s", as(x[0], t), operator, as(x[1], t)), true
	}
	if operator, ok := wrappingOps[op]; ok {
		if n.Exact {
			return r.let(t, "%s %s %s", as(x[0], t), operator, as(x[1], t)), true
		}
		return r.let(t, "%s", wrapped(t, as(x[0], u)+" "+operator+" "+as(x[1], u))), true
	}
	switch op {
	case ir.OpNeg:
		return r.let(t, "%s", wrapped(t, "0u - "+as(x[0], u))), true
	case ir.OpNot:
		return r.let(t, "~%s", as(x[0], t)), true
	case ir.OpMin, ir.OpMax:
		return r.let(t, "%s(%s)", functions[op], list(t, x...)), true
	case ir.OpMulHi:
		return r.let(t, "%s(%s)", upperProducts[t], list(t, x...)), true
	}
	return operand{}, false
}

func (r *printer) float(op ir.Op, t gpu.Type, x []operand) (operand, bool) {
	names, ok := floatOps[op]
	name := names[0]
	switch {
	case t == gpu.F64:
		name = names[1]
	case !ok:
		name, ok = approximations[op]
		if op == ir.OpExp2 {
			r.call(name)
		}
	}
	if !ok {
		return operand{}, false
	}
	return r.let(t, "%s(%s)", name, list(t, x...)), true
}

// guesses are helpers: f32 from which more digits are computed.
var guesses = map[ir.Op]string{ir.OpRecip: "recip_guess", ir.OpRsqrt: "rsqrt_guess"}

// Guess is one instruction.
func (r *printer) Guess(op ir.Op, x operand) operand {
	return r.let(gpu.F32, "%s(%s)", r.call(guesses[op]), as(x, gpu.F32))
}

// logicOps are formats of one or two operands; false < true.
var logicOps = map[ir.Op]string{
	ir.OpNot: "!%[1]s", ir.OpAnd: "%[1]s && %[2]s", ir.OpMin: "%[1]s && %[2]s", ir.OpMul: "%[1]s && %[2]s",
	ir.OpOr: "%[1]s || %[2]s", ir.OpMax: "%[1]s || %[2]s", ir.OpAdd: "%[1]s || %[2]s", ir.OpXor: "%[1]s != %[2]s",
	ir.OpCmpEq: "%[1]s == %[2]s", ir.OpCmpLt: "!%[1]s && %[2]s",
}

// Logic is an operator of bool.
func (r *printer) Logic(op ir.Op, x []operand) (operand, bool) {
	format, ok := logicOps[op]
	if !ok {
		return operand{}, false
	}
	args := lists.Make(len(x), func(i int) any { return as(x[i], gpu.Bool) })
	return r.let(gpu.Bool, format, args...), true
}

// Compare is an operator.
func (r *printer) Compare(op ir.Op, n gpu.Number, x, y operand) operand {
	operator := map[ir.Op]string{ir.OpCmpLt: "<", ir.OpCmpEq: "=="}[op]
	return r.let(gpu.Bool, "%s %s %s", as(x, n.Type), operator, as(y, n.Type))
}

// NotZero is true of NaN.
func (r *printer) NotZero(_ gpu.Number, x operand) operand {
	return r.let(gpu.Bool, "%s != 0", text(x))
}

// Choose is an expression.
func (r *printer) Choose(p, x, y operand, t gpu.Type) operand {
	return r.let(t, "%s ? %s : %s", text(p), as(x, t), as(y, t))
}

// Extreme is one instruction, which observes the sign of 0 though C's fminf need
// not. Before sm_80, and for f64, it drops a NaN, so it is put back.
func (r *printer) Extreme(op ir.Op, n gpu.Number, x, y operand) operand {
	name, t := functions[op], n.Type
	a, b := as(x, t), as(y, t)
	if t == gpu.F32 && r.Desc.SM >= 80 {
		return r.let(t, "%s(%s, %s)", r.call(name+"_nan"), a, b)
	}
	suffix := "_number"
	if t == gpu.F64 {
		suffix = "_double"
	}
	nan := literal(t, ir.FloatBits(n.DType, math.NaN()))
	return r.let(t, "%s != %s || %s != %s ? %s : %s(%s, %s)", a, a, b, b, nan, r.call(name+suffix), a, b)
}

// Shift: narrow lanes are extended, so that shifts past their width give what they
// must.
func (r *printer) Shift(op ir.Op, n gpu.Number, x, count operand) operand {
	t, u, width := n.Type, n.Type.Unsigned(), uint64(n.Type.Bits())
	signed := op == ir.OpShr && t != u
	past := count.Literal() && count.Bits >= width
	switch {
	case past && !signed:
		return operand{Type: t}
	case past:
		return r.let(t, "%s >> %d", as(x, t), width-1)
	case count.Literal() && op == ir.OpShl:
		return r.let(t, "%s", wrapped(t, fmt.Sprintf("%s << %d", as(x, u), count.Bits)))
	case count.Literal():
		return r.let(t, "%s >> %d", as(x, t), count.Bits)
	case signed:
		return r.let(t, "%s >> min(%s, %s)", as(x, t), as(count, u), literal(u, width-1))
	case op == ir.OpShl:
		shifted := wrapped(t, fmt.Sprintf("%s << %s", as(x, u), as(count, u)))
		return r.let(t, "%s < %s ? %s : %s", as(count, u), literal(u, width), shifted, literal(t, 0))
	}
	return r.let(t, "%s < %s ? %s >> %s : %s", as(count, u), literal(u, width), as(x, t), as(count, u), literal(t, 0))
}

// CountBits counts in the variable, of which the dtype may be a part.
func (r *printer) CountBits(op ir.Op, n gpu.Number, x operand) operand {
	width := n.DType.Bits()
	wide := n.Type.Bits() == 64
	value := as(x, n.Type.Unsigned())
	if n.DType.Size() < 4 && n.Type == gpu.I32 {
		value = fmt.Sprintf("(%s & %su)", value, hex(1<<width-1))
	}
	name, cast := "__popc", ""
	if op == ir.OpClz {
		name, cast = "__clz", "(int)"
		if wide {
			cast = "(long long)"
		}
	}
	if wide {
		name += "ll"
	}
	call := fmt.Sprintf("%s(%s%s)", name, cast, value)
	if op == ir.OpClz && width < 32 {
		call += fmt.Sprintf(" - %d", 32-width)
	}
	return r.let(n.Type, "%s", call)
}

// Divide is C's division where no operand is negative, else its truncated
// quotient corrected.
func (r *printer) Divide(isDiv bool, n gpu.Number, x, y operand) operand {
	t, u := n.Type, n.Type.Unsigned()
	isZero := operand{Type: gpu.Bool}
	if !y.Literal() {
		isZero = r.let(gpu.Bool, "%s == 0", text(y))
		y = r.let(t, "%s ? 1 : %s", isZero.Name, as(y, t))
	}
	var v operand
	if n.Positive || t == u {
		operator := map[bool]string{true: "/", false: "%"}[isDiv]
		v = r.let(t, "%s", wrapped(t, as(x, u)+" "+operator+" "+as(y, u)))
	} else {
		v = r.signedDivision(isDiv, t, x, y)
	}
	return r.Pick(isZero, operand{Type: t}, v, t)
}

// signedDivision divides by y, not 0. The least integer by -1 has no quotient,
// so -1 is taken out: x / -1 = -x, x mod -1 = 0.
func (r *printer) signedDivision(isDiv bool, t gpu.Type, x, y operand) operand {
	isMinusOne := operand{Type: gpu.Bool}
	if !y.Literal() || int64(y.Bits) == -1 {
		isMinusOne = r.let(gpu.Bool, "%s == -1", as(y, t))
		y = r.let(t, "%s ? 1 : %s", isMinusOne.Name, as(y, t))
	}
	q := r.let(t, "%s / %s", as(x, t), as(y, t))
	rest := r.let(t, "%s %% %s", as(x, t), as(y, t))
	// The quotient was rounded up if there is a remainder of the other sign.
	mixed := r.let(gpu.Bool, "%s != 0 && (%s ^ %s) < 0", rest.Name, rest.Name, as(y, t))
	v, other := operand{}, operand{Type: t}
	if isDiv {
		v = r.let(t, "%s ? %s - 1 : %s", mixed.Name, q.Name, q.Name)
		if !isMinusOne.Literal() {
			other = r.let(t, "%s", wrapped(t, "0u - "+as(x, t.Unsigned())))
		}
	} else {
		v = r.let(t, "%s ? %s + %s : %s", mixed.Name, rest.Name, as(y, t), rest.Name)
	}
	return r.Pick(isMinusOne, other, v, t)
}
