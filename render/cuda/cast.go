package cuda

import (
	"fmt"

	"tgc/ir"
	"tgc/render/gpu"
)

// Conversions.

// ByteToFloat puts the byte below the upper bits of 2^23.
func (r *printer) ByteToFloat(w operand, at int, off float64) operand {
	return r.let(gpu.F32, "__fsub_rn(__uint_as_float(__byte_perm(%s, 0x4b000000u, 0x%04x)), %.1ff)", text(w), 0x7540|at, off)
}

// SubHalves is asked of printers that simplify only.
func (r *printer) SubHalves(ir.DType, operand, operand) operand { return operand{} }

// HalfToFloat is one helper.
func (r *printer) HalfToFloat(w operand, upper bool) operand {
	bits := text(w)
	if upper {
		bits += " >> 16"
	}
	return r.let(gpu.F32, "%s(%s)", r.call("half_to_float"), bits)
}

var halfNames = map[ir.DType]string{ir.F16: "half", ir.BF16: "bf16"}

// RoundHalf is one helper.
func (r *printer) RoundHalf(d ir.DType, x operand) operand {
	return r.let(gpu.U32, "%s(%s)", r.call("float_to_"+halfNames[d]), text(x))
}

// RoundHalves is one helper from sm_80 on.
func (r *printer) RoundHalves(d ir.DType, low, high operand) operand {
	if r.Desc.SM >= 80 {
		return r.let(gpu.U32, "%s(%s)", r.call("floats_to_"+halfNames[d]+"2"), list(gpu.F32, low, high))
	}
	convert := r.call("float_to_" + halfNames[d])
	return r.let(gpu.U32, "%s(%s) | %s(%s) << 16", convert, text(low), convert, text(high))
}

// ToFloat is a cast, which rounds to nearest even.
func (r *printer) ToFloat(n gpu.Number, t gpu.Type, x operand) operand {
	switch n.Type {
	case gpu.F32:
		return r.let(t, "(double)%s", text(x))
	case gpu.F64:
		return r.let(t, "__double2float_rn(%s)", text(x))
	}
	return r.let(t, "(%s)(%s)", typeName(t), text(x))
}

// floatToInt has names of integers in conversions that truncate and saturate.
var floatToInt = map[gpu.Type]string{gpu.I32: "int", gpu.U32: "uint", gpu.I64: "ll", gpu.U64: "ull"}

// FloatToInt: NaN gives 0, which the functions do from f32 to 32 bits only. Narrow
// integers are limited afterwards.
func (r *printer) FloatToInt(n gpu.Number, d ir.DType, x operand) operand {
	t := gpu.TypeOf(d)
	machine := t
	if d.Size() < 4 {
		machine = gpu.I32
	}
	o := r.let(machine, "__%s2%s_rz(%s)", typeName(n.Type), floatToInt[machine], text(x))
	if d.Size() < 4 {
		lo, hi := d.IntRange()
		o = r.Hold(r.let(machine, "min(max(%s, %d), %d)", o.Name, lo, hi), t)
	}
	if n.Type == gpu.F64 || d.Size() == 8 {
		o = r.let(t, "%s != %s ? %s : %s", text(x), text(x), literal(t, 0), o.Name)
	}
	return o
}

// Bitcast is a conversion of integers, or a function.
func (r *printer) Bitcast(o operand, t gpu.Type) operand {
	switch {
	case o.Type.Float() == t.Float():
		return r.Hold(o, t)
	case o.Type == gpu.F32:
		return r.Hold(r.let(gpu.U32, "__float_as_uint(%s)", o.Name), t)
	case o.Type == gpu.F64:
		return r.Hold(r.let(gpu.I64, "__double_as_longlong(%s)", o.Name), t)
	case t == gpu.F32:
		return r.let(t, "__uint_as_float(%s)", as(o, gpu.U32))
	}
	return r.let(t, "__longlong_as_double(%s)", as(o, gpu.I64))
}

// Join is an expression.
func (r *printer) Join(t gpu.Type, low, high operand) operand {
	bits := fmt.Sprintf("(unsigned long long)%s << 32 | %s", text(high), text(low))
	switch t {
	case gpu.F64:
		return r.let(t, "__longlong_as_double((long long)(%s))", bits)
	case gpu.I64:
		return r.let(t, "(long long)(%s)", bits)
	}
	return r.let(t, "%s", bits)
}

// Split is two casts.
func (r *printer) Split(o operand) []operand {
	whole := as(o, gpu.I64)
	if o.Type == gpu.F64 {
		whole = fmt.Sprintf("__double_as_longlong(%s)", text(o))
	}
	return []operand{r.let(gpu.U32, "(unsigned)%s", whole), r.let(gpu.U32, "(unsigned)(%s >> 32)", whole)}
}

// WordOf is a cast, or the bits of a float.
func (r *printer) WordOf(o operand) operand {
	switch {
	case o.Type != gpu.F32:
		return r.let(gpu.U32, "%s", as(o, gpu.U32))
	case o.Literal():
		return operand{Bits: o.Bits & 0xffffffff, Type: gpu.U32}
	}
	return r.Bitcast(o, gpu.U32)
}
