package ir

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/x448/float16"
)

// EncodeTable makes the little-endian bytes of a TABLE from values of a dtype.
func EncodeTable(dtype DType, values []float64) string {
	out := make([]byte, 0, len(values)*dtype.Size())
	for _, v := range values {
		out = appendScalar(out, dtype, v)
	}
	return string(out)
}

func appendScalar(out []byte, dtype DType, v float64) []byte {
	switch dtype {
	case F64:
		return binary.LittleEndian.AppendUint64(out, math.Float64bits(v))
	case F32:
		return binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(v)))
	case F16:
		return binary.LittleEndian.AppendUint16(out, float16.Fromfloat32(float32(RoundFloat(F16, v))).Bits())
	case BF16:
		return binary.LittleEndian.AppendUint16(out, uint16(math.Float32bits(float32(RoundFloat(BF16, v)))>>16))
	}
	bits := uint64(WrapInt(dtype, int64(v)))
	switch dtype.Size() {
	case 1:
		return append(out, byte(bits))
	case 2:
		return binary.LittleEndian.AppendUint16(out, uint16(bits))
	case 4:
		return binary.LittleEndian.AppendUint32(out, uint32(bits))
	case 8:
		return binary.LittleEndian.AppendUint64(out, bits)
	}
	panic(fmt.Sprintf("ir: EncodeTable of %s", dtype))
}

// DecodeTable is element i of a TABLE's bytes.
func DecodeTable(dtype DType, data string, i int) Scalar {
	size := dtype.Size()
	var bits uint64
	for k := range size {
		bits |= uint64(data[i*size+k]) << (8 * k)
	}
	switch dtype {
	case F64:
		return FloatScalar(math.Float64frombits(bits))
	case F32:
		return FloatScalar(float64(math.Float32frombits(uint32(bits))))
	case F16:
		return FloatScalar(float64(float16.Frombits(uint16(bits)).Float32()))
	case BF16:
		return FloatScalar(float64(math.Float32frombits(uint32(bits) << 16)))
	}
	return IntScalar(WrapInt(dtype, int64(bits)))
}

// ConstOf is a whole number as a Scalar of a dtype.
func ConstOf(dtype DType, v int64) Scalar {
	if dtype.IsFloat() {
		return FloatScalar(RoundFloat(dtype, float64(v)))
	}
	return IntScalar(WrapInt(dtype, v))
}

// ReduceIdentity is the value that a plain reduce of nothing gives: 0 for add,
// 1 for mul, the least or largest value of the dtype for max and min (an
// infinity for floats).
func ReduceIdentity(op Op, dtype DType) Scalar {
	switch op {
	case OpAdd:
		return ConstOf(dtype, 0)
	case OpMul:
		return ConstOf(dtype, 1)
	case OpMax:
		if dtype.IsFloat() {
			return FloatScalar(math.Inf(-1))
		}
		return IntScalar(leastInt(dtype))
	case OpMin:
		if dtype.IsFloat() {
			return FloatScalar(math.Inf(1))
		}
		return IntScalar(largestInt(dtype))
	}
	panic(fmt.Sprintf("ir: %s is no plain reduce", op))
}

func leastInt(dtype DType) int64 {
	switch {
	case dtype == Bool || !dtype.IsSigned():
		return 0
	case dtype == Idx:
		return math.MinInt64
	}
	return math.MinInt64 >> (64 - dtype.Bits())
}

func largestInt(dtype DType) int64 {
	switch {
	case dtype == Bool:
		return 1
	case dtype == Idx:
		return math.MaxInt64
	case dtype == U64:
		return -1 // all bits set
	case dtype.IsSigned():
		return math.MaxInt64 >> (64 - dtype.Bits())
	}
	return 1<<dtype.Bits() - 1
}
