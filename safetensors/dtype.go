package safetensors

import (
	"fmt"
	"math"
)

// DType is the storage type of a tensor, as the file spells it.
type DType string

// Storage types. BOOL is one byte of 0 or 1.
const (
	F64    DType = "F64"
	F32    DType = "F32"
	F16    DType = "F16"
	BF16   DType = "BF16"
	F8E5M2 DType = "F8_E5M2"
	F8E4M3 DType = "F8_E4M3"
	I64    DType = "I64"
	I32    DType = "I32"
	I16    DType = "I16"
	I8     DType = "I8"
	U64    DType = "U64"
	U32    DType = "U32"
	U16    DType = "U16"
	U8     DType = "U8"
	BOOL   DType = "BOOL"
)

// sizes is bytes per element.
var sizes = map[DType]int{
	F64: 8, I64: 8, U64: 8,
	F32: 4, I32: 4, U32: 4,
	F16: 2, BF16: 2, I16: 2, U16: 2,
	F8E5M2: 1, F8E4M3: 1, I8: 1, U8: 1, BOOL: 1,
}

// Size is the bytes per element; 0 for a type that does not exist.
func (d DType) Size() int { return sizes[d] }

// byteSize is the size of a tensor in bytes.
func byteSize(d DType, shape []int) (int, error) {
	size := d.Size()
	if size == 0 {
		return 0, fmt.Errorf("dtype is %s, which does not exist", quote(string(d)))
	}
	for _, n := range shape {
		if n == 0 {
			return 0, nil
		}
	}
	for i, n := range shape {
		if n < 0 {
			return 0, fmt.Errorf("extent %d is %d, want at least 0", i, n)
		}
		if n > math.MaxInt/size {
			return 0, fmt.Errorf("shape is %v: its size in bytes overflows", shape)
		}
		size *= n
	}
	return size, nil
}
