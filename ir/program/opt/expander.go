package opt

import (
	"tgc/ir"
	"tgc/ir/program"
)

// Lacks are instructions that a machine does not have.
type Lacks struct {
	FMA  bool // f32: the sum is then made in f64, rounded to odd; the same bits
	Half bool // conversions between f16 and f32: integer arithmetic, the same bits
	Has  Has
}

// Has are instructions that a machine has beyond the basic ones, and that stay.
type Has struct {
	HalfArith bool // ADD, SUB, MUL, FMA, NEG, ABS of f16, rounded once: the same bits
	RoundBF16 bool // CAST of f32 to bf16
	MulHi     bool // MULHI of 32 and 64 bits
	Rsqrt     bool // RSQRT of f32 as the reciprocal of the root, each rounded: the same bits
	Approx    bool // EXP2, LOG2, SIN, RSQRT of f32, not to the last bits: other results
}

// half reports an op that a machine with HalfArith does on f16.
func (h Has) half(op ir.Op, t ir.DType) bool {
	switch op {
	case ir.OpAdd, ir.OpSub, ir.OpMul, ir.OpFma, ir.OpNeg, ir.OpAbs:
		return h.HalfArith && t == ir.F16
	}
	return false
}

// nativeCast reports a CAST that every backend does in one step: between
// integers, Bool, f32 and f64, and between f16 and f32.
func (l Lacks) nativeCast(to, from ir.DType) bool {
	if to == ir.F16 || from == ir.F16 {
		return !l.Half && (to == ir.F32 || from == ir.F32)
	}
	if to == ir.BF16 && from == ir.F32 {
		return l.Has.RoundBF16
	}
	return !isNarrow(to) && !isNarrow(from)
}

// isNarrow reports a float dtype without arithmetic of its own.
func isNarrow(d ir.DType) bool { return d.IsFloat() && d.Size() < 4 }

type expander struct {
	*program.Builder
	lacks    Lacks
	replaced map[*program.Value]*program.Value // results of expanded instructions
	atMost   map[*program.Value]float64        // of constants, and of minima of one and another value
}

// bound notes what a result is at most.
func (e *expander) bound(in *program.Instr) {
	switch {
	case in.Op == program.Const && in.Result.Type.Elem.IsFloat():
		e.atMost[in.Result] = in.Float
	case in.Op == program.Alu && in.Ir == ir.OpMin:
		for _, x := range in.Args {
			if most, ok := e.atMost[x]; ok {
				e.atMost[in.Result] = most
			}
		}
	}
}

// isNegative reports a value that is at most 0, or no number.
func (e *expander) isNegative(x *program.Value) bool {
	most, ok := e.atMost[x]
	return ok && most <= 0
}

// aluF and aluI have a constant of the type of the value beside it.
func (e *expander) aluF(op ir.Op, x *program.Value, c float64) *program.Value {
	return e.Alu(op, x, e.Float(x.Type, c))
}

func (e *expander) aluI(op ir.Op, x *program.Value, c int64) *program.Value {
	return e.Alu(op, x, e.Int(x.Type, c))
}

// floatFormat holds what depends on the width.
type floatFormat struct {
	bits      ir.DType // signed integer of the same size
	mantissa  int64    // explicit bits
	bias      int64
	magic     float64 // 1.5 * 2^mantissa: x + magic has round(x) in its low bits
	minNormal float64

	exp2Clamp float64   // past it 2^x is 0 or infinite
	exp2      []float64 // (2^f - 1) / f for |f| <= 1/2

	sqrtHalf int64 // bits of sqrt(1/2), rounded down

	sinPi [3]float64 // pi in three parts
	sin   []float64  // (sin(r) - r) / r^3 in r^2 for |r| <= pi/2
}

var formatF32 = floatFormat{
	bits: ir.I32, mantissa: 23, bias: 127, magic: 1.5 * (1 << 23), minNormal: 0x1p-126,
	exp2Clamp: 160,
	exp2: []float64{ // absolute error 7.8e-9
		0.6931471880307134102, 0.2402265076060695738, 0.05550357092689030022,
		0.009618082538636960849, 0.001339087484781052844, 0.0001545317288704015894,
	},
	sqrtHalf: 0x3f3504f3,
	sinPi:    [3]float64{3.141592741012573242, -8.742277657347585773e-8, -3.430249020011763746e-15},
	sin: []float64{ // 2.8e-11
		-0.1666666666386736339, 0.008333332766508383002, -0.0001984108601621518407,
		2.753642235545494487e-6, -2.407923699090322782e-8,
	},
}

var formatF64 = floatFormat{
	bits: ir.I64, mantissa: 52, bias: 1023, magic: 1.5 * (1 << 52), minNormal: 0x1p-1022,
	exp2Clamp: 1100,
	exp2: []float64{ // 1.7e-19
		0.6931471805599453093, 0.2402265069591007123, 0.05550410866482162709,
		0.009618129107628479495, 0.001333355814640645311, 0.000154035303933707247,
		0.00001525273384157928824, 1.321548680871670747e-6, 1.017805707615538929e-7,
		7.05489729842442407e-9, 4.455819966572141666e-10, 2.57293343650632574e-11,
	},
	sqrtHalf: 0x3fe6a09e667f3bcc,
	sinPi:    [3]float64{3.141592653589793116, 1.224646799147353207e-16, -2.994769809718338297e-33},
	sin: []float64{ // 5.0e-22
		-0.1666666666666666667, 0.008333333333333333301, -0.0001984126984126980588,
		2.755731922397117537e-6, -2.50521083823761892e-8, 1.605904347799452109e-10,
		-7.647139048550472919e-13, 2.810466816590253108e-15, -8.005858059980551251e-18,
	},
}

func formatOf(d ir.DType) *floatFormat {
	if d == ir.F64 {
		return &formatF64
	}
	return &formatF32
}
