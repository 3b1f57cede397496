package ir

import (
	"fmt"
	"math"
)

// DType is a scalar element type. Quantised GGUF types are formats of buffers
// (package packed), not dtypes.
type DType uint8

// The dtypes. Idx is a mathematical integer: index arithmetic that never
// wraps, turned into a 32 or 64-bit integer when a kernel becomes a program.
const (
	Void DType = iota // no value: STORE, SINK, PAR
	Bool
	I8
	I16
	I32
	I64
	U8
	U16
	U32
	U64
	F8E4M3
	F16
	BF16
	F32
	F64
	Idx
	F8E5M2 // last: the numbers of dtypes take part in hashes and orders
	numDTypes
)

type dtypeInfo struct {
	name   string
	size   int // bytes; 0 for Void and Idx, which are never stored
	float  bool
	signed bool
	mant   int // explicit mantissa bits of a float
}

var dtypeTable = [numDTypes]dtypeInfo{
	Void:   {name: "void"},
	Bool:   {name: "bool", size: 1},
	I8:     {name: "i8", size: 1, signed: true},
	I16:    {name: "i16", size: 2, signed: true},
	I32:    {name: "i32", size: 4, signed: true},
	I64:    {name: "i64", size: 8, signed: true},
	U8:     {name: "u8", size: 1},
	U16:    {name: "u16", size: 2},
	U32:    {name: "u32", size: 4},
	U64:    {name: "u64", size: 8},
	F8E4M3: {name: "f8e4m3", size: 1, float: true, signed: true, mant: 3},
	F16:    {name: "f16", size: 2, float: true, signed: true, mant: 10},
	BF16:   {name: "bf16", size: 2, float: true, signed: true, mant: 7},
	F32:    {name: "f32", size: 4, float: true, signed: true, mant: 23},
	F64:    {name: "f64", size: 8, float: true, signed: true, mant: 52},
	Idx:    {name: "idx", signed: true},
	F8E5M2: {name: "f8e5m2", size: 1, float: true, signed: true, mant: 2},
}

// String returns the dtype's name in the text form.
func (d DType) String() string {
	if d < numDTypes {
		return dtypeTable[d].name
	}
	return fmt.Sprintf("dtype(%d)", uint8(d))
}

// Size is the number of bytes of one stored element; 0 for Void and Idx.
func (d DType) Size() int { return dtypeTable[d].size }

// Bits is the width in bits of one stored element; Bool counts 1.
func (d DType) Bits() int {
	if d == Bool {
		return 1
	}
	return dtypeTable[d].size * 8
}

// IsFloat reports a floating-point dtype.
func (d DType) IsFloat() bool { return dtypeTable[d].float }

// IsSigned reports a dtype with negative values, floats and Idx included.
func (d DType) IsSigned() bool { return dtypeTable[d].signed }

// IsInt reports a fixed-width integer dtype (neither Bool nor Idx).
func (d DType) IsInt() bool { return d >= I8 && d <= U64 }

// MantissaBits is the number of explicit mantissa bits of a float dtype.
func (d DType) MantissaBits() int { return dtypeTable[d].mant }

// ParseDType is the inverse of String.
func ParseDType(name string) (DType, error) {
	for d := range numDTypes {
		if dtypeTable[d].name == name {
			return d, nil
		}
	}
	return Void, fmt.Errorf("ir: unknown dtype %q", name)
}

// IntRange is the range of an integer dtype or Bool as int64. U64 gives
// 0..MaxInt64 and Idx the whole of int64: bounds read the ends of int64 as
// infinite.
func (d DType) IntRange() (lo, hi int64) {
	switch {
	case d == Bool:
		return 0, 1
	case d == U64:
		return 0, math.MaxInt64
	case d == I64 || d == Idx:
		return math.MinInt64, math.MaxInt64
	case d.IsInt() && d.IsSigned():
		return -1 << (d.Bits() - 1), 1<<(d.Bits()-1) - 1
	case d.IsInt():
		return 0, 1<<d.Bits() - 1
	}
	panic(fmt.Sprintf("ir: IntRange of %s", d))
}
