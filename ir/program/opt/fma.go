package opt

import (
	"tgc/ir"
	"tgc/ir/program"
)

// Fma is x*y+z in one instruction or, of f32 on a machine without, in f64.
func (e *expander) Fma(x, y, z *program.Value) *program.Value {
	if e.lacks.FMA && x.Type.Elem == ir.F32 {
		return e.fmaWide([]*program.Value{x, y, z}, ir.F32)
	}
	return e.Builder.Fma(x, y, z)
}

// fmaWide is an FMA of at most 24 bits. The product is exact in f64; the sum is
// rounded to odd, so that the last rounding is the only one.
func (e *expander) fmaWide(args []*program.Value, elem ir.DType) *program.Value {
	x, y, z := e.cast(args[0], ir.F64), e.cast(args[1], ir.F64), e.cast(args[2], ir.F64)
	p := e.Alu(ir.OpMul, x, y)
	s := e.Alu(ir.OpAdd, p, z)
	// Knuth's two-sum: lost is exactly p + z - s.
	t := e.Alu(ir.OpSub, s, p)
	lost := e.Alu(ir.OpAdd, e.Alu(ir.OpSub, p, e.Alu(ir.OpSub, s, t)), e.Alu(ir.OpSub, z, t))
	return e.cast(e.roundOdd(s, lost), elem)
}
