package cuda

import (
	"fmt"
	"math"

	"tgc/ir"
	"tgc/ir/program"
)

// Floating point. Every function states its rounding: an operator may be
// contracted.

// floatOps are functions of f32 and of f64.
var floatOps = map[ir.Op][2]string{
	ir.OpAdd: {"__fadd_rn", "__dadd_rn"}, ir.OpSub: {"__fsub_rn", "__dsub_rn"}, ir.OpMul: {"__fmul_rn", "__dmul_rn"},
	ir.OpFma: {"__fmaf_rn", "__fma_rn"}, ir.OpFDiv: {"__fdiv_rn", "__ddiv_rn"}, ir.OpSqrt: {"__fsqrt_rn", "__dsqrt_rn"},
	ir.OpAbs: {"fabsf", "fabs"}, ir.OpFloor: {"floorf", "floor"}, ir.OpTrunc: {"truncf", "trunc"}, ir.OpRound: {"rintf", "rint"},
}

// approximations of f32, left by opt.Has.Approx: the same instructions as
// in render/ptx.
var approximations = map[ir.Op]string{
	ir.OpExp2: "exp2_approx", ir.OpLog2: "__log2f", ir.OpSin: "__sinf", ir.OpRsqrt: "rsqrtf",
}

func (r *renderer) computeFloat(op ir.Op, n number, x []operand) (operand, error) {
	args := ""
	for i, o := range x {
		if i > 0 {
			args += ", "
		}
		args += o.as(n.t)
	}
	precision := 0
	if n.t == float64Type {
		precision = 1
	}
	switch op {
	case ir.OpCmpLt:
		return r.let(boolean, "%s < %s", x[0].as(n.t), x[1].as(n.t)), nil
	case ir.OpCmpEq:
		return r.let(boolean, "%s == %s", x[0].as(n.t), x[1].as(n.t)), nil
	case ir.OpMin, ir.OpMax:
		return r.extreme(op, n, args, x), nil
	case ir.OpNeg:
		return r.let(n.t, "-(%s)", args), nil
	case ir.OpFDiv:
		if x[0].literal() && x[0].bits == ir.FloatBits(n.dtype, 1) {
			return r.let(n.t, "%s(%s)", [2]string{"__frcp_rn", "__drcp_rn"}[precision], x[1].as(n.t)), nil
		}
	}
	if names, ok := floatOps[op]; ok {
		return r.let(n.t, "%s(%s)", names[precision], args), nil
	}
	if name, ok := approximations[op]; ok && precision == 0 {
		if op == ir.OpExp2 {
			r.call(name)
		}
		return r.let(n.t, "%s(%s)", name, args), nil
	}
	return operand{}, fmt.Errorf("no %s of %s", op, n.dtype)
}

// extreme is MIN or MAX: NaN if either is, -0 below +0 (which the instructions
// observe, though C's fminf need not). Before sm_80, and for f64, they drop a
// NaN, so it is put back.
func (r *renderer) extreme(op ir.Op, n number, args string, x []operand) operand {
	name := "min"
	if op == ir.OpMax {
		name = "max"
	}
	if n.t == float32Type && r.desc.SM >= 80 {
		return r.let(n.t, "%s(%s)", r.call(name+"_nan"), args)
	}
	suffix := "_number"
	if n.t == float64Type {
		suffix = "_double"
	}
	a, b := x[0].as(n.t), x[1].as(n.t)
	nan := literal(n.t, ir.FloatBits(n.dtype, math.NaN()))
	return r.let(n.t, "%s != %s || %s != %s ? %s : %s(%s)", a, a, b, b, nan, r.call(name+suffix), args)
}

// halfFunctions are of two f16 in a word.
var halfFunctions = map[ir.Op]string{
	ir.OpAdd: "half2_add", ir.OpSub: "half2_sub", ir.OpMul: "half2_mul", ir.OpFma: "half2_fma", ir.OpNeg: "", ir.OpAbs: "",
}

// halfAlu is arithmetic on f16, two lanes at a time. Only ops that round once
// are left by opt.Has.HalfArith.
func (r *renderer) halfAlu(in *program.Instr) bool {
	t := in.Result.Type
	name, ok := halfFunctions[in.Ir]
	if t.Elem != ir.F16 || !ok {
		return false
	}
	args := make([][]operand, len(in.Args))
	for k, a := range in.Args {
		args[k], _ = r.storage(a)
	}
	out := make([]operand, len(args[0]))
	for i := range out {
		switch x := args[0][i].text(); in.Ir {
		case ir.OpNeg:
			out[i] = r.let(uint32Type, "%s ^ 0x80008000u", x)
		case ir.OpAbs:
			out[i] = r.let(uint32Type, "%s & 0x7fff7fffu", x)
		default:
			for k := 1; k < len(args); k++ {
				x += ", " + args[k][i].text()
			}
			out[i] = r.let(uint32Type, "%s(%s)", r.call(name), x)
		}
		if !isPacked(t) {
			out[i] = r.extend(ir.F16, out[i])
		}
	}
	r.setStorage(in.Result, out)
	return true
}
