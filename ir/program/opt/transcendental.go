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

// exp2 is 2^x = 2^f * 2^n with n = round(x). The two-step scaling by 2^(n/2)
// reaches subnormals and infinity with one rounding; NaN falls through all
// comparisons.
//
// Of numbers that are at most 0, 2^(n+63) is in the normal range: 2^f times that is exact, and 2^-63 rounds once.
func (e *expander) exp2(x *program.Value) *program.Value {
	f := formatOf(x.Type.Elem)
	if e.isNegative(x) && f == &formatF32 {
		return e.exp2Below1(f, x)
	}
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

func (e *expander) exp2Below1(f *floatFormat, x *program.Value) *program.Value {
	const up = 63
	magic := f.magic + float64(f.bias) + up // an even number more: ties are rounded as they are otherwise
	x = e.Alu(ir.OpMax, x, e.Float(x.Type, -f.exp2Clamp))
	shifted := e.aluF(ir.OpAdd, x, magic)
	fraction := e.Alu(ir.OpSub, x, e.aluF(ir.OpSub, shifted, magic))
	p := e.Fma(e.polynomial(fraction, f.exp2), fraction, e.Float(x.Type, 1))
	power := e.aluI(ir.OpShl, e.Bitcast(shifted, f.bits), f.mantissa) // of magic itself nothing is left
	return e.aluF(ir.OpMul, e.Alu(ir.OpMul, p, e.Bitcast(power, x.Type.Elem)), 0x1p-63)
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

// polynomial is c[0] + c[1]*x + .. by Horner's rule with fma.
func (e *expander) polynomial(x *program.Value, c []float64) *program.Value {
	v := e.Float(x.Type, c[len(c)-1])
	for i := len(c) - 2; i >= 0; i-- {
		v = e.Fma(v, x, e.Float(x.Type, c[i]))
	}
	return v
}
