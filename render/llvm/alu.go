package llvm

import (
	"fmt"

	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/program"
)

// Elementwise instructions. Each is written so that its edges (overflow, NaN,
// signed zeros, shifts past the width, division by zero) are those of the op
// table on every LLVM version: select discards the poison of an arm that is
// not chosen.

func (r *renderer) alu(in *program.Instr) error {
	switch {
	case in.Ir == ir.OpBitcast:
		r.set(in, r.bitcast(r.value(in.Args[0]), valueType(in.Result.Type)))
		return nil
	case in.Ir == ir.OpCast:
		r.set(in, r.cast(r.value(in.Args[0]), in.Args[0].Type, in.Result.Type))
		return nil
	}
	from := in.Args[len(in.Args)-1].Type
	v, err := r.aluValue(in, from)
	if err != nil {
		return err
	}
	r.set(in, v)
	return nil
}

func (r *renderer) bitcast(v value.Value, to types.Type) value.Value {
	if v.Type().Equal(to) {
		return v
	}
	return r.at.NewBitCast(v, to)
}

func (r *renderer) aluValue(in *program.Instr, from program.Type) (value.Value, error) {
	if v := r.testBits(in); v != nil {
		return v, nil
	}
	if v := r.parity(in); v != nil {
		return v, nil
	}
	if v := r.scaled(in); v != nil {
		return v, nil
	}
	args := lists.Map(in.Args, r.value)
	var v value.Value
	switch {
	case in.Ir == ir.OpWhere:
		v = r.at.NewSelect(args[0], args[1], args[2])
	case from.Elem == ir.F32 || from.Elem == ir.F64:
		v = r.aluFloat(in, args)
	default:
		v = r.aluInt(in, from, args)
	}
	if v == nil {
		return nil, fmt.Errorf("no %s of %s", in.Ir, from)
	}
	return v, nil
}

func (r *renderer) aluFloat(in *program.Instr, args []value.Value) value.Value {
	at, x := r.at, args[0]
	switch in.Ir {
	case ir.OpCmpLt, ir.OpCmpEq, ir.OpMin, ir.OpMax:
		args = r.heldHalves(args)
		x = args[0]
	}
	switch in.Ir {
	case ir.OpAdd:
		return at.NewFAdd(x, args[1])
	case ir.OpSub:
		return at.NewFSub(x, args[1])
	case ir.OpMul:
		return at.NewFMul(x, args[1])
	case ir.OpNeg:
		return at.NewFNeg(x)
	case ir.OpFDiv:
		return at.NewFDiv(x, args[1])
	case ir.OpCmpLt:
		return at.NewFCmp(enum.FPredOLT, x, args[1])
	case ir.OpCmpEq:
		return at.NewFCmp(enum.FPredOEQ, x, args[1])
	case ir.OpMin, ir.OpMax:
		return r.floatExtreme(in.Ir, in.Args, args)
	}
	if name, ok := floatIntrinsics[in.Ir]; ok {
		t := x.Type()
		return r.intrinsic(name+"."+suffix(t), t, args...)
	}
	return nil
}

// rint rounds by the current mode, which is to nearest even; it selects one
// instruction on all versions.
var floatIntrinsics = map[ir.Op]string{
	ir.OpFma: "llvm.fma", ir.OpSqrt: "llvm.sqrt", ir.OpFloor: "llvm.floor",
	ir.OpTrunc: "llvm.trunc", ir.OpRound: "llvm.rint", ir.OpAbs: "llvm.fabs",
}

// floatExtreme is MIN or MAX: NaN if either is, -0 below +0. A comparison and
// select of x and y is one instruction (minps, maxps), which gives y when the
// two are equal or unordered; the rest makes that the right answer.
func (r *renderer) floatExtreme(op ir.Op, operands []*program.Value, args []value.Value) value.Value {
	for i, other := range []int{1, 0} {
		if c, ok := r.constFloat(operands[i]); ok && c == c {
			return r.extremeOfConst(op, args[other], args[i], c)
		}
	}
	return r.extreme(op, args[0], args[1])
}

// extremeOfConst has a constant c that is not NaN. If x is NaN or equal the
// answer is x, except that the zero of the better sign wins.
func (r *renderer) extremeOfConst(op ir.Op, x, c value.Value, known float64) value.Value {
	negative := 1/known < 0
	better := known == 0 && negative == (op == ir.OpMin) // of the zeros, c's wins
	if better {
		pred := enum.FPredULT // not c >= x: c smaller or unordered
		if op == ir.OpMin {
			pred = enum.FPredUGT
		}
		return r.at.NewSelect(r.at.NewFCmp(pred, c, x), x, c)
	}
	return r.at.NewSelect(r.at.NewFCmp(extremePred(op), c, x), c, x)
}

func extremePred(op ir.Op) enum.FPred {
	if op == ir.OpMin {
		return enum.FPredOLT
	}
	return enum.FPredOGT
}

// extreme orders its operands by the sign of x so that of two zeros the right
// one is second, then lets a NaN in the first replace the result.
func (r *renderer) extreme(op ir.Op, x, y value.Value) value.Value {
	if v, ok := r.ranged(op, x, y); ok {
		return v
	}
	at := r.at
	bits := sameShape(x.Type(), intFor(x.Type()))
	negative := at.NewICmp(enum.IPredSLT, r.bitcast(x, bits), intOf(bits, 0))
	first, second := at.NewSelect(negative, x, y), at.NewSelect(negative, y, x)
	if op == ir.OpMin {
		first, second = second, first
	}
	best := at.NewSelect(at.NewFCmp(extremePred(op), first, second), first, second)
	return at.NewSelect(at.NewFCmp(enum.FPredUNO, first, first), first, best)
}

// intFor is the integer type as wide as a float type.
func intFor(t types.Type) types.Type {
	if v, ok := t.(*types.VectorType); ok {
		t = v.ElemType
	}
	if t == types.Double {
		return types.I64
	}
	return types.I32
}

// sameShape is elem with as many lanes as t.
func sameShape(t, elem types.Type) types.Type {
	if v, ok := t.(*types.VectorType); ok {
		return types.NewVector(v.Len, elem)
	}
	return elem
}

func (r *renderer) aluInt(in *program.Instr, from program.Type, args []value.Value) value.Value {
	at, x, t := r.at, args[0], args[0].Type()
	signed := from.Elem.IsSigned()
	switch in.Ir {
	case ir.OpAdd:
		return at.NewAdd(x, args[1])
	case ir.OpSub:
		return at.NewSub(x, args[1])
	case ir.OpMul:
		return at.NewMul(x, args[1])
	case ir.OpNeg:
		return at.NewSub(intOf(t, 0), x)
	case ir.OpAnd:
		return at.NewAnd(x, args[1])
	case ir.OpOr:
		return at.NewOr(x, args[1])
	case ir.OpXor:
		return at.NewXor(x, args[1])
	case ir.OpNot:
		if from.Elem == ir.Bool {
			return at.NewXor(x, intOf(t, 1))
		}
		return at.NewXor(x, intOf(t, -1))
	case ir.OpCmpLt:
		return at.NewICmp(less(signed), x, args[1])
	case ir.OpCmpEq:
		return at.NewICmp(enum.IPredEQ, x, args[1])
	case ir.OpMin:
		return at.NewSelect(at.NewICmp(less(signed), args[1], x), args[1], x)
	case ir.OpMax:
		return at.NewSelect(at.NewICmp(less(signed), x, args[1]), args[1], x)
	case ir.OpShl, ir.OpShr:
		return r.shift(in, from.Elem, x, args[1])
	case ir.OpFloorDiv, ir.OpFloorMod:
		return r.division(in, signed, x, args[1])
	case ir.OpPopc:
		return r.intrinsic("llvm.ctpop."+suffix(t), t, x)
	case ir.OpClz:
		return r.intrinsic("llvm.ctlz."+suffix(t), t, x, intOf(types.I1, 0))
	}
	return nil
}

func less(signed bool) enum.IPred {
	if signed {
		return enum.IPredSLT
	}
	return enum.IPredULT
}

// shift defines counts at or past the width: 0, or the sign of a signed x.
func (r *renderer) shift(in *program.Instr, elem ir.DType, x, count value.Value) value.Value {
	at, t := r.at, x.Type()
	width := int64(elem.Bits())
	n, known := r.constInt(in.Args[1])
	inside := known && n >= 0 && n < width
	if !known {
		if v := r.shiftWords(in, elem, x); v != nil {
			return v
		}
	}
	arithmetic := in.Ir == ir.OpShr && elem.IsSigned()
	if !inside && arithmetic {
		fits := at.NewICmp(enum.IPredULT, count, intOf(t, width))
		count = at.NewSelect(fits, count, intOf(t, width-1))
	}
	var v value.Value
	switch {
	case in.Ir == ir.OpShl:
		v = at.NewShl(x, count)
	case arithmetic:
		return at.NewAShr(x, count)
	default:
		v = at.NewLShr(x, count)
	}
	if inside {
		return v
	}
	return at.NewSelect(at.NewICmp(enum.IPredULT, count, intOf(t, width)), v, intOf(t, 0))
}

// division is FLOORDIV or FLOORMOD. By a power of two it is a shift or a mask,
// which round down already; else the truncated quotient is corrected.
func (r *renderer) division(in *program.Instr, signed bool, x, y value.Value) value.Value {
	at, t := r.at, x.Type()
	isDiv := in.Ir == ir.OpFloorDiv
	d, known := r.constInt(in.Args[1])
	if known && d > 0 && d&(d-1) == 0 {
		if !isDiv {
			return at.NewAnd(x, intOf(t, d-1))
		}
		if signed {
			return at.NewAShr(x, intOf(t, log2(d)))
		}
		return at.NewLShr(x, intOf(t, log2(d)))
	}
	zero, one := intOf(t, 0), intOf(t, 1)
	safe := y
	if !known || d == 0 {
		safe = at.NewSelect(at.NewICmp(enum.IPredEQ, y, zero), one, y)
	}
	var v value.Value
	if signed {
		v = r.signedDivision(isDiv, known && d != -1, x, safe)
	} else if isDiv {
		v = at.NewUDiv(x, safe)
	} else {
		v = at.NewURem(x, safe)
	}
	if safe != y {
		v = at.NewSelect(at.NewICmp(enum.IPredEQ, y, zero), zero, v)
	}
	return v
}

// signedDivision divides by y, not 0. The least integer by -1 would trap, so
// -1 is taken out: x / -1 = -x, x mod -1 = 0.
func (r *renderer) signedDivision(isDiv, notMinusOne bool, x, y value.Value) value.Value {
	at, t := r.at, x.Type()
	zero := intOf(t, 0)
	var minus value.Value
	safe := y
	if !notMinusOne {
		minus = at.NewICmp(enum.IPredEQ, y, intOf(t, -1))
		safe = at.NewSelect(minus, intOf(t, 1), y)
	}
	rem := at.NewSRem(x, safe)
	differ := at.NewICmp(enum.IPredSLT, at.NewXor(rem, safe), zero)
	fix := at.NewAnd(at.NewICmp(enum.IPredNE, rem, zero), differ)
	var v, special value.Value
	if isDiv {
		v = at.NewAdd(at.NewSDiv(x, safe), at.NewSExt(fix, t))
	} else {
		v = at.NewAdd(rem, at.NewSelect(fix, safe, zero))
	}
	if notMinusOne {
		return v
	}
	special = zero
	if isDiv {
		special = at.NewSub(zero, x)
	}
	return at.NewSelect(minus, special, v)
}

func log2(d int64) int64 {
	n := int64(0)
	for d > 1 {
		d >>= 1
		n++
	}
	return n
}
