package interp

import (
	"fmt"
	"math"

	"github.com/x448/float16"

	"tgc/ir"
	"tgc/ir/program"
)

// CAST loops for every pair of dtypes that opt.ExpandMath leaves: integers,
// Bool, f32, f64, and f16 to and from f32.

func (m *machine) cast(in *program.Instr) (func(), error) {
	from, to := in.Args[0].Type.Elem, in.Result.Type.Elem
	switch {
	case from == to:
		m.regs[in.Result.ID] = m.reg(in.Args[0])
		return nil, nil
	case from == ir.F16 && to == ir.F32:
		return halfToFloat(lanes[float32](m.define(in.Result)), lanes[uint16](m.reg(in.Args[0]))), nil
	case from == ir.F32 && to == ir.F16:
		return floatToHalf(lanes[uint16](m.define(in.Result)), lanes[float32](m.reg(in.Args[0]))), nil
	}
	var step func()
	if cast := loopsOf[from].cast; cast != nil {
		step = cast(m, in)
	}
	if step == nil {
		return nil, fmt.Errorf("the interpreter has no cast of %s to %s", from, to)
	}
	return step, nil
}

func castFrom[S number](m *machine, in *program.Instr) func() {
	from, r := lanes[S](m.reg(in.Args[0])), m.define(in.Result)
	switch d := in.Result.Type.Elem; d {
	case ir.Bool:
		return notZero(lanes[uint8](r), from)
	case ir.I8:
		return toInteger(lanes[int8](r), from, d)
	case ir.I16:
		return toInteger(lanes[int16](r), from, d)
	case ir.I32:
		return toInteger(lanes[int32](r), from, d)
	case ir.I64:
		return toInteger(lanes[int64](r), from, d)
	case ir.U8:
		return toInteger(lanes[uint8](r), from, d)
	case ir.U16:
		return toInteger(lanes[uint16](r), from, d)
	case ir.U32:
		return toInteger(lanes[uint32](r), from, d)
	case ir.U64:
		return toInteger(lanes[uint64](r), from, d)
	case ir.F32:
		return convert(lanes[float32](r), from)
	case ir.F64:
		return convert(lanes[float64](r), from)
	}
	return nil
}

// convert is Go's conversion: integers wrap, floats round to nearest even.
func convert[D, S number](r []D, a []S) func() {
	return func() {
		a := a[:len(r)]
		for i := range r {
			r[i] = D(a[i])
		}
	}
}

func notZero[S number](r []uint8, a []S) func() {
	return func() {
		for i := range r {
			r[i] = 0
			if a[i] != 0 {
				r[i] = 1
			}
		}
	}
}

// toInteger wraps integers. Floats are truncated to the nearest in range; NaN
// gives 0. past is the first float above the range.
func toInteger[D integer, S number](r []D, a []S, d ir.DType) func() {
	if half := S(1) / 2; half == 0 {
		return convert(r, a)
	}
	bits := d.Bits()
	low, past := 0.0, math.Ldexp(1, bits)
	least, most := D(0), ^D(0)
	if d.IsSigned() {
		past = math.Ldexp(1, bits-1)
		low = -past
		least = D(1) << (bits - 1)
		most = ^least
	}
	return func() {
		for i := range r {
			v := float64(a[i])
			switch {
			case v != v:
				r[i] = 0
			case v <= low:
				r[i] = least
			case v >= past:
				r[i] = most
			default:
				r[i] = D(v)
			}
		}
	}
}

// halfToFloat moves exponent and mantissa into place; the product with
// 2^(127-15) corrects the bias and normalises subnormals, exactly.
func halfToFloat(r []float32, a []uint16) func() {
	return func() {
		a := a[:len(r)]
		for i := range r {
			h := uint32(a[i])
			v := math.Float32frombits(h&0x7fff<<13) * 0x1p112
			word := math.Float32bits(v) | h&0x8000<<16
			if h&0x7c00 == 0x7c00 {
				word |= 0x7f800000
			}
			r[i] = math.Float32frombits(word)
		}
	}
}

func floatToHalf(r []uint16, a []float32) func() {
	return func() {
		for i := range r {
			r[i] = float16.Fromfloat32(a[i]).Bits()
		}
	}
}
