package ptx

import (
	"fmt"
	"math"
	mathbits "math/bits"

	"tgc/ir"
	"tgc/render/gpu"
)

// Elementwise instructions. Every one on floats states its rounding: an add and
// a mul without may be contracted to an fma.

// floatOps of f32 and f64; the suffix follows. Rounding to an integer is a
// conversion to the same type.
var floatOps = map[ir.Op]string{
	ir.OpAdd: "add.rn", ir.OpSub: "sub.rn", ir.OpMul: "mul.rn", ir.OpFma: "fma.rn",
	ir.OpFDiv: "div.rn", ir.OpRecip: "rcp.rn", ir.OpSqrt: "sqrt.rn", ir.OpNeg: "neg", ir.OpAbs: "abs",
	ir.OpFloor: "cvt.rmi", ir.OpTrunc: "cvt.rzi", ir.OpRound: "cvt.rni",
}

// approximations of f32, left by opt.Has.Approx.
var approximations = map[ir.Op]string{
	ir.OpExp2: "ex2.approx", ir.OpLog2: "lg2.approx", ir.OpSin: "sin.approx", ir.OpRsqrt: "rsqrt.approx",
}

// integerOps; the type with or without a sign follows.
var integerOps = map[ir.Op]struct {
	name   string
	suffix func(n gpu.Number) string
}{
	ir.OpAdd: {"add", suffix}, ir.OpSub: {"sub", suffix}, ir.OpMul: {"mul.lo", suffix}, ir.OpMulHi: {"mul.hi", suffix},
	ir.OpMin: {"min", suffix}, ir.OpMax: {"max", suffix}, ir.OpNeg: {"neg", signed}, ir.OpNot: {"not", untyped},
	ir.OpAnd: {"and", untyped}, ir.OpOr: {"or", untyped}, ir.OpXor: {"xor", untyped},
}

// suffix is the type of an instruction: s32, u64, f32.
func suffix(n gpu.Number) string {
	switch {
	case n.Type.Float():
		return fmt.Sprintf("f%d", n.Type.Bits())
	case n.DType.IsSigned():
		return signed(n)
	}
	return fmt.Sprintf("u%d", n.Type.Bits())
}

func signed(n gpu.Number) string { return fmt.Sprintf("s%d", n.Type.Bits()) }

func untyped(n gpu.Number) string { return fmt.Sprintf("b%d", n.Type.Bits()) }

// Arithmetic is one instruction; a product with a power of two is a shift.
func (r *printer) Arithmetic(op ir.Op, n gpu.Number, x []operand) (operand, bool) {
	if !n.Type.Float() {
		info, ok := integerOps[op]
		switch {
		case !ok:
			return operand{}, false
		case (op == ir.OpAdd || op == ir.OpMul) && x[0].Literal():
			x[0], x[1] = x[1], x[0]
		}
		if op == ir.OpMul {
			if v := int64(x[1].Bits); x[1].Literal() && v > 0 && v&(v-1) == 0 {
				return r.shiftLeft(n, x[0], mathbits.TrailingZeros64(uint64(v))), true
			}
		}
		return r.emit(info.name+"."+info.suffix(n), n, x...), true
	}
	t := suffix(n)
	name, ok := floatOps[op]
	switch {
	case op == ir.OpFloor || op == ir.OpTrunc || op == ir.OpRound:
		t += "." + t
	case !ok && n.Type == gpu.F32:
		name, ok = approximations[op]
	}
	if !ok {
		return operand{}, false
	}
	return r.emit(name+"."+t, n, x...), true
}

// guesses are approximations of f32 from which more digits are computed.
var guesses = map[ir.Op]string{ir.OpRecip: "rcp.approx.ftz.f32", ir.OpRsqrt: "rsqrt.approx.ftz.f32"}

// Guess is one instruction.
func (r *printer) Guess(op ir.Op, x operand) operand {
	return r.emit(guesses[op], gpu.Number{DType: ir.F32, Type: gpu.F32}, r.Variable(x, gpu.F32))
}

func (r *printer) shiftLeft(n gpu.Number, x operand, count int) operand {
	if count == 0 {
		return x
	}
	return r.convert("shl."+untyped(n), n.Type, fmt.Sprintf("%s, %d", bits(x, n.Type), count))
}

// Logic is arithmetic on predicates; false < true.
func (r *printer) Logic(op ir.Op, x []operand) (operand, bool) {
	for i := range x {
		x[i] = r.Variable(x[i], gpu.Bool)
	}
	p := r.reg(gpu.Bool)
	switch op {
	case ir.OpNot:
		r.ins("not.pred %s, %s", p.Name, x[0].Name)
	case ir.OpAnd, ir.OpMin, ir.OpMul:
		r.ins("and.pred %s, %s, %s", p.Name, x[0].Name, x[1].Name)
	case ir.OpOr, ir.OpMax, ir.OpAdd:
		r.ins("or.pred %s, %s, %s", p.Name, x[0].Name, x[1].Name)
	case ir.OpXor:
		r.ins("xor.pred %s, %s, %s", p.Name, x[0].Name, x[1].Name)
	case ir.OpCmpEq:
		r.ins("xor.pred %s, %s, %s", p.Name, x[0].Name, x[1].Name)
		r.ins("not.pred %s, %s", p.Name, p.Name)
	case ir.OpCmpLt:
		r.ins("not.pred %s, %s", p.Name, x[0].Name)
		r.ins("and.pred %s, %s, %s", p.Name, p.Name, x[1].Name)
	default:
		return operand{}, false
	}
	return p, true
}

// Compare is setp.
func (r *printer) Compare(op ir.Op, n gpu.Number, x, y operand) operand {
	return r.compare(map[ir.Op]string{ir.OpCmpLt: "lt", ir.OpCmpEq: "eq"}[op], n, x, y)
}

func (r *printer) compare(relation string, n gpu.Number, x, y operand) operand {
	return r.convert("setp."+relation+"."+suffix(n), gpu.Bool, text(x, n.Type)+", "+text(y, n.Type))
}

// NotZero is setp; NaN is not 0.
func (r *printer) NotZero(n gpu.Number, x operand) operand {
	relation := "ne"
	if n.DType.IsFloat() {
		relation = "neu"
	}
	return r.compare(relation, n, r.Variable(x, n.Type), operand{})
}

// Choose is selp; predicates are computed.
func (r *printer) Choose(p, x, y operand, t gpu.Type) operand {
	if t != gpu.Bool {
		return r.convert("selp.b"+fmt.Sprint(t.Bits()), t, bits(x, t)+", "+bits(y, t)+", "+p.Name)
	}
	d, not := r.reg(gpu.Bool), r.reg(gpu.Bool)
	x, y = r.Variable(x, gpu.Bool), r.Variable(y, gpu.Bool)
	r.ins("and.pred %s, %s, %s", d.Name, p.Name, x.Name)
	r.ins("not.pred %s, %s", not.Name, p.Name)
	r.ins("and.pred %s, %s, %s", not.Name, not.Name, y.Name)
	r.ins("or.pred %s, %s, %s", d.Name, d.Name, not.Name)
	return d
}

var notANumber = math.NaN()

// Extreme is min or max, which observe the sign of 0. Before sm_80, and for f64,
// they drop a NaN, so it is put back.
func (r *printer) Extreme(op ir.Op, n gpu.Number, x, y operand) operand {
	name := "min"
	if op == ir.OpMax {
		name = "max"
	}
	if r.Desc.SM >= 80 && n.Type == gpu.F32 {
		return r.emit(name+".NaN.f32", n, x, y)
	}
	v := r.emit(name+"."+suffix(n), n, x, y)
	nan := literal(ir.FloatBits(n.DType, notANumber))
	return r.Pick(r.compare("nan", n, x, y), nan, v, n.Type)
}

// Shift: PTX limits counts to the register's width, which gives 0 or the sign
// as the op demands; narrow lanes are extended, so the same holds for them.
func (r *printer) Shift(op ir.Op, n gpu.Number, x, count operand) operand {
	if classOf(n.Type) == wide { // the count is 32 bits: larger ones must not wrap
		if count.Literal() {
			count = literal(min(count.Bits, 64))
		} else {
			count = r.low(r.convert("min.u64", gpu.U64, count.Name+", 64"))
		}
	}
	if w, ok := r.upper[x.Name]; ok && op == ir.OpShl && classOf(n.Type) == word && count.Literal() && count.Bits == 16 {
		return r.emit("and.b32", gpu.Word, operand{Name: w}, literal(0xffff0000))
	}
	name := "shl." + untyped(n)
	if op == ir.OpShr {
		name = "shr." + suffix(n)
	}
	return r.convert(name, n.Type, bits(x, n.Type)+", "+b32(count))
}

// CountBits counts in the register, of which the dtype may be a part.
func (r *printer) CountBits(op ir.Op, n gpu.Number, x operand) operand {
	width := n.DType.Bits()
	if n.DType.Size() < 4 && n.DType.IsSigned() {
		x = r.convert("and.b32", gpu.U32, fmt.Sprintf("%s, %d", b32(x), 1<<width-1))
	}
	name := map[ir.Op]string{ir.OpPopc: "popc.", ir.OpClz: "clz."}[op]
	d := r.convert(name+untyped(n), gpu.U32, bits(x, n.Type)) // also of 64 bits
	switch {
	case op == ir.OpClz && width < 32:
		return r.convert("sub.s32", gpu.U32, fmt.Sprintf("%s, %d", d.Name, 32-width))
	case classOf(n.Type) == wide:
		return r.widen(d)
	}
	return d
}
