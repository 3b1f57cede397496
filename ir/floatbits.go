package ir

import (
	"fmt"
	"math"

	"github.com/x448/float16"
)

// FloatBits is the storage of v, a value of the float dtype, in the low bits.
func FloatBits(dtype DType, v float64) uint64 {
	switch dtype {
	case F64:
		return math.Float64bits(v)
	case F32:
		return uint64(math.Float32bits(float32(v)))
	case F16:
		return uint64(float16.Fromfloat32(float32(v)).Bits())
	case BF16:
		return uint64(math.Float32bits(float32(v)) >> 16)
	case F8E4M3, F8E5M2:
		return uint64(float8s[dtype].bits(v))
	}
	panic(fmt.Sprintf("ir: FloatBits of %s", dtype))
}

// FloatFromBits is the value that the low bits of word store.
func FloatFromBits(dtype DType, word uint64) float64 {
	switch dtype {
	case F64:
		return math.Float64frombits(word)
	case F32:
		return float64(math.Float32frombits(uint32(word)))
	case F16:
		return float64(float16.Frombits(uint16(word)).Float32())
	case BF16:
		return float64(math.Float32frombits(uint32(word) << 16))
	case F8E4M3, F8E5M2:
		return float8s[dtype].value(uint8(word))
	}
	panic(fmt.Sprintf("ir: FloatFromBits of %s", dtype))
}

// float8 is a format of OCP's FP8 with subnormals. In F8E4M3 ("fn") s.1111.111 is NaN,
// there are no infinities, and what rounds past 448 is NaN. F8E5M2 is the upper half of
// F16: infinities, three bits of NaN, and what rounds past 57344 is infinite.
type float8 struct {
	mant, bias int
	largest    float64
	past       float64 // what numbers past the largest become
}

var float8s = map[DType]float8{
	F8E4M3: {mant: 3, bias: 7, largest: 448, past: math.NaN()},
	F8E5M2: {mant: 2, bias: 15, largest: 57344, past: math.Inf(1)},
}

// value is the number that a byte stores.
func (f float8) value(b uint8) float64 {
	exp, mant := int(b&0x7f)>>f.mant, float64(b&(1<<f.mant-1))
	size := math.Ldexp(mant, 1-f.bias-f.mant)
	if exp > 0 {
		size = math.Ldexp(mant+float64(int(1)<<f.mant), exp-f.bias-f.mant)
	}
	if size > f.largest { // the bytes past the largest number
		size = math.NaN()
		if b&0x7f == f.infinity() {
			size = math.Inf(1)
		}
	}
	if b&0x80 != 0 {
		return -size
	}
	return size
}

// infinity is the byte of infinity: with NaN's, which no number rounds to, where there is none.
func (f float8) infinity() uint8 {
	if math.IsNaN(f.past) {
		return 0x80
	}
	return 0x7f >> f.mant << f.mant
}

// round rounds to the nearest number of the format, ties to even.
func (f float8) round(v float64) float64 {
	size := math.Abs(v)
	if size == 0 || v != v {
		return v
	}
	rounded := size
	if !math.IsInf(size, 0) {
		_, exp := math.Frexp(size)               // size = frac * 2^exp, frac in [0.5, 1)
		quantum := max(exp-1, 1-f.bias) - f.mant // exponent of the last mantissa bit
		rounded = math.Ldexp(math.RoundToEven(math.Ldexp(size, -quantum)), quantum)
	}
	if rounded > f.largest {
		rounded = f.past
	}
	return math.Copysign(rounded, v)
}

// bits is the byte that stores v, rounded.
func (f float8) bits(v float64) uint8 {
	var sign uint8
	if math.Signbit(v) {
		sign = 0x80
	}
	size := math.Abs(f.round(v))
	switch {
	case size != size:
		return sign | 0x7f
	case math.IsInf(size, 0):
		return sign | f.infinity()
	case size < math.Ldexp(1, 1-f.bias): // subnormal
		return sign | uint8(math.Ldexp(size, f.bias-1+f.mant))
	}
	frac, exp := math.Frexp(size)
	return sign | uint8(exp-1+f.bias)<<f.mant | uint8(math.Ldexp(2*frac-1, f.mant))
}
