package opt

import (
	"tgc/ir"
	"tgc/ir/program"
)

// absInt is |x|; the least integer wraps to itself.
func (e *expander) absInt(x *program.Value) *program.Value {
	if !x.Type.Elem.IsSigned() {
		return x
	}
	return e.Where(e.Lt(x, e.Int(x.Type, 0)), e.Alu(ir.OpNeg, x), x)
}

// mulHi is the upper half of the product: of narrow integers in the next wider
// dtype, of 64-bit ones from four 32-bit products.
func (e *expander) mulHi(x, y *program.Value) *program.Value {
	elem := x.Type.Elem
	if elem.Bits() < 64 {
		wide := ir.U64
		if elem.IsSigned() {
			wide = ir.I64
		}
		product := e.Alu(ir.OpMul, e.Cast(x, wide), e.Cast(y, wide))
		return e.Cast(e.aluI(ir.OpShr, product, int64(elem.Bits())), elem)
	}
	if elem == ir.U64 {
		return e.mulHiU64(x, y)
	}
	hi := e.Cast(e.mulHiU64(e.Cast(x, ir.U64), e.Cast(y, ir.U64)), ir.I64)
	// A negative operand read as unsigned adds the other one to the upper half.
	zero := e.Int(x.Type, 0)
	hi = e.Alu(ir.OpSub, hi, e.Where(e.Lt(x, zero), y, zero))
	return e.Alu(ir.OpSub, hi, e.Where(e.Lt(y, zero), x, zero))
}

func (e *expander) mulHiU64(x, y *program.Value) *program.Value {
	mul := func(a, b *program.Value) *program.Value { return e.Alu(ir.OpMul, a, b) }
	add := func(a, b *program.Value) *program.Value { return e.Alu(ir.OpAdd, a, b) }
	low := int64(1<<32 - 1)
	x0, x1 := e.aluI(ir.OpAnd, x, low), e.aluI(ir.OpShr, x, 32)
	y0, y1 := e.aluI(ir.OpAnd, y, low), e.aluI(ir.OpShr, y, 32)
	middle := add(mul(x1, y0), e.aluI(ir.OpShr, mul(x0, y0), 32))
	cross := add(mul(x0, y1), e.aluI(ir.OpAnd, middle, low))
	return add(add(mul(x1, y1), e.aluI(ir.OpShr, middle, 32)), e.aluI(ir.OpShr, cross, 32))
}

// threefry is RNG: Threefry-2x32, 20 rounds, key (seed, 0), counter
// (counter, 0), first word. ir.Threefry is the scalar form.
func (e *expander) threefry(seed, counter *program.Value) *program.Value {
	rotations := [8]int64{13, 15, 26, 6, 17, 29, 16, 24}
	add := func(a, b *program.Value) *program.Value { return e.Alu(ir.OpAdd, a, b) }
	zero := e.Int(seed.Type, 0)
	parity := e.Alu(ir.OpXor, seed, e.Int(seed.Type, 0x1BD11BDA))
	key := [3]*program.Value{seed, zero, parity}
	x0, x1 := add(counter, seed), zero
	for round := range 20 {
		x0 = add(x0, x1)
		r := rotations[round%8]
		rotated := e.Alu(ir.OpOr, e.aluI(ir.OpShl, x1, r), e.aluI(ir.OpShr, x1, 32-r))
		x1 = e.Alu(ir.OpXor, rotated, x0)
		if round%4 == 3 {
			i := round/4 + 1
			x0 = add(x0, key[i%3])
			x1 = e.aluI(ir.OpAdd, add(x1, key[(i+1)%3]), int64(i))
		}
	}
	return x0
}
