package llvm

import (
	"math"
	"slices"
	"strconv"

	llir "github.com/llir/llvm/ir"
	"github.com/llir/llvm/ir/constant"
	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"

	"tgc/ir"
	"tgc/ir/program"
)

// cast converts between the dtypes that opt.ExpandMath leaves.
func (r *renderer) cast(x value.Value, from, to program.Type) value.Value {
	at, t := r.at, valueType(to)
	f, d := from.Elem, to.Elem
	switch {
	case f == d:
		return x
	case d == ir.Bool:
		if f.IsFloat() {
			return at.NewFCmp(enum.FPredUNE, x, floatOf(x.Type(), 0))
		}
		return at.NewICmp(enum.IPredNE, x, intOf(x.Type(), 0))
	case f == ir.F16:
		return r.fromHalf(x, t)
	case d == ir.F16:
		return r.toHalf(x, t)
	case f == ir.F32 && d == ir.F64:
		return at.NewFPExt(x, t)
	case f == ir.F64 && d == ir.F32:
		return at.NewFPTrunc(x, t)
	case f.IsFloat():
		return r.floatToInt(x, d, t)
	case d.IsFloat():
		if f.IsSigned() {
			return at.NewSIToFP(x, t)
		}
		return at.NewUIToFP(x, t)
	}
	return r.intToInt(x, f, d, t)
}

// fromHalf and toHalf convert between the bits of f16 and f32. Single numbers
// are converted by intrinsics on bits, which instcombine looks through only
// when they are constant: of fpext, an f32 minimum and fptrunc it makes a
// minimum of halves, and that the code generator turns into a call of fminf.
func (r *renderer) fromHalf(x value.Value, t types.Type) value.Value {
	if t.Equal(types.Float) {
		return r.intrinsic("llvm.convert.from.fp16.f32", t, x)
	}
	return r.at.NewFPExt(r.bitcast(x, sameShape(x.Type(), types.Half)), t)
}

// heldHalves are operands of a comparison of which one stays an f32 where all are halves that were converted, or constants:
// else instcombine compares the halves, and the code generator does that one by one. One Zen 4 core, positions of the largest
// of the rows of 1021 x 1023: 2,748 us, 183.
func (r *renderer) heldHalves(args []value.Value) []value.Value {
	first := -1
	for i, x := range args {
		converted, ok := x.(*llir.InstFPExt)
		if _, known := x.(constant.Constant); known {
			continue
		}
		if from := sameShape(x.Type(), types.Half); !ok || !converted.From.Type().Equal(from) {
			return args
		}
		if first < 0 {
			first = i
		}
	}
	if first < 0 {
		return args
	}
	held, t := slices.Clone(args), args[first].Type()
	held[first] = r.intrinsic("llvm.arithmetic.fence."+suffix(t), t, args[first])
	return held
}

func (r *renderer) toHalf(x value.Value, t types.Type) value.Value {
	if x.Type().Equal(types.Float) {
		return r.intrinsic("llvm.convert.to.fp16.f32", t, x)
	}
	return r.bitcast(r.at.NewFPTrunc(x, sameShape(x.Type(), types.Half)), t)
}

func (r *renderer) intToInt(x value.Value, from, to ir.DType, t types.Type) value.Value {
	switch {
	case from.Bits() > to.Bits():
		if half := r.highHalf(x, from, t); half != nil {
			return half
		}
		return r.at.NewTrunc(x, t)
	case from.Bits() == to.Bits():
		return x
	case from.IsSigned():
		return r.at.NewSExt(x, t)
	}
	return r.at.NewZExt(x, t)
}

// highHalf takes the high halves of lanes that are shifted down by them as every other lane of halves,
// one shuffle of two registers, where LLVM shifts, narrows and joins; nil where x is none.
func (r *renderer) highHalf(x value.Value, from ir.DType, t types.Type) value.Value {
	half, vector := t.(*types.VectorType)
	shift, shifted := x.(*llir.InstLShr)
	if !vector || !shifted || half.ElemType.(*types.IntType).BitSize*2 != uint64(from.Bits()) {
		return nil
	}
	width := strconv.Itoa(from.Bits() / 2)
	if shift.Y.Ident() != vectorLiteral(x.Type().(*types.VectorType), func(int) string { return width }).Ident() {
		return nil
	}
	halves := r.bitcast(shift.X, types.NewVector(2*half.Len, half.ElemType))
	mask := make([]int, half.Len)
	for i := range mask {
		mask[i] = 2*i + 1
	}
	return r.at.NewShuffleVector(halves, undef(halves.Type()), shuffleMask(mask))
}

// floatToInt truncates and saturates; NaN gives 0. The conversion itself is
// poison out of range, where its result is not selected. Narrow integers are
// converted by way of i32.
func (r *renderer) floatToInt(x value.Value, d ir.DType, t types.Type) value.Value {
	at, ft := r.at, x.Type()
	bits := d.Bits()
	low, past := 0.0, math.Ldexp(1, bits)
	least, most := int64(0), int64(-1) // of 64 unsigned bits
	if bits < 64 {
		most = 1<<bits - 1
	}
	if d.IsSigned() {
		low, past = -math.Ldexp(1, bits-1), math.Ldexp(1, bits-1)
		least, most = math.MinInt64>>(64-bits), math.MaxInt64>>(64-bits)
	}
	var v value.Value
	it := t
	switch {
	case bits < 32:
		it = sameShape(t, types.I32)
		v = at.NewFPToSI(x, it)
	case d.IsSigned():
		v = at.NewFPToSI(x, it)
	default:
		v = at.NewFPToUI(x, it)
	}
	v = at.NewSelect(at.NewFCmp(enum.FPredOLE, x, floatOf(ft, low)), intOf(it, least), v)
	v = at.NewSelect(at.NewFCmp(enum.FPredOGE, x, floatOf(ft, past)), intOf(it, most), v)
	v = at.NewSelect(at.NewFCmp(enum.FPredUNO, x, x), intOf(it, 0), v)
	if it.Equal(t) {
		return v
	}
	return at.NewTrunc(v, t)
}
