package interp

import (
	"fmt"
	"math"
	"math/bits"
	"unsafe"

	"tgc/ir"
	"tgc/ir/program"
)

// Elementwise instructions as loops over typed lanes. Each function returns
// the loop of one op for one element type; semantics are those of the op table
// (ir.EvalScalar is the slow form they are tested against). Every result is
// stored to memory, so Go may not fuse a product with a sum.

type unsigned interface {
	uint8 | uint16 | uint32 | uint64
}

type integer interface {
	int8 | int16 | int32 | int64 | unsigned
}

type float interface{ float32 | float64 }

type number interface{ integer | float }

func (m *machine) alu(in *program.Instr) (func(), error) {
	from := in.Args[len(in.Args)-1].Type
	switch {
	case in.Ir == ir.OpBitcast:
		return m.bitcast(in), nil
	case in.Ir == ir.OpCast:
		return m.cast(in)
	case in.Ir == ir.OpWhere:
		return m.where(in), nil
	}
	var step func()
	if alu := loopsOf[from.Elem].alu; alu != nil {
		step = alu(m, in)
	}
	if step == nil {
		return nil, fmt.Errorf("the interpreter has no %s of %s", in.Ir, from)
	}
	return step, nil
}

// loopsOf are the loops of instructions of each element type.
var loopsOf = map[ir.DType]struct {
	alu, fold, cast func(*machine, *program.Instr) func()
}{
	ir.Bool: {aluBool, nil, castFrom[uint8]},
	ir.I8:   {aluInt[int8], foldLanes[int8], castFrom[int8]},
	ir.I16:  {aluInt[int16], foldLanes[int16], castFrom[int16]},
	ir.I32:  {aluInt[int32], foldLanes[int32], castFrom[int32]},
	ir.I64:  {aluInt[int64], foldLanes[int64], castFrom[int64]},
	ir.U8:   {aluInt[uint8], foldLanes[uint8], castFrom[uint8]},
	ir.U16:  {aluInt[uint16], foldLanes[uint16], castFrom[uint16]},
	ir.U32:  {aluInt[uint32], foldLanes[uint32], castFrom[uint32]},
	ir.U64:  {aluInt[uint64], foldLanes[uint64], castFrom[uint64]},
	ir.F32:  {aluFloat(fmaF32), foldLanes[float32], castFrom[float32]},
	ir.F64:  {aluFloat(fmaF64), foldLanes[float64], castFrom[float64]},
}

// bySize picks a loop by the bytes of an element.
func bySize[F any](size int, of1, of2, of4, of8 F) F {
	return map[int]F{1: of1, 2: of2, 4: of4, 8: of8}[size]
}

// operands are the result and arguments of an instruction with one dtype.
type operands[T any] struct{ r, a, b, c []T }

func operandsOf[T any](m *machine, in *program.Instr) operands[T] {
	o := operands[T]{r: lanes[T](m.define(in.Result)), a: lanes[T](m.reg(in.Args[0]))}
	if len(in.Args) > 1 {
		o.b = lanes[T](m.reg(in.Args[1]))
	}
	if len(in.Args) > 2 {
		o.c = lanes[T](m.reg(in.Args[2]))
	}
	return o
}

func aluBool(m *machine, in *program.Instr) func() {
	o := operandsOf[uint8](m, in)
	if in.Ir == ir.OpNot {
		return func() {
			for i := range o.r {
				o.r[i] = o.a[i] ^ 1
			}
		}
	}
	if in.Ir == ir.OpCmpLt || in.Ir == ir.OpCmpEq {
		return compare(in.Ir, o.r, o.a, o.b)
	}
	return bitwise(in.Ir, o)
}

func aluInt[T integer](m *machine, in *program.Instr) func() {
	if in.Ir == ir.OpCmpLt || in.Ir == ir.OpCmpEq {
		return compare(in.Ir, lanes[uint8](m.define(in.Result)), lanes[T](m.reg(in.Args[0])), lanes[T](m.reg(in.Args[1])))
	}
	o := operandsOf[T](m, in)
	if step := arithmetic(in.Ir, o); step != nil {
		return step
	}
	if step := bitwise(in.Ir, o); step != nil {
		return step
	}
	return divisionAndBits(in.Ir, o)
}

func aluFloat[T float](fma func(operands[T]) func()) func(*machine, *program.Instr) func() {
	return func(m *machine, in *program.Instr) func() {
		if in.Ir == ir.OpCmpLt || in.Ir == ir.OpCmpEq {
			return compare(in.Ir, lanes[uint8](m.define(in.Result)), lanes[T](m.reg(in.Args[0])), lanes[T](m.reg(in.Args[1])))
		}
		o := operandsOf[T](m, in)
		if step := arithmetic(in.Ir, o); step != nil {
			return step
		}
		if in.Ir == ir.OpFma {
			return fma(o)
		}
		return floatOps(in.Ir, o)
	}
}

func compare[T number](op ir.Op, r []uint8, a, b []T) func() {
	if op == ir.OpCmpLt {
		return func() {
			a, b := a[:len(r)], b[:len(r)]
			for i := range r {
				r[i] = 0
				if a[i] < b[i] {
					r[i] = 1
				}
			}
		}
	}
	return func() {
		a, b := a[:len(r)], b[:len(r)]
		for i := range r {
			r[i] = 0
			if a[i] == b[i] {
				r[i] = 1
			}
		}
	}
}

// pairwise is a loop with a call for each lane, each one of a single operand.
func pairwise[T number](o operands[T], f func(x, y T) T) func() {
	r, a, b := o.r, o.a, o.b
	return func() {
		a, b := a[:len(r)], b[:len(r)]
		for i := range r {
			r[i] = f(a[i], b[i])
		}
	}
}

func each[T number](o operands[T], f func(x T) T) func() {
	r, a := o.r, o.a
	return func() {
		a := a[:len(r)]
		for i := range r {
			r[i] = f(a[i])
		}
	}
}

// arithmetic has the ops of all numbers. The commonest are loops without calls, and
// scalars, mostly index arithmetic, get forms without a loop.
func arithmetic[T number](op ir.Op, o operands[T]) func() {
	r, a, b := o.r, o.a, o.b
	if len(r) == 1 {
		switch op {
		case ir.OpAdd:
			r, a, b := &r[0], &a[0], &b[0]
			return func() { *r = *a + *b }
		case ir.OpMul:
			r, a, b := &r[0], &a[0], &b[0]
			return func() { *r = *a * *b }
		}
	}
	switch op {
	case ir.OpAdd:
		return func() {
			a, b := a[:len(r)], b[:len(r)]
			for i := range r {
				r[i] = a[i] + b[i]
			}
		}
	case ir.OpSub:
		return pairwise(o, func(x, y T) T { return x - y })
	case ir.OpMul:
		return func() {
			a, b := a[:len(r)], b[:len(r)]
			for i := range r {
				r[i] = a[i] * b[i]
			}
		}
	case ir.OpNeg:
		return each(o, func(x T) T { return -x })
	case ir.OpMin:
		return pairwise(o, func(x, y T) T { return min(x, y) })
	case ir.OpMax:
		return pairwise(o, func(x, y T) T { return max(x, y) })
	}
	return nil
}

func bitwise[T integer](op ir.Op, o operands[T]) func() {
	switch op {
	case ir.OpAnd:
		return pairwise(o, func(x, y T) T { return x & y })
	case ir.OpOr:
		return pairwise(o, func(x, y T) T { return x | y })
	case ir.OpXor:
		return pairwise(o, func(x, y T) T { return x ^ y })
	case ir.OpNot:
		return each(o, func(x T) T { return ^x })
	}
	return nil
}

// divisionAndBits: shift counts are unsigned, so that Go's shift past the
// width (0, or the sign of a signed a) is the op's meaning.
func divisionAndBits[T integer](op ir.Op, o operands[T]) func() {
	var t T
	width := uint(unsafe.Sizeof(t)) * 8
	switch op {
	case ir.OpShl:
		return pairwise(o, func(x, y T) T { return x << uint64(y) })
	case ir.OpShr:
		return pairwise(o, func(x, y T) T { return x >> uint64(y) })
	case ir.OpFloorDiv:
		return pairwise(o, func(x, y T) T { q, _ := floorDivMod(x, y); return q })
	case ir.OpFloorMod:
		return pairwise(o, func(x, y T) T { _, rem := floorDivMod(x, y); return rem })
	case ir.OpPopc:
		return each(o, func(x T) T { return T(bits.OnesCount64(uint64(x) << (64 - width))) })
	case ir.OpClz:
		return each(o, func(x T) T { return T(bits.LeadingZeros64(uint64(x)<<(64-width) | 1<<(63-width))) })
	}
	return nil
}

func floorDivMod[T integer](x, y T) (q, rem T) {
	if y == 0 {
		return 0, 0
	}
	q, rem = x/y, x%y
	if rem != 0 && (rem < 0) != (y < 0) {
		q--
		rem += y
	}
	return q, rem
}

func floatOps[T float](op ir.Op, o operands[T]) func() {
	var f func(float64) float64
	switch op {
	case ir.OpFDiv:
		return pairwise(o, func(x, y T) T { return x / y })
	case ir.OpSqrt:
		f = math.Sqrt // rounding to float64 first is harmless: 53 >= 2*24+2
	case ir.OpFloor:
		f = math.Floor
	case ir.OpTrunc:
		f = math.Trunc
	case ir.OpRound:
		f = math.RoundToEven
	case ir.OpAbs:
		f = math.Abs
	default:
		return nil
	}
	return each(o, func(x T) T { return T(f(float64(x))) })
}

func fmaF64(o operands[float64]) func() {
	r, a, b, c := o.r, o.a, o.b, o.c
	return func() {
		for i := range r {
			r[i] = math.FMA(a[i], b[i], c[i])
		}
	}
}

// fmaF32 is x*y+z rounded once. The product is exact in float64; rounding the
// sum to float64 and then to float32 is wrong only if the first rounding ends
// on a midpoint between two float32, which the slow path takes, as it does
// results below the normal range.
func fmaF32(o operands[float32]) func() {
	r, a, b, c := o.r, o.a, o.b, o.c
	return func() {
		a, b, c := a[:len(r)], b[:len(r)], c[:len(r)]
		for i := range r {
			p := float64(a[i]) * float64(b[i])
			z := float64(c[i])
			s := p + z
			word := math.Float64bits(s)
			if word&0x1fffffff != 0x10000000 && word<<1 >= (1023-125)<<53 || s == 0 {
				r[i] = float32(s)
			} else {
				r[i] = fmaSlow(p, z, s)
			}
		}
	}
}

// fmaSlow rounds p+z, of which s is the rounded sum, to odd first.
func fmaSlow(p, z, s float64) float32 {
	if s-s != 0 { // infinite or NaN
		return float32(s)
	}
	t := s - p // Knuth's two-sum
	lost := (p - (s - t)) + (z - t)
	word := math.Float64bits(s)
	if lost != 0 && word&1 == 0 {
		if (lost > 0) == (s > 0) {
			word++
		} else {
			word--
		}
	}
	return float32(math.Float64frombits(word))
}

// where picks lanes by element size.
func (m *machine) where(in *program.Instr) func() {
	return bySize(in.Result.Type.Elem.Size(), whereLoop[uint8], whereLoop[uint16], whereLoop[uint32], whereLoop[uint64])(m, in)
}

func whereLoop[T unsigned](m *machine, in *program.Instr) func() {
	c, a, b := lanes[uint8](m.reg(in.Args[0])), lanes[T](m.reg(in.Args[1])), lanes[T](m.reg(in.Args[2]))
	r := lanes[T](m.define(in.Result))
	return func() {
		c, a, b := c[:len(r)], a[:len(r)], b[:len(r)]
		for i := range r {
			v := b[i]
			if c[i] != 0 {
				v = a[i]
			}
			r[i] = v
		}
	}
}

// bitcast shares the register; of a pointer it follows the source.
func (m *machine) bitcast(in *program.Instr) func() {
	from := m.reg(in.Args[0])
	m.regs[in.Result.ID] = from
	return nil
}
