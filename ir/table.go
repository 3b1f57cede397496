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
