package ptxemu

import (
	"math"

	"tgc/internal/lists"
	"tgc/ir"
)

// Floating point. Results are rounded once, to nearest even; others are
// refused. NaN results are whatever Go's arithmetic gives, so payloads are not
// those of a GPU.

var floatInstructions = map[string]func(*compiler, *statement){
	"fma":   compileFma,
	"sqrt":  compileFunction,
	"rsqrt": compileFunction,
	"rcp":   compileFunction,
	"ex2":   compileFunction,
	"lg2":   compileFunction,
	"sin":   compileFunction,
	"cos":   compileFunction,
	"tanh":  compileFunction,
	"cvt":   compileConvert,
}

// floatKind maps a type of one float to ir's.
func floatKind(k kind) ir.DType {
	switch {
	case k.letter == 'h':
		return ir.BF16
	case k.bits == 16 || k.pair:
		return ir.F16
	case k.bits == 64:
		return ir.F64
	}
	return ir.F32
}

func fromBits(k kind, v uint64) float64 {
	switch {
	case k.bits == 32 && !k.pair:
		return float64(math.Float32frombits(uint32(v)))
	case k.bits == 64:
		return math.Float64frombits(v)
	}
	return ir.FloatFromBits(floatKind(k), v&mask(16))
}

func toBits(k kind, v float64) uint64 {
	switch {
	case k.bits == 32 && !k.pair:
		return uint64(math.Float32bits(float32(v)))
	case k.bits == 64:
		return math.Float64bits(v)
	}
	d := floatKind(k)
	return ir.FloatBits(d, ir.RoundFloat(d, v))
}

// checkRounding refuses modifiers that no renderer prints: what is not known to be
// right must not run.
func (c *compiler) checkRounding(s *statement) {
	for _, m := range s.mods {
		switch m {
		case "rz", "rm", "rp", "rna", "sat", "relu", "xorsign", "noftz", "oob":
			c.fail("modifier .%s is not supported", m)
		}
	}
}

func compileFloatBinary(c *compiler, s *statement) {
	k := c.kind(s, 0)
	if mode := directedMode(s); mode != "" && k == single {
		c.directedBinary(s, mode)
		return
	}
	c.checkRounding(s)
	f := floatFunction(s.op, s.has("NaN"))
	if f == nil {
		c.fail("no %s of floats", s.op)
	}
	switch {
	case k.pair:
		one := k
		c.binary(s, k, k, func(x, y uint64) uint64 {
			lo := toBits(one, f(fromBits(one, x), fromBits(one, y)))
			hi := toBits(one, f(fromBits(one, x>>16), fromBits(one, y>>16)))
			return lo | hi<<16
		})
	case k.bits == 32:
		c.binary(s, k, k, singleFunction(s.op, f))
	default:
		c.binary(s, k, k, func(x, y uint64) uint64 { return toBits(k, f(fromBits(k, x), fromBits(k, y))) })
	}
}

var single = kind{letter: 'f', bits: 32}

// directedMode is a rounding other than to nearest; empty without.
func directedMode(s *statement) string {
	return lists.First(s.mods, func(m string) bool { return m == "rz" || m == "rm" || m == "rp" }, "")
}

// directed rounds to f32 in a direction a value that was rounded to odd in f64.
func directed(mode string, v float64) uint64 {
	r := float32(v)
	up := float64(r) < v && (mode == "rp" || mode == "rz" && v < 0)
	down := float64(r) > v && (mode == "rm" || mode == "rz" && v > 0)
	switch {
	case up:
		r = math.Nextafter32(r, float32(math.Inf(1)))
	case down:
		r = math.Nextafter32(r, float32(math.Inf(-1)))
	}
	return uint64(math.Float32bits(r))
}

// directedBinary is a sum, difference or product of f32.
func (c *compiler) directedBinary(s *statement, mode string) {
	if s.has("sat") {
		c.fail("modifier .sat is not supported")
	}
	value := func(v uint64) float64 { return float64(math.Float32frombits(uint32(v))) }
	switch s.op {
	case "add":
		c.binary(s, single, single, func(x, y uint64) uint64 { return directed(mode, sumToOdd(value(x), value(y))) })
	case "sub":
		c.binary(s, single, single, func(x, y uint64) uint64 { return directed(mode, sumToOdd(value(x), -value(y))) })
	case "mul":
		c.binary(s, single, single, func(x, y uint64) uint64 { return directed(mode, value(x)*value(y)) })
	default:
		c.fail("modifier .%s is not supported", mode)
	}
}

// singleFunction has the frequent ops of f32 without the way through f64.
func singleFunction(op string, f func(x, y float64) float64) func(x, y uint64) uint64 {
	value := math.Float32frombits
	switch op {
	case "add":
		return func(x, y uint64) uint64 { return uint64(math.Float32bits(value(uint32(x)) + value(uint32(y)))) }
	case "sub":
		return func(x, y uint64) uint64 { return uint64(math.Float32bits(value(uint32(x)) - value(uint32(y)))) }
	case "mul":
		return func(x, y uint64) uint64 { return uint64(math.Float32bits(value(uint32(x)) * value(uint32(y)))) }
	}
	return func(x, y uint64) uint64 {
		v := f(float64(value(uint32(x))), float64(value(uint32(y))))
		return uint64(math.Float32bits(float32(v)))
	}
}

// floatFunction computes in f64; rounding its result to f32 or less is exact
// rounding of sums, products and quotients (53 >= 2*24+2).
func floatFunction(op string, propagate bool) func(x, y float64) float64 {
	switch op {
	case "add":
		return func(x, y float64) float64 { return x + y }
	case "sub":
		return func(x, y float64) float64 { return x - y }
	case "mul":
		return func(x, y float64) float64 { return x * y }
	case "div":
		return func(x, y float64) float64 { return x / y }
	case "min":
		return func(x, y float64) float64 { return extreme(math.Min, x, y, propagate) }
	case "max":
		return func(x, y float64) float64 { return extreme(math.Max, x, y, propagate) }
	}
	return nil
}

// extreme: without .NaN the operand that is a number wins; with it, NaN does.
// (math.Max itself prefers an infinity to a NaN.)
func extreme(f func(x, y float64) float64, x, y float64, propagate bool) float64 {
	switch {
	case propagate && (x != x || y != y):
		return math.NaN()
	case !propagate:
		if x != x {
			return y
		}
		if y != y {
			return x
		}
	}
	return f(x, y)
}

func compileFma(c *compiler, s *statement) {
	k := c.kind(s, 0)
	if mode := directedMode(s); mode != "" && k == single && !s.has("sat") {
		c.ternary(s, k, k, func(x, y, z uint64) uint64 {
			p := fromBits(k, x) * fromBits(k, y)
			return directed(mode, sumToOdd(p, fromBits(k, z)))
		})
		return
	}
	c.checkRounding(s)
	switch {
	case k.pair:
		d := floatKind(k)
		c.ternary(s, k, k, func(x, y, z uint64) uint64 {
			return fmaNarrow(d, x, y, z) | fmaNarrow(d, x>>16, y>>16, z>>16)<<16
		})
	case k.bits == 16:
		d := floatKind(k)
		c.ternary(s, k, k, func(x, y, z uint64) uint64 { return fmaNarrow(d, x, y, z) })
	case k.bits == 64:
		c.ternary(s, k, k, func(x, y, z uint64) uint64 {
			return math.Float64bits(math.FMA(math.Float64frombits(x), math.Float64frombits(y), math.Float64frombits(z)))
		})
	default:
		c.ternary(s, k, k, func(x, y, z uint64) uint64 {
			return uint64(math.Float32bits(fma32(math.Float32frombits(uint32(x)), math.Float32frombits(uint32(y)), math.Float32frombits(uint32(z)))))
		})
	}
}

func fmaNarrow(d ir.DType, x, y, z uint64) uint64 {
	value := func(v uint64) ir.Scalar { return ir.FloatScalar(ir.FloatFromBits(d, v&mask(16))) }
	r := ir.EvalScalar(ir.OpFma, d, d, []ir.Scalar{value(x), value(y), value(z)})
	return ir.FloatBits(d, r.F)
}

// fma32 rounds x*y+z once. The product is exact in f64. Where the sum, rounded to
// f64, does not lie in the middle between two f32, the exact sum lies on the same
// side of that middle, and rounding again does no harm; else the sum is rounded
// to odd, so that rounding it to f32 is the only one that counts.
func fma32(x, y, z float32) float32 {
	p := float64(x) * float64(y)
	s := p + float64(z)
	const middle, below = 1 << 28, 1<<29 - 1 // of the bits that f32 has not
	if math.Float64bits(s)&below != middle && math.Abs(s) >= leastNormal {
		return float32(s)
	}
	return float32(sumToOdd(p, float64(z)))
}

// leastNormal is the least f32 with all its digits.
const leastNormal = 0x1p-126

// sumToOdd is x+y rounded to odd: of the two floats around an inexact sum, the
// one whose last bit is set.
func sumToOdd(x, y float64) float64 {
	s := x + y
	if s-s != 0 { // infinite or NaN
		return s
	}
	t := s - x // Knuth's two-sum
	lost := (x - (s - t)) + (y - t)
	word := math.Float64bits(s)
	if lost != 0 && word&1 == 0 {
		if (lost > 0) == (s > 0) {
			word++
		} else {
			word--
		}
	}
	return math.Float64frombits(word)
}

// functions of one operand. The approximations are rounded exactly here.
var functions = map[string]func(float64) float64{
	"sqrt":  math.Sqrt,
	"rsqrt": func(x float64) float64 { return 1 / math.Sqrt(x) },
	"rcp":   func(x float64) float64 { return 1 / x },
	"ex2":   math.Exp2,
	"lg2":   math.Log2,
	"sin":   math.Sin,
	"cos":   math.Cos,
	"tanh":  math.Tanh,
}

func compileFunction(c *compiler, s *statement) {
	c.checkRounding(s)
	k := c.kind(s, 0)
	f := functions[s.op]
	if !k.float() || k.pair {
		c.fail("no %s of this type", s.op)
	}
	if s.has("ftz") {
		f = func(x float64) float64 { return flushed(functions[s.op](flushed(x))) }
	}
	c.unary(s, k, k, func(x uint64) uint64 { return toBits(k, f(fromBits(k, x))) })
}

// flushed is x, or a 0 of its sign where it is subnormal as f32.
func flushed(x float64) float64 {
	if math.Abs(x) < 0x1p-126 {
		return math.Copysign(0, x)
	}
	return x
}

// floatRelations by name; those that end with u hold for NaN too.
var floatRelations = map[string]func(a, b float64) bool{
	"eq":  func(a, b float64) bool { return a == b },
	"ne":  func(a, b float64) bool { return a < b || a > b },
	"lt":  func(a, b float64) bool { return a < b },
	"le":  func(a, b float64) bool { return a <= b },
	"gt":  func(a, b float64) bool { return a > b },
	"ge":  func(a, b float64) bool { return a >= b },
	"equ": func(a, b float64) bool { return !(a < b || a > b) },
	"neu": func(a, b float64) bool { return a != b },
	"ltu": func(a, b float64) bool { return !(a >= b) },
	"leu": func(a, b float64) bool { return !(a > b) },
	"gtu": func(a, b float64) bool { return !(a <= b) },
	"geu": func(a, b float64) bool { return !(a < b) },
	"num": func(a, b float64) bool { return a == a && b == b },
	"nan": func(a, b float64) bool { return a != a || b != b },
}

func (c *compiler) floatRelation(name string, k kind) func(x, y uint64) bool {
	if k.pair {
		c.fail("comparisons of pairs are not supported")
	}
	holds := floatRelations[name]
	if holds == nil {
		c.fail("unknown relation %q", name)
	}
	return func(x, y uint64) bool { return holds(fromBits(k, x), fromBits(k, y)) }
}

// compileConvert is cvt between all types but f8.
func compileConvert(c *compiler, s *statement) {
	from := c.kind(s, 0)
	to := c.kind(s, 1)
	if to.pair {
		c.convertPair(s, from, to)
		return
	}
	if s.has("relu") || s.has("sat") && !(from.float() && to.float()) {
		c.fail("saturation is not supported")
	}
	round := c.rounding(s, from, to)
	switch {
	case from.float() && to.float():
		c.unary(s, from, to, func(x uint64) uint64 { return toBits(to, round(fromBits(from, x))) })
	case from.float():
		c.unary(s, from, to, func(x uint64) uint64 { return floatToInt(from, to, round(fromBits(from, x))) })
	case to.float():
		c.unary(s, from, to, func(x uint64) uint64 { return intToFloat(from, to, from.extend(x)) })
	default:
		// The value is cut to the smaller type first; a signed result is extended
		// to the whole register.
		c.unary(s, from, to, func(x uint64) uint64 { return to.extend(from.extend(x)) })
	}
}

func (c *compiler) rounding(s *statement, from, to kind) func(float64) float64 {
	for _, m := range s.mods[:max(0, len(s.mods)-2)] {
		switch m {
		case "rn":
		case "sat": // to 0..1, NaN to 0
			return func(x float64) float64 {
				if !(x > 0) {
					return 0
				}
				return min(x, 1)
			}
		case "rni":
			return math.RoundToEven
		case "rzi":
			return math.Trunc
		case "rmi":
			return math.Floor
		case "rpi":
			return math.Ceil
		default:
			c.fail("modifier .%s is not supported", m)
		}
	}
	if from.float() && !to.float() {
		c.fail("a conversion to an integer without rounding")
	}
	return func(x float64) float64 { return x }
}

// floatToInt limits to the range. Of NaN it gives 0 for types of up to 32 bits
// from f32 and f16, else the upper bit alone, as PTX says.
func floatToInt(from, to kind, v float64) uint64 {
	if v != v {
		if from.bits < 64 && to.bits < 64 {
			return 0
		}
		return to.extend(1 << (to.bits - 1))
	}
	low, past := 0.0, math.Ldexp(1, to.bits)
	if to.signed() {
		past = math.Ldexp(1, to.bits-1)
		low = -past
	}
	switch {
	case v <= low:
		if to.signed() {
			return to.extend(1 << (to.bits - 1))
		}
		return 0
	case v >= past:
		if to.signed() {
			return mask(to.bits - 1)
		}
		return mask(to.bits)
	case to.signed():
		return uint64(int64(v))
	}
	return uint64(v)
}

// intToFloat rounds once: 64-bit integers go to f32 directly.
func intToFloat(from, to kind, v uint64) uint64 {
	if to.bits == 32 {
		if from.signed() {
			return uint64(math.Float32bits(float32(int64(v))))
		}
		return uint64(math.Float32bits(float32(v)))
	}
	if from.signed() {
		return toBits(to, float64(int64(v)))
	}
	return toBits(to, float64(v))
}

// convertPair is cvt.rn.f16x2.f32 d, a, b: a becomes the upper half.
func (c *compiler) convertPair(s *statement, from, to kind) {
	if from.bits != 32 || from.pair || !s.has("rn") || s.has("relu") {
		c.fail("only cvt.rn of two f32 to a pair is supported")
	}
	c.binary(s, from, kind{letter: 'u', bits: 32}, func(x, y uint64) uint64 {
		return toBits(to, fromBits(from, x))<<16 | toBits(to, fromBits(from, y))
	})
}
