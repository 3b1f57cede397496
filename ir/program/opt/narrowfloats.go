package opt

import (
	"math"

	"tgc/ir"
	"tgc/ir/program"
)

// round rounds f32 to a narrow dtype, to nearest even.
func (e *expander) round(x *program.Value, to ir.DType) *program.Value {
	switch to {
	case ir.BF16:
		if e.lacks.Has.RoundBF16 {
			return e.Cast(x, to)
		}
		return e.roundBF16(x)
	case ir.F8E4M3, ir.F8E5M2:
		return e.roundF8(x, formatsF8[to])
	}
	if e.lacks.Half {
		return e.roundHalf(x)
	}
	return e.Cast(x, to)
}

// roundHalf: below the least normal 2^-14 the sum with 1/2 rounds to multiples
// of 2^-24; else the exponent is rebased and the mantissa rounded to 10 bits.
func (e *expander) roundHalf(x *program.Value) *program.Value {
	size := e.Alu(ir.OpAbs, x)
	bits := e.Bitcast(size, ir.U32)
	rebased := e.aluI(ir.OpSub, bits, 112<<23)
	odd := e.aluI(ir.OpAnd, e.aluI(ir.OpShr, rebased, 13), 1)
	normal := e.aluI(ir.OpShr, e.Alu(ir.OpAdd, e.aluI(ir.OpAdd, rebased, 0xfff), odd), 13)
	subnormal := e.aluI(ir.OpSub, e.Bitcast(e.aluF(ir.OpAdd, size, 0.5), ir.U32), int64(math.Float32bits(0.5)))
	code := e.Where(e.aluF(ir.OpCmpLt, size, 0x1p-14), subnormal, normal)
	inf := e.Int(code.Type, 0x7c00)
	code = e.Where(e.Lt(code, inf), code, inf)
	code = e.Where(e.Eq(x, x), code, e.Int(code.Type, 0x7e00))
	sign := e.aluI(ir.OpShr, e.aluI(ir.OpAnd, e.Bitcast(x, ir.U32), 1<<31), 16)
	return e.Bitcast(e.Cast(e.Alu(ir.OpOr, code, sign), ir.U16), ir.F16)
}

func (e *expander) roundBF16(x *program.Value) *program.Value {
	bits := e.Bitcast(x, ir.U32)
	upper := e.aluI(ir.OpShr, bits, 16)
	rounded := e.aluI(ir.OpShr, e.Alu(ir.OpAdd, e.aluI(ir.OpAdd, bits, 0x7fff), e.aluI(ir.OpAnd, upper, 1)), 16)
	v := e.Where(e.Eq(x, x), rounded, e.aluI(ir.OpOr, upper, 0x40))
	return e.Bitcast(e.Cast(v, ir.U16), ir.BF16)
}

// formatF8 is how f32 is rounded to a float of 8 bits.
type formatF8 struct {
	dtype   ir.DType
	mant    int64 // bits of the mantissa
	bias    int64
	past    int64   // the byte of what rounds past the largest number
	subSum  float64 // a sum with this rounds to multiples of the least number
	normals float64 // the least normal number
}

var formatsF8 = map[ir.DType]formatF8{
	ir.F8E4M3: {ir.F8E4M3, 3, 7, 0x7f, 0x1p14, 0x1p-6},  // NaN past 464, half a step above 448
	ir.F8E5M2: {ir.F8E5M2, 2, 15, 0x7c, 0x1p7, 0x1p-14}, // infinite past 61440, half a step above 57344
}

// roundF8: below the least normal number a sum rounds to multiples of the least number; else
// the exponent is rebased and the mantissa rounded.
func (e *expander) roundF8(x *program.Value, f formatF8) *program.Value {
	size := e.Alu(ir.OpAbs, x)
	bits := e.Bitcast(size, ir.U32)
	dropped := 23 - f.mant
	rebased := e.aluI(ir.OpSub, bits, (127-f.bias)<<23)
	odd := e.aluI(ir.OpAnd, e.aluI(ir.OpShr, rebased, dropped), 1)
	normal := e.aluI(ir.OpShr, e.Alu(ir.OpAdd, e.aluI(ir.OpAdd, rebased, 1<<(dropped-1)-1), odd), dropped)
	subnormal := e.aluI(ir.OpSub, e.Bitcast(e.aluF(ir.OpAdd, size, f.subSum), ir.U32), int64(math.Float32bits(float32(f.subSum))))
	code := e.Where(e.aluF(ir.OpCmpLt, size, f.normals), subnormal, normal)
	past := e.Int(code.Type, f.past)
	code = e.Where(e.Lt(code, past), code, past)
	if f.past != nanF8 {
		code = e.Where(e.Eq(x, x), code, e.Int(code.Type, nanF8))
	}
	sign := e.aluI(ir.OpShr, e.aluI(ir.OpAnd, e.Bitcast(x, ir.U32), 1<<31), 24)
	return e.Bitcast(e.Cast(e.Alu(ir.OpOr, code, sign), ir.U8), f.dtype)
}

const nanF8 = 0x7f

// cast converts where a narrow float takes part, through f32.
func (e *expander) cast(x *program.Value, to ir.DType) *program.Value {
	from := x.Type.Elem
	switch {
	case from == to:
		return x
	case e.lacks.nativeCast(to, from):
		return e.Cast(x, to)
	case isNarrow(from):
		return e.cast(e.widen(x), to)
	}
	return e.round(e.toF32Odd(x, to), to)
}

// widen converts a narrow float to f32, exactly.
func (e *expander) widen(x *program.Value) *program.Value {
	switch x.Type.Elem {
	case ir.BF16:
		return e.Bitcast(e.aluI(ir.OpShl, e.Cast(e.Bitcast(x, ir.U16), ir.U32), 16), ir.F32)
	case ir.F8E4M3:
		return e.widenF8(x)
	case ir.F8E5M2: // the upper half of f16
		upper := e.aluI(ir.OpShl, e.Cast(e.Bitcast(x, ir.U8), ir.U16), 8)
		return e.widen(e.Bitcast(upper, ir.F16))
	}
	if e.lacks.Half {
		return e.widenHalf(x)
	}
	return e.Cast(x, ir.F32)
}

// widenHalf moves exponent and mantissa into the f32 fields; the product with
// 2^(127-15) corrects the bias and normalises subnormals.
func (e *expander) widenHalf(x *program.Value) *program.Value {
	b := e.Cast(e.Bitcast(x, ir.U16), ir.U32)
	magnitude := e.aluI(ir.OpAnd, b, 0x7fff)
	v := e.Bitcast(e.aluF(ir.OpMul, e.Bitcast(e.aluI(ir.OpShl, magnitude, 13), ir.F32), 0x1p112), ir.U32)
	special := e.Lt(e.Int(b.Type, 0x7bff), magnitude) // infinite or NaN
	v = e.Where(special, e.aluI(ir.OpOr, v, 0x7f800000), v)
	return e.Bitcast(e.Alu(ir.OpOr, v, e.aluI(ir.OpShl, e.aluI(ir.OpAnd, b, 0x8000), 16)), ir.F32)
}

// widenF8 moves exponent and mantissa into the f32 fields; the product with
// 2^(127-7) corrects the bias and normalises subnormals.
func (e *expander) widenF8(x *program.Value) *program.Value {
	b := e.Cast(e.Bitcast(x, ir.U8), ir.U32)
	magnitude := e.aluI(ir.OpAnd, b, 0x7f)
	v := e.aluF(ir.OpMul, e.Bitcast(e.aluI(ir.OpShl, magnitude, 20), ir.F32), 0x1p120)
	v = e.Where(e.Eq(magnitude, e.Int(b.Type, 0x7f)), e.Float(v.Type, math.NaN()), v)
	sign := e.aluI(ir.OpShl, e.aluI(ir.OpAnd, b, 0x80), 24)
	return e.Bitcast(e.Alu(ir.OpOr, e.Bitcast(v, ir.U32), sign), ir.F32)
}

// toF32Odd converts to f32 so that rounding on to the narrow dtype `to` gives
// the result of rounding once.
func (e *expander) toF32Odd(x *program.Value, to ir.DType) *program.Value {
	switch x.Type.Elem {
	case ir.F32:
		return x
	case ir.F64:
		v := e.Cast(x, ir.F32)
		return e.roundOdd(v, e.Cast(e.lostSign(x, v), ir.F32))
	case ir.I64, ir.U64:
		if to == ir.BF16 {
			return e.toF32Odd(e.Cast(e.stickyInt(x), ir.F64), to)
		}
	case ir.I32, ir.U32:
		if to == ir.BF16 {
			return e.toF32Odd(e.Cast(x, ir.F64), to)
		}
	}
	// Integers past 2^24 are infinite in f16 and f8e5m2 and NaN in f8e4m3 however rounded.
	return e.Cast(x, ir.F32)
}

// lostSign is -1, 0 or 1 as x (f64) lies below, at or above v (f32).
func (e *expander) lostSign(x, v *program.Value) *program.Value {
	back := e.Cast(v, ir.F64)
	one, zero := e.Float(x.Type, 1), e.Float(x.Type, 0)
	sign := e.Where(e.Lt(x, back), e.Float(x.Type, -1), zero)
	return e.Where(e.Lt(back, x), one, sign)
}

// stickyInt makes a 64-bit integer exact in f64 for a further rounding: of a
// large one the low 11 bits become one odd bit.
func (e *expander) stickyInt(x *program.Value) *program.Value {
	zero := e.Int(x.Type, 0)
	low := e.aluI(ir.OpAnd, x, 0x7ff)
	high := e.aluI(ir.OpAnd, x, ^int64(0x7ff))
	sticky := e.Where(e.Eq(low, zero), zero, e.Int(x.Type, 0x800))
	large := e.Lt(e.Int(x.Type, 1<<53), x)
	if x.Type.Elem == ir.I64 {
		large = e.Alu(ir.OpOr, large, e.Lt(x, e.Int(x.Type, -(1<<53))))
	}
	return e.Where(large, e.Alu(ir.OpOr, high, sticky), x)
}

// roundOdd corrects a rounded float to "round to odd", given the sign of what
// rounding lost (exact - rounded): of the two floats around the exact value,
// the one with an odd last bit. Rounding that to a narrower format is rounding
// once. Infinities and NaN stay.
func (e *expander) roundOdd(v, lost *program.Value) *program.Value {
	f := formatOf(v.Type.Elem)
	bits := e.Bitcast(v, f.bits)
	zero := e.Float(v.Type, 0)
	away := e.Eq(e.Lt(zero, lost), e.Lt(zero, v)) // the exact value is further from 0
	away = e.Alu(ir.OpOr, away, e.Eq(v, zero))
	step := e.Where(away, e.Int(bits.Type, 1), e.Int(bits.Type, -1))
	inexact := e.Alu(ir.OpOr, e.Lt(zero, lost), e.Lt(lost, zero))
	even := e.Eq(e.aluI(ir.OpAnd, bits, 1), e.Int(bits.Type, 0))
	finite := e.aluF(ir.OpCmpLt, e.Alu(ir.OpAbs, v), math.Inf(1))
	move := e.Alu(ir.OpAnd, e.Alu(ir.OpAnd, inexact, even), finite)
	moved := e.Alu(ir.OpAdd, bits, step)
	return e.Bitcast(e.Where(move, moved, bits), v.Type.Elem)
}
