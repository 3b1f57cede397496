package ptx

import (
	"fmt"

	"tgc/ir"
	"tgc/ir/program"
)

// Floating point. Every instruction states its rounding: an add and a mul
// without may be contracted to an fma.

// floatOps of f32 and f64; the suffix follows. Rounding to an integer is a
// conversion to the same type.
var floatOps = map[ir.Op]string{
	ir.OpAdd: "add.rn", ir.OpSub: "sub.rn", ir.OpMul: "mul.rn", ir.OpFma: "fma.rn",
	ir.OpFDiv: "div.rn", ir.OpSqrt: "sqrt.rn", ir.OpNeg: "neg", ir.OpAbs: "abs",
	ir.OpFloor: "cvt.rmi", ir.OpTrunc: "cvt.rzi", ir.OpRound: "cvt.rni",
}

// approximations of f32, left by opt.Has.Approx.
var approximations = map[ir.Op]string{
	ir.OpExp2: "ex2.approx", ir.OpLog2: "lg2.approx", ir.OpSin: "sin.approx", ir.OpRsqrt: "rsqrt.approx",
}

func (r *renderer) computeFloat(op ir.Op, n number, x []operand) (operand, error) {
	t := n.suffix()
	switch op {
	case ir.OpCmpLt:
		return r.compare("lt", n, x[0], x[1]), nil
	case ir.OpCmpEq:
		return r.compare("eq", n, x[0], x[1]), nil
	case ir.OpMin, ir.OpMax:
		return r.extreme(op, n, x[0], x[1]), nil
	case ir.OpFloor, ir.OpTrunc, ir.OpRound:
		return r.emit(floatOps[op]+"."+t+"."+t, n, x...), nil
	case ir.OpFDiv:
		if x[0].literal() && x[0].bits == ir.FloatBits(n.dtype, 1) {
			return r.emit("rcp.rn."+t, n, x[1]), nil
		}
	}
	if name, ok := floatOps[op]; ok {
		return r.emit(name+"."+t, n, x...), nil
	}
	if name, ok := approximations[op]; ok && n.dtype == ir.F32 {
		return r.emit(name+"."+t, n, x...), nil
	}
	return operand{}, fmt.Errorf("no %s of %s", op, n.dtype)
}

// extreme is MIN or MAX: NaN if either is, -0 below +0 (which PTX's min and max
// observe). Before sm_80, and for f64, they drop a NaN, so it is put back.
func (r *renderer) extreme(op ir.Op, n number, x, y operand) operand {
	name := "min"
	if op == ir.OpMax {
		name = "max"
	}
	if r.desc.SM >= 80 && n.dtype == ir.F32 {
		return r.emit(name+".NaN.f32", n, x, y)
	}
	v := r.emit(name+"."+n.suffix(), n, x, y)
	nan := operand{bits: ir.FloatBits(n.dtype, notANumber)}
	p := r.compare("nan", n, x, y)
	return r.choose(p, nan, v, n)
}

// halfAlu is arithmetic on f16, two lanes at a time. Only ops that round once
// are left by opt.Has.HalfArith.
func (r *renderer) halfAlu(in *program.Instr) bool {
	t := in.Result.Type
	if t.Elem != ir.F16 {
		return false
	}
	switch in.Ir {
	case ir.OpAdd, ir.OpSub, ir.OpMul, ir.OpFma, ir.OpNeg, ir.OpAbs:
	default:
		return false
	}
	args := make([][]operand, len(in.Args))
	for k, a := range in.Args {
		if isPacked(a.Type) {
			args[k] = r.words(a)
		} else {
			args[k] = []operand{r.lane(a, 0)}
		}
	}
	out := make([]operand, len(args[0]))
	for i := range out {
		x := make([]operand, len(args))
		for k := range args {
			x[k] = args[k][i]
		}
		out[i] = r.halfWord(in.Ir, x)
	}
	if isPacked(t) {
		r.setWords(in.Result, out)
	} else {
		r.set(in.Result, []operand{r.narrowTo(ir.F16, out[0])})
	}
	return true
}

func (r *renderer) halfWord(op ir.Op, x []operand) operand {
	n := number{dtype: ir.U32, class: word}
	switch op {
	case ir.OpNeg:
		return r.emit("xor.b32", n, x[0], operand{bits: 0x80008000})
	case ir.OpAbs:
		return r.emit("and.b32", n, x[0], operand{bits: 0x7fff7fff})
	}
	for i := range x {
		x[i] = r.inReg(x[i], word)
	}
	return r.emit(floatOps[op]+".f16x2", n, x...)
}
