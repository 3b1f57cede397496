package opt

import (
	"math"

	"tgc/ir"
	"tgc/ir/program"
)

// The transcendental functions, one way for f32 and f64: reduce the argument,
// evaluate a polynomial by Horner's rule with fma, put the exponent back by
// integer arithmetic on the bits. No branches, so they vectorise. The
// polynomials are Chebyshev fits computed with 160-bit arithmetic.

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

// exp2 is 2^x = 2^f * 2^n with n = round(x). The two-step scaling by 2^(n/2)
// reaches subnormals and infinity with one rounding; NaN falls through all
// comparisons.
func (e *expander) exp2(x *program.Value) *program.Value {
	f := formatOf(x.Type.Elem)
	x = e.Where(e.aluF(ir.OpCmpLt, x, -f.exp2Clamp), e.Float(x.Type, -f.exp2Clamp), x)
	high := e.Float(x.Type, f.exp2Clamp)
	x = e.Where(e.Lt(high, x), high, x)

	shifted := e.aluF(ir.OpAdd, x, f.magic)
	fraction := e.Alu(ir.OpSub, x, e.aluF(ir.OpSub, shifted, f.magic))
	n := e.aluI(ir.OpSub, e.Bitcast(shifted, f.bits), int64(bitsOf(f, f.magic)))

	p := e.polynomial(fraction, f.exp2)
	p = e.Fma(p, fraction, e.Float(x.Type, 1))

	half := e.aluI(ir.OpShr, n, 1)
	rest := e.Alu(ir.OpSub, n, half)
	return e.Alu(ir.OpMul, e.Alu(ir.OpMul, p, e.powerOfTwo(f, half)), e.powerOfTwo(f, rest))
}

// powerOfTwo is 2^n as a float, for n in the normal range.
func (e *expander) powerOfTwo(f *floatFormat, n *program.Value) *program.Value {
	float := ir.F32
	if f == &formatF64 {
		float = ir.F64
	}
	return e.Bitcast(e.aluI(ir.OpShl, e.aluI(ir.OpAdd, n, f.bias), f.mantissa), float)
}

func bitsOf(f *floatFormat, v float64) uint64 {
	if f == &formatF64 {
		return math.Float64bits(v)
	}
	return uint64(math.Float32bits(float32(v)))
}

// log2 splits x = m * 2^n with m in [sqrt(1/2), sqrt(2)) and gives
// n + log2(m), log2(m) accurate relative to itself for n = 0.
func (e *expander) log2(x *program.Value) *program.Value {
	f := formatOf(x.Type.Elem)
	// Subnormals are scaled up by 2^64 first.
	tiny := e.aluF(ir.OpCmpLt, x, f.minNormal)
	bits := e.Bitcast(e.Where(tiny, e.aluF(ir.OpMul, x, 0x1p64), x), f.bits)
	n := e.aluI(ir.OpShr, e.aluI(ir.OpSub, bits, f.sqrtHalf), f.mantissa)
	m := e.Bitcast(e.Alu(ir.OpSub, bits, e.aluI(ir.OpShl, n, f.mantissa)), x.Type.Elem)
	n = e.Alu(ir.OpSub, n, e.Where(tiny, e.Int(n.Type, 64), e.Int(n.Type, 0)))

	whole := e.Cast(n, x.Type.Elem)
	r := e.aluF(ir.OpSub, m, 1) // exact
	var sum *program.Value
	if x.Type.Elem == ir.F64 {
		sum = e.logSumF64(whole, r)
	} else {
		sum = e.logSumF32(whole, r)
	}
	inf := math.Inf(1)
	sum = e.Where(e.aluF(ir.OpCmpLt, x, inf), sum, x) // inf and NaN
	sum = e.Where(e.aluF(ir.OpCmpLt, x, 0), e.Float(x.Type, math.NaN()), sum)
	return e.Where(e.Eq(x, e.Float(x.Type, 0)), e.Float(x.Type, -inf), sum)
}

// log2Quotient is (log2(1+r) - r*log2(e)) / r^2; absolute error 4.5e-8.
var log2Quotient = []float64{
	-0.7213474865378441747, 0.4808982992822263549, -0.3606850311302760702,
	0.2885568176867696634, -0.2398717919576034968, 0.2049327523931627413,
	-0.1893905943710658116, 0.1835493693811637619, -0.110707245400248551,
}

// log2(e) in two parts of f32, and of f64.
const (
	log2eHigh32, log2eLow32 = 1.442695021629333496, 1.925963033500011079e-8
	log2eHigh64, log2eLow64 = 1.442695040888963387, 2.035527374093103205e-17
)

func (e *expander) logSumF32(whole, r *program.Value) *program.Value {
	q := e.polynomial(r, log2Quotient)
	q = e.Fma(q, e.Alu(ir.OpMul, r, r), e.aluF(ir.OpMul, r, log2eLow32))
	return e.Alu(ir.OpAdd, whole, e.Fma(r, e.Float(r.Type, log2eHigh32), q))
}

// atanhQuotient is (2*atanh(s)/s - 2) / s^2 in s^2; absolute error 2.1e-18.
var atanhQuotient = []float64{
	0.6666666666666666646, 0.4000000000000088324, 0.2857142857079978503,
	0.222222223925810451, 0.1818179554752113623, 0.1538624473762166661,
	0.1326863836926682389, 0.1308803485092755368,
}

// logSumF64 uses log(1+r) = 2*atanh(s), s = r/(2+r), with the leading r - r^2/2
// kept exactly in two parts, which are then multiplied by log2(e) in two.
func (e *expander) logSumF64(whole, r *program.Value) *program.Value {
	t := r.Type
	s := e.Alu(ir.OpFDiv, r, e.aluF(ir.OpAdd, r, 2))
	z := e.Alu(ir.OpMul, s, s)
	series := e.Alu(ir.OpMul, z, e.polynomial(z, atanhQuotient))
	halfSquare := e.Alu(ir.OpMul, e.aluF(ir.OpMul, r, 0.5), r)

	hi := e.Alu(ir.OpSub, r, halfSquare)
	lo := e.Alu(ir.OpSub, e.Alu(ir.OpSub, r, hi), halfSquare)
	// The correction of r - r^2/2 is s*(r^2/2 + series).
	lo = e.Fma(s, e.Alu(ir.OpAdd, halfSquare, series), lo)

	high := e.Float(t, log2eHigh64)
	v := e.Alu(ir.OpMul, hi, high)
	rest := e.Fma(hi, high, e.Alu(ir.OpNeg, v))
	rest = e.Fma(hi, e.Float(t, log2eLow64), rest)
	rest = e.Fma(lo, high, rest)

	w := e.Alu(ir.OpAdd, whole, v)
	rest = e.Alu(ir.OpAdd, rest, e.Alu(ir.OpAdd, e.Alu(ir.OpSub, whole, w), v))
	return e.Alu(ir.OpAdd, w, rest)
}

// sin takes n = round(x/pi) half turns off in three steps of fma (Cody and
// Waite), then a polynomial on [-pi/2, pi/2]; the sign is (-1)^n. Beyond 1e5
// it loses digits but stays within [-1, 1].
func (e *expander) sin(x *program.Value) *program.Value {
	f := formatOf(x.Type.Elem)
	n := e.Alu(ir.OpRound, e.aluF(ir.OpMul, x, 1/math.Pi))
	r := x
	for _, part := range f.sinPi {
		r = e.Fma(n, e.Float(x.Type, -part), r)
	}
	z := e.Alu(ir.OpMul, r, r)
	cube := e.Alu(ir.OpMul, z, r)
	v := e.Fma(e.polynomial(z, f.sin), cube, r)
	low, high := e.Float(x.Type, -1), e.Float(x.Type, 1)
	v = e.Where(e.Lt(v, low), low, v)
	v = e.Where(e.Lt(high, v), high, v)

	whole := e.Alu(ir.OpFloor, e.aluF(ir.OpMul, n, 0.5))
	odd := e.Fma(whole, e.Float(x.Type, -2), n) // 0 or 1
	return e.Alu(ir.OpMul, v, e.Fma(odd, e.Float(x.Type, -2), e.Float(x.Type, 1)))
}
