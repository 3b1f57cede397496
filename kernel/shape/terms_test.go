package shape_test

import (
	"slices"
	"testing"

	"tgc/ir"
	"tgc/kernel/shape"
)

// Two stored terms of f16, one of them scaled, are taken as they are beside an integer that an f16 holds, which takes the scale;
// a half takes a scale of 2^-6 and no smaller one; beside any other factor, and of bf16 with a scale, they are floats. Two of which none is scaled are beside two more, and beside a
// number from 0 to 1, which is split like them.
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
	share := func(most float64) *ir.UOp {
		return a.Unary(ir.OpExp2, a.Binary(ir.OpMin, read(7, ir.F32), a.Const(ir.F32, most)))
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
		"half":            {float(read(5, ir.F16)), terms(ir.F16, 1.0/64), ir.F16, 1, 2},
		"columns of half": {terms(ir.F16, 1.0/64), float(read(5, ir.F16)), ir.F16, 2, 1},
		"half beyond":     {float(read(5, ir.F16)), terms(ir.F16, 1.0/128), ir.BF16, 2, 3},
		"half and float":  {float(read(5, ir.F16)), read(6, ir.F32), ir.BF16, 2, 3},
		"no power":        {byte8, terms(ir.F16, 3), ir.BF16, 1, 3},
		"scaled bf16":     {byte8, terms(ir.BF16, 1.0/256), ir.BF16, 1, 3},
		"plain halves":    {terms(ir.F16, 1), terms(ir.F16, 1), ir.F16, 2, 2},
		"one is scaled":   {terms(ir.F16, 1), terms(ir.F16, 1.0/2048), ir.BF16, 3, 3},
		"share of terms":  {share(0), terms(ir.F16, 1), ir.F16, 2, 2},
		"share of a half": {share(0), float(read(5, ir.F16)), ir.F16, 2, 1},
		"half of a share": {float(read(5, ir.F16)), share(0), ir.F16, 1, 2},
		"share of floats": {share(0), read(6, ir.F32), ir.BF16, 3, 3},
		"no share":        {share(1), terms(ir.F16, 1), ir.BF16, 3, 3},
		"bf16":            {byte8, a.Add(float(read(0, ir.BF16)), float(read(1, ir.BF16))), ir.BF16, 1, 2},
	} {
		elem, nx, ny := shape.TermsOfProduct(ir.NewBounds(), c.rows, c.columns)
		if elem != c.elem || nx != c.nx || ny != c.ny {
			t.Errorf("%s: %d and %d terms of %s, want %d and %d of %s", name, nx, ny, elem, c.nx, c.ny, c.elem)
		}
	}
}

// A factor that lies in memory times several powers of two is an integer of one term, whichever order the arena has put it in.
func TestScaledCopies(t *testing.T) {
	a := ir.NewArena()
	read := func(slot int) *ir.UOp {
		code := a.Cast(a.Load(a.Make(ir.OpParam, ir.U8, ir.ParamArg{Slot: slot}, a.Index(16)), a.Range(0, a.Index(16))), ir.F16)
		z := a.Range(1, a.Index(16))
		return a.Load(a.Make(ir.OpStage, ir.F16, ir.StageArg{Space: ir.SpaceShared}, code, z), z)
	}
	plain, scaled := read(0), read(1)
	float, back := a.Cast(plain, ir.F32), a.Mul(a.Cast(scaled, ir.F32), a.Const(ir.F32, 2048))
	for name, c := range map[string]struct {
		u    *ir.UOp
		want []shape.Term
	}{
		"one":       {float, []shape.Term{{Value: plain, Scale: 1}}},
		"both":      {a.Binary(ir.OpMax, float, back), []shape.Term{{Value: plain, Scale: 1}, {Value: scaled, Scale: 1.0 / 2048}}},
		"turned":    {a.Binary(ir.OpMax, back, float), []shape.Term{{Value: plain, Scale: 1}, {Value: scaled, Scale: 1.0 / 2048}}},
		"no scale":  {a.Binary(ir.OpMax, float, a.Cast(scaled, ir.F32)), nil},
		"no copies": {a.Add(float, back), nil},
	} {
		if got := shape.ScaledCopies(c.u); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	terms := a.Add(float, a.Mul(a.Cast(scaled, ir.F32), a.Const(ir.F32, 1.0/2048)))
	if elem, nx, ny := shape.TermsOfProduct(ir.NewBounds(), a.Binary(ir.OpMax, float, back), terms); elem != ir.F16 || nx != 1 || ny != 2 {
		t.Errorf("%d and %d terms of %s, want 1 and 2 of f16", nx, ny, elem)
	}
}

// Sums and products of integers are f16 as far as an f16 holds them; what it does not hold is rounded once, at the end.
func TestHalfOf(t *testing.T) {
	a, bounds := ir.NewArena(), ir.NewBounds()
	code := func(slot int, most int64) *ir.UOp {
		read := a.Load(a.Make(ir.OpParam, ir.U16, ir.ParamArg{Slot: slot}, a.Index(16)), a.Range(0, a.Index(16)))
		return a.Cast(a.And(read, a.ConstInt(ir.U16, most)), ir.F32)
	}
	small, scale, large := code(0, 15), code(1, 63), code(2, 4095)
	half := func(u *ir.UOp) *ir.UOp { return a.Cast(u, ir.F16) }
	for name, c := range map[string]struct{ u, want *ir.UOp }{
		"product": {a.Mul(small, scale), a.Mul(half(small), half(scale))},
		"offset":  {a.Add(small, a.Const(ir.F32, -8)), a.Add(half(small), a.Const(ir.F16, -8))},
		"large":   {a.Mul(small, large), half(a.Mul(small, large))},
	} {
		if got := shape.HalfOf(a, bounds, c.u); got != c.want {
			t.Errorf("%s: %s, want %s", name, ir.NodeText(got), ir.NodeText(c.want))
		}
	}
}
