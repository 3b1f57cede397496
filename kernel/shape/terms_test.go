package shape_test

import (
	"testing"

	"tgc/ir"
	"tgc/kernel/shape"
)

// Two stored terms of f16, one of them scaled, are taken as they are beside an integer that an f16 holds, which takes the scale;
// beside any other factor, and of bf16 with a scale, they are floats.
func TestTermsOfProduct(t *testing.T) {
	a := ir.NewArena()
	read := func(slot int, dtype ir.DType) *ir.UOp {
		return a.Load(a.Make(ir.OpParam, dtype, ir.ParamArg{Slot: slot}, a.Index(16)), a.Range(0, a.Index(16)))
	}
	float := func(x *ir.UOp) *ir.UOp { return a.Cast(x, ir.F32) }
	times := func(x *ir.UOp, c float64) *ir.UOp { return a.Mul(x, a.Const(ir.F32, c)) }
	terms := func(dtype ir.DType, scale float64) *ir.UOp {
		return a.Add(float(read(0, dtype)), times(float(read(1, dtype)), scale))
	}
	byte8, short := float(read(2, ir.U8)), float(read(3, ir.I16))
	for name, c := range map[string]struct {
		rows, columns *ir.UOp
		elem          ir.DType
		nx, ny        int
	}{
		"byte":            {byte8, terms(ir.F16, 1.0/2048), ir.F16, 1, 2},
		"columns of byte": {terms(ir.F16, 1.0/2048), byte8, ir.F16, 2, 1},
		"small product":   {a.Mul(byte8, a.Add(float(a.And(read(4, ir.U8), a.ConstInt(ir.U8, 7))), a.Const(ir.F32, -4))), terms(ir.F16, 1.0/2048), ir.F16, 1, 2},
		"large product":   {a.Mul(byte8, float(a.And(read(4, ir.U8), a.ConstInt(ir.U8, 15)))), terms(ir.F16, 1.0/2048), ir.BF16, 3, 3},
		"short":           {short, terms(ir.F16, 1.0/2048), ir.BF16, 3, 3},
		"f16":             {float(read(5, ir.F16)), terms(ir.F16, 1.0/2048), ir.BF16, 2, 3},
		"no power":        {byte8, terms(ir.F16, 3), ir.BF16, 1, 3},
		"scaled bf16":     {byte8, terms(ir.BF16, 1.0/256), ir.BF16, 1, 3},
		"bf16":            {byte8, a.Add(float(read(0, ir.BF16)), float(read(1, ir.BF16))), ir.BF16, 1, 2},
	} {
		elem, nx, ny := shape.TermsOfProduct(ir.NewBounds(), c.rows, c.columns)
		if elem != c.elem || nx != c.nx || ny != c.ny {
			t.Errorf("%s: %d and %d terms of %s, want %d and %d of %s", name, nx, ny, elem, c.nx, c.ny, c.elem)
		}
	}
}
