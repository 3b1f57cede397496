package ir

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
)

// Scalar is one value of any dtype. I holds integers, Bool (0 or 1) and Idx;
// U64 keeps its bits in I. F holds floats, exactly representable in their
// dtype. The other field is zero.
type Scalar struct {
	I int64
	F float64
}

// IntScalar is an integer value.
func IntScalar(v int64) Scalar { return Scalar{I: v} }

// FloatScalar is a float value.
func FloatScalar(v float64) Scalar { return Scalar{F: v} }

// Scalar returns the value of a CONST.
func (u *UOp) Scalar() (s Scalar, ok bool) {
	if u.Op != OpConst {
		return Scalar{}, false
	}
	switch arg := u.Arg.(type) {
	case IntArg:
		return Scalar{I: int64(arg)}, true
	case FloatArg:
		return Scalar{F: math.Float64frombits(uint64(arg))}, true
	}
	return Scalar{}, false
}

// ConstScalar makes a CONST from a Scalar of its dtype.
func (a *Arena) ConstScalar(dtype DType, s Scalar) *UOp {
	if dtype.IsFloat() {
		return a.Const(dtype, s.F)
	}
	return a.ConstInt(dtype, s.I)
}

// EvalScalar computes an elementwise op on values: the one definition of what
// the op table's meanings are, used for constant folding and by interpreters.
// dtype is the result's, src that of the value sources (for WHERE the arms').
// A float result is rounded once to its dtype. EXP2, LOG2, SIN and RSQRT are
// the correctly rounded float64 library values rounded to dtype, one of the
// values that the table allows. Idx arithmetic wraps at 64 bits here: whoever
// folds an Idx expression checks for overflow first.
func EvalScalar(op Op, dtype, src DType, args []Scalar) Scalar {
	switch op {
	case OpWhere:
		if args[0].I != 0 {
			return args[1]
		}
		return args[2]
	case OpCast:
		return castScalar(dtype, src, args[0])
	case OpBitcast:
		return bitcastScalar(dtype, src, args[0])
	case OpRng:
		return Scalar{I: int64(Threefry(uint32(args[0].I), uint32(args[1].I)))}
	}
	if src.IsFloat() {
		return evalFloat(op, dtype, args)
	}
	x, y := args[0].I, int64(0)
	if len(args) > 1 {
		y = args[1].I
	}
	return Scalar{I: WrapInt(dtype, evalInt(op, src, x, y))}
}

// log2 is math.Log2 without its cancellation: that function takes 1+r apart into
// (1/2+r/2) * 2, whose logarithms, nearly -1 and 1, leave few digits of log2(1+r).
func log2(x float64) float64 {
	if x < 0.75 || x > 1.5 {
		return math.Log2(x)
	}
	const log2eLow = 2.035527374093103311e-17 // log2(e) - float64(log2(e))
	natural := math.Log(x)
	return math.FMA(natural, math.Log2E, natural*log2eLow)
}

// evalFloat evaluates arithmetic on float sources. Sums, products, quotients
// and square roots rounded to float64 first are still correctly rounded in a
// format of at most 25 bits (53 >= 2*25+2), so only FMA needs care.
func evalFloat(op Op, dtype DType, args []Scalar) Scalar {
	x, y := args[0].F, 0.0
	if len(args) > 1 {
		y = args[1].F
	}
	var v float64
	switch op {
	case OpCmpLt:
		return Scalar{I: int64(boolWord(x < y))}
	case OpCmpEq:
		return Scalar{I: int64(boolWord(x == y))}
	case OpAdd:
		v = x + y
	case OpSub:
		v = x - y
	case OpMul:
		v = x * y
	case OpNeg:
		v = -x
	case OpFDiv:
		v = x / y
	case OpRecip:
		v = 1 / x
	case OpSqrt:
		v = math.Sqrt(x)
	case OpRsqrt:
		v = 1 / math.Sqrt(x)
	case OpExp2:
		v = math.Exp2(x)
	case OpLog2:
		v = log2(x)
	case OpSin:
		v = math.Sin(x)
	case OpFma:
		v = fmaOdd(dtype, x, y, args[2].F)
	case OpMin:
		v = min(x, y)
	case OpMax:
		v = max(x, y)
	case OpFloor:
		v = math.Floor(x)
	case OpTrunc:
		v = math.Trunc(x)
	case OpRound:
		v = math.RoundToEven(x)
	case OpAbs:
		v = math.Abs(x)
	default:
		panic(fmt.Sprintf("ir: EvalScalar: %s has no meaning on %s", op, dtype))
	}
	return Scalar{F: RoundFloat(dtype, v)}
}

// fmaOdd is x*y+z so that rounding to dtype rounds once. For the formats
// below F64 the product is exact in float64 and the sum is rounded to odd.
func fmaOdd(dtype DType, x, y, z float64) float64 {
	if dtype == F64 {
		return math.FMA(x, y, z)
	}
	p := x * y
	s := p + z
	if math.IsInf(s, 0) || math.IsNaN(s) {
		return s
	}
	t := s - p // Knuth's two-sum: err is exact
	err := (p - (s - t)) + (z - t)
	word := math.Float64bits(s)
	if err == 0 || word&1 == 1 {
		return s
	}
	if (err > 0) == (s > 0) {
		return math.Float64frombits(word + 1)
	}
	return math.Float64frombits(word - 1)
}

// evalInt evaluates arithmetic on integers, Bool and Idx of dtype d; the
// caller wraps the result.
func evalInt(op Op, d DType, x, y int64) int64 {
	switch op {
	case OpAdd:
		if d == Bool {
			return x | y
		}
		return x + y
	case OpSub:
		return x - y
	case OpMul:
		return x * y
	case OpNeg:
		return -x
	case OpFloorDiv:
		if d == U64 {
			if y == 0 {
				return 0
			}
			return int64(uint64(x) / uint64(y))
		}
		return FloorDiv(x, y)
	case OpFloorMod:
		if d == U64 {
			if y == 0 {
				return 0
			}
			return int64(uint64(x) % uint64(y))
		}
		return FloorMod(x, y)
	case OpMin:
		if lessInt(d, y, x) {
			return y
		}
		return x
	case OpMax:
		if lessInt(d, x, y) {
			return y
		}
		return x
	case OpCmpLt:
		return int64(boolWord(lessInt(d, x, y)))
	case OpCmpEq:
		return int64(boolWord(x == y))
	case OpAnd:
		return x & y
	case OpOr:
		return x | y
	case OpXor:
		return x ^ y
	case OpNot:
		if d == Bool {
			return 1 - x
		}
		return ^x
	case OpAbs:
		if d != U64 && x < 0 {
			return -x
		}
		return x
	}
	return evalBits(op, d, x, y)
}

// evalBits evaluates the ops that depend on the width of d.
func evalBits(op Op, d DType, x, y int64) int64 {
	width := intBits(d)
	switch op {
	case OpShl:
		if uint64(y) >= uint64(width) {
			return 0
		}
		return x << uint(y)
	case OpShr:
		if d == U64 {
			if uint64(y) >= 64 {
				return 0
			}
			return int64(uint64(x) >> uint(y))
		}
		if uint64(y) >= uint64(width) {
			return x >> 63
		}
		return x >> uint(y)
	case OpPopc:
		return int64(bits.OnesCount64(uint64(x) & widthMask(width)))
	case OpClz:
		return int64(bits.LeadingZeros64(uint64(x)&widthMask(width)) - (64 - width))
	case OpMulHi:
		return mulHi(d, x, y)
	}
	panic(fmt.Sprintf("ir: EvalScalar: %s has no meaning on %s", op, d))
}

// mulHi is the upper half of the double-width product.
func mulHi(d DType, x, y int64) int64 {
	width := intBits(d)
	if width < 64 {
		if d.IsSigned() {
			return x * y >> uint(width)
		}
		return int64(uint64(x) * uint64(y) >> uint(width))
	}
	hi, _ := bits.Mul64(uint64(x), uint64(y))
	if d.IsSigned() {
		// An operand read as x + 2^64 adds the other one to the high word.
		if x < 0 {
			hi -= uint64(y)
		}
		if y < 0 {
			hi -= uint64(x)
		}
	}
	return int64(hi)
}

func lessInt(d DType, x, y int64) bool {
	if d == U64 {
		return uint64(x) < uint64(y)
	}
	return x < y
}

// intBits is the width in bits that bit operations on d see; Idx counts 64.
func intBits(d DType) int {
	if d == Idx {
		return 64
	}
	return d.Bits()
}

func widthMask(width int) uint64 { return ^uint64(0) >> uint(64-width) }

// castScalar is CAST from src to dtype.
func castScalar(dtype, src DType, x Scalar) Scalar {
	switch {
	case dtype == src:
		return x
	case src.IsFloat() && dtype.IsFloat():
		return Scalar{F: RoundFloat(dtype, x.F)}
	case src.IsFloat() && dtype == Bool:
		return Scalar{I: int64(boolWord(x.F != 0))}
	case src.IsFloat():
		return Scalar{I: saturate(dtype, x.F)}
	case dtype.IsFloat():
		return Scalar{F: intToFloat(dtype, src, x.I)}
	}
	return Scalar{I: WrapInt(dtype, x.I)}
}

// saturate truncates v into the range of an integer dtype; NaN gives 0.
func saturate(dtype DType, v float64) int64 {
	if v != v {
		return 0
	}
	v = math.Trunc(v)
	if dtype == U64 {
		switch {
		case v <= 0:
			return 0
		case v >= 1<<64:
			return -1
		}
		return int64(uint64(v))
	}
	lo, hi := dtype.IntRange()
	switch {
	case v <= float64(lo):
		return lo
	case v >= float64(hi): // float64(MaxInt64) is 2^63, past the range
		return hi
	}
	return int64(v)
}

// intToFloat rounds once, whatever the sizes.
func intToFloat(dtype, src DType, x int64) float64 {
	unsigned := src == U64 && x < 0
	if !unsigned && x > -1<<53 && x < 1<<53 {
		return RoundFloat(dtype, float64(x))
	}
	value := new(big.Float).SetInt64(x)
	if unsigned {
		value.SetUint64(uint64(x))
	}
	if dtype == F64 {
		v, _ := value.Float64()
		return v
	}
	// To odd in 53 bits: truncate, then set the last bit when inexact.
	odd := new(big.Float).SetMode(big.ToZero).SetPrec(53).Set(value)
	v, _ := odd.Float64()
	if odd.Cmp(value) != 0 {
		v = math.Float64frombits(math.Float64bits(v) | 1)
	}
	return RoundFloat(dtype, v)
}

// bitcastScalar keeps the bits. NaN payloads pass through float64 and come
// back quiet.
func bitcastScalar(dtype, src DType, x Scalar) Scalar {
	word := uint64(x.I)
	if src.IsFloat() {
		word = FloatBits(src, x.F)
	}
	if dtype.IsFloat() {
		return Scalar{F: FloatFromBits(dtype, word)}
	}
	return Scalar{I: WrapInt(dtype, int64(word))}
}

// Threefry is RNG: Threefry-2x32 with 20 rounds (Salmon et al., "Parallel
// random numbers: as easy as 1, 2, 3", 2011), key (seed, 0), counter
// (counter, 0), first word.
func Threefry(seed, counter uint32) uint32 {
	rotations := [8]int{13, 15, 26, 6, 17, 29, 16, 24}
	key := [3]uint32{seed, 0, 0x1BD11BDA ^ seed}
	x0, x1 := counter+key[0], key[1]
	for round := range 20 {
		x0 += x1
		x1 = bits.RotateLeft32(x1, rotations[round%8]) ^ x0
		if round%4 == 3 {
			i := uint32(round/4 + 1)
			x0 += key[i%3]
			x1 += key[(i+1)%3] + i
		}
	}
	return x0
}
