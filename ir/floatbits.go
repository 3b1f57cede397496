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
	case F8E4M3:
		return uint64(f8Bits(v))
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
	case F8E4M3:
		return f8Value(uint8(word))
	}
	panic(fmt.Sprintf("ir: FloatFromBits of %s", dtype))
}

// F8E4M3 (OCP FP8, "fn"): bias 7, 3 mantissa bits, no infinities; s.1111.111
// is NaN; the largest finite value is 448. Values that round past it are NaN.

func f8Value(b uint8) float64 {
	sign := 1.0
	if b&0x80 != 0 {
		sign = -1
	}
	exp, mant := int(b>>3&15), float64(b&7)
	switch {
	case exp == 15 && b&7 == 7:
		return math.NaN()
	case exp == 0:
		return sign * math.Ldexp(mant, -9)
	}
	return sign * math.Ldexp(8+mant, exp-10)
}

// roundF8 rounds to the nearest F8E4M3 value, ties to even.
func roundF8(v float64) float64 {
	size := math.Abs(v)
	if size == 0 || v != v {
		return v
	}
	if math.IsInf(size, 0) {
		return math.NaN()
	}
	_, exp := math.Frexp(size) // size = frac * 2^exp, frac in [0.5, 1)
	quantum := max(exp-4, -9)  // exponent of the last mantissa bit
	rounded := math.Ldexp(math.RoundToEven(math.Ldexp(size, -quantum)), quantum)
	if rounded > 448 {
		return math.NaN()
	}
	return math.Copysign(rounded, v)
}

func f8Bits(v float64) uint8 {
	var sign uint8
	if math.Signbit(v) {
		sign = 0x80
	}
	size := math.Abs(roundF8(v))
	switch {
	case size != size:
		return sign | 0x7f
	case size < 1.0/64: // subnormal: below 2^-6
		return sign | uint8(math.Ldexp(size, 9))
	}
	frac, exp := math.Frexp(size)
	return sign | uint8(exp+6)<<3 | uint8(frac*16)&7
}
