package gguf

import (
	"fmt"
	"strings"
)

// Type is the storage type of a tensor, numbered as in the file.
type Type uint32

// Tensor types. Numbers that are missing here were removed from the format.
const (
	F32     Type = 0
	F16     Type = 1
	Q4_0    Type = 2
	Q4_1    Type = 3
	Q5_0    Type = 6
	Q5_1    Type = 7
	Q8_0    Type = 8
	Q8_1    Type = 9
	Q2_K    Type = 10
	Q3_K    Type = 11
	Q4_K    Type = 12
	Q5_K    Type = 13
	Q6_K    Type = 14
	Q8_K    Type = 15
	IQ2_XXS Type = 16
	IQ2_XS  Type = 17
	IQ3_XXS Type = 18
	IQ1_S   Type = 19
	IQ4_NL  Type = 20
	IQ3_S   Type = 21
	IQ2_S   Type = 22
	IQ4_XS  Type = 23
	I8      Type = 24
	I16     Type = 25
	I32     Type = 26
	I64     Type = 27
	F64     Type = 28
	IQ1_M   Type = 29
	BF16    Type = 30
	TQ1_0   Type = 34
	TQ2_0   Type = 35
	MXFP4   Type = 39
	NVFP4   Type = 40
	Q1_0    Type = 41
	Q2_0    Type = 42
)

// TypeInfo is one row of the type table. A tensor row is a sequence of blocks;
// plain types have blocks of one element.
type TypeInfo struct {
	Name     string
	Elements int // per block
	Bytes    int // per block
}

// typeTable is indexed by Type; rows without a name are undefined. Bytes add
// up the fields of a block: Q6_K is 128 low nibble bytes + 64 high bit bytes +
// 16 scales + an fp16 scale of scales = 210.
var typeTable = [...]TypeInfo{
	F32:     {"F32", 1, 4},
	F16:     {"F16", 1, 2},
	Q4_0:    {"Q4_0", 32, 18},
	Q4_1:    {"Q4_1", 32, 20},
	Q5_0:    {"Q5_0", 32, 22},
	Q5_1:    {"Q5_1", 32, 24},
	Q8_0:    {"Q8_0", 32, 34},
	Q8_1:    {"Q8_1", 32, 36},
	Q2_K:    {"Q2_K", 256, 84},
	Q3_K:    {"Q3_K", 256, 110},
	Q4_K:    {"Q4_K", 256, 144},
	Q5_K:    {"Q5_K", 256, 176},
	Q6_K:    {"Q6_K", 256, 210},
	Q8_K:    {"Q8_K", 256, 292},
	IQ2_XXS: {"IQ2_XXS", 256, 66},
	IQ2_XS:  {"IQ2_XS", 256, 74},
	IQ3_XXS: {"IQ3_XXS", 256, 98},
	IQ1_S:   {"IQ1_S", 256, 50},
	IQ4_NL:  {"IQ4_NL", 32, 18},
	IQ3_S:   {"IQ3_S", 256, 110},
	IQ2_S:   {"IQ2_S", 256, 82},
	IQ4_XS:  {"IQ4_XS", 256, 136},
	I8:      {"I8", 1, 1},
	I16:     {"I16", 1, 2},
	I32:     {"I32", 1, 4},
	I64:     {"I64", 1, 8},
	F64:     {"F64", 1, 8},
	IQ1_M:   {"IQ1_M", 256, 56},
	BF16:    {"BF16", 1, 2},
	TQ1_0:   {"TQ1_0", 256, 54},
	TQ2_0:   {"TQ2_0", 256, 66},
	MXFP4:   {"MXFP4", 32, 17},
	NVFP4:   {"NVFP4", 64, 36},
	Q1_0:    {"Q1_0", 128, 18},
	Q2_0:    {"Q2_0", 64, 18},
}

// Types lists every defined tensor type in ascending order.
func Types() []Type {
	var list []Type
	for i := range typeTable {
		if t := Type(i); t.Valid() {
			list = append(list, t)
		}
	}
	return list
}

// TypeByName finds a type by its name, ignoring case.
func TypeByName(name string) (Type, bool) {
	for i := range typeTable {
		if typeTable[i].Name != "" && strings.EqualFold(typeTable[i].Name, name) {
			return Type(i), true
		}
	}
	return 0, false
}

// Valid reports whether the type is defined.
func (t Type) Valid() bool {
	return uint64(t) < uint64(len(typeTable)) && typeTable[t].Name != ""
}

// Info returns the type's row of the table; the zero TypeInfo for an undefined
// type.
func (t Type) Info() TypeInfo {
	if !t.Valid() {
		return TypeInfo{}
	}
	return typeTable[t]
}

// String returns the type's name, as in "Q6_K".
func (t Type) String() string {
	if !t.Valid() {
		return fmt.Sprintf("type(%d)", uint32(t))
	}
	return typeTable[t].Name
}

// RowBytes returns the bytes of a row of n elements. n must be a multiple of
// the block length.
func (t Type) RowBytes(n int) (int, error) {
	info := t.Info()
	switch {
	case info.Elements == 0:
		return 0, fmt.Errorf("tensor type %d is not defined", uint32(t))
	case n < 0 || n%info.Elements != 0:
		return 0, fmt.Errorf("row length is %d elements, want a multiple of %d (%s block)", n, info.Elements, t)
	case n/info.Elements > maxInt/info.Bytes:
		return 0, fmt.Errorf("row length is %d elements: its size in bytes overflows", n)
	}
	return n / info.Elements * info.Bytes, nil
}
