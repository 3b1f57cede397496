package ptx

import (
	"fmt"

	"tgc/ir"
	"tgc/render/gpu"
)

// Conversions.

// convert prints an instruction with a result of a type and these operands.
func (r *printer) convert(name string, t gpu.Type, operands string) operand {
	d := r.reg(t)
	r.ins("%s %s, %s", name, d.Name, operands)
	return d
}

// ByteToFloat puts the byte below the upper bits of 2^23.
func (r *printer) ByteToFloat(w operand, at int, off float64) operand {
	n := gpu.Number{DType: ir.F32, Type: gpu.F32}
	sum := r.Permute(w, literal(0x4b000000), 0x7540|at)
	return r.emit("sub.rn.f32", n, sum, literal(ir.FloatBits(ir.F32, off)))
}

// SubHalves is one subtraction; of bf16 before sm_90 a multiply-add.
func (r *printer) SubHalves(d ir.DType, x, less operand) operand {
	switch {
	case d == ir.F16:
		return r.emit("sub.f16x2", gpu.Word, x, less)
	case r.Desc.SM >= 90:
		return r.emit("sub.bf16x2", gpu.Word, x, less)
	}
	minusOne := r.Variable(literal(0xbf80bf80), gpu.U32)
	return r.emit("fma.rn.bf16x2", gpu.Word, less, minusOne, x)
}

// HalfToFloat splits the word that holds the half.
func (r *printer) HalfToFloat(w operand, upper bool) operand {
	h, other := r.reg(gpu.Half), r.reg(gpu.Half)
	w = r.Variable(w, gpu.U32)
	low, high := h, other
	if upper {
		low, high = other, h
	}
	r.ins("mov.b32 {%s, %s}, %s", low.Name, high.Name, w.Name)
	return r.convert("cvt.f32.f16", gpu.F32, h.Name)
}

// RoundHalf rounds by itself.
func (r *printer) RoundHalf(d ir.DType, x operand) operand {
	return r.convert("cvt.u32.u16", gpu.U32, r.roundHalf(d, x).Name)
}

func (r *printer) roundHalf(d ir.DType, x operand) operand {
	return r.convert("cvt.rn."+d.String()+".f32", gpu.Half, text(x, gpu.F32))
}

// RoundHalves is one instruction from sm_80 on.
func (r *printer) RoundHalves(d ir.DType, low, high operand) operand {
	if r.Desc.SM >= 80 {
		high = r.Variable(high, gpu.U32)
		low = r.Variable(low, gpu.U32)
		return r.convert("cvt.rn."+d.String()+"x2.f32", gpu.U32, high.Name+", "+low.Name)
	}
	a, b := r.roundHalf(d, low), r.roundHalf(d, high)
	return r.convert("mov.b32", gpu.U32, "{"+a.Name+", "+b.Name+"}")
}

// ToFloat is one conversion.
func (r *printer) ToFloat(n gpu.Number, t gpu.Type, x operand) operand {
	switch {
	case n.Type == gpu.F32:
		return r.convert("cvt.f64.f32", t, text(x, gpu.F32))
	case n.Type == gpu.F64:
		return r.convert("cvt.rn.f32.f64", t, text(x, gpu.F64))
	}
	x = r.Variable(x, n.Type)
	return r.convert(fmt.Sprintf("cvt.rn.f%d.%s", t.Bits(), suffix(n)), t, x.Name)
}

// FloatToInt: cvt truncates and saturates; NaN gives 0, which it does for 32 bits
// only. Narrow integers are limited afterwards.
func (r *printer) FloatToInt(n gpu.Number, d ir.DType, x operand) operand {
	x = r.Variable(x, n.Type)
	to := gpu.Number{DType: d, Type: gpu.TypeOf(d)}
	if d.Size() < 4 {
		to = gpu.Number{DType: ir.I32, Type: gpu.I32}
	}
	o := r.convert("cvt.rzi."+suffix(to)+"."+suffix(n), to.Type, x.Name)
	if d.Size() < 4 {
		lo, hi := d.IntRange()
		o = r.emit("max.s32", to, o, literal(uint64(lo)))
		o = r.emit("min.s32", to, o, literal(uint64(hi)))
	}
	if n.Type == gpu.F64 || d.Size() == 8 {
		o = r.Pick(r.compare("nan", n, x, x), operand{}, o, to.Type)
	}
	return o
}

// Bitcast: registers have no type.
func (r *printer) Bitcast(o operand, t gpu.Type) operand { return r.Hold(o, t) }

// Join is one move.
func (r *printer) Join(t gpu.Type, low, high operand) operand {
	return r.convert("mov.b64", t, "{"+low.Name+", "+high.Name+"}")
}

// Split is one move.
func (r *printer) Split(o operand) []operand {
	low, high := r.reg(gpu.U32), r.reg(gpu.U32)
	o = r.Variable(o, gpu.U64)
	r.ins("mov.b64 {%s, %s}, %s", low.Name, high.Name, o.Name)
	return []operand{low, high}
}

// WordOf is a register of 32 bits.
func (r *printer) WordOf(o operand) operand {
	if o.Type == gpu.Bool {
		o = r.Pick(o, literal(1), operand{}, gpu.U32)
	}
	return r.Variable(o, gpu.U32)
}
