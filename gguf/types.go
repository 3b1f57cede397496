package gguf

import (
	"fmt"
	"strings"

	"tgc/packed"
)

// Type is the storage type of a tensor, numbered as in the file.
type Type uint32

// Tensor types that Go code names. A type needs no name here: a row of package packed
// defines it. Numbers that are missing were removed from the format.
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

// TypeInfo is what a file says of a type. A tensor row is a sequence of blocks;
// plain types have blocks of one element.
type TypeInfo struct {
	Name     string
	Elements int // per block
	Bytes    int // per block
}

// otherTypes are types of the file format that the compiler does not decode: files
// that hold them open and can be inspected. All others are the rows of package
// packed.
var otherTypes = map[Type]TypeInfo{
	Q8_1: {"Q8_1", 32, 36},
	Q8_K: {"Q8_K", 256, 292},
	I8:   {"I8", 1, 1},
	I16:  {"I16", 1, 2},
	I32:  {"I32", 1, 4},
	I64:  {"I64", 1, 8},
	F64:  {"F64", 1, 8},
}

// typeTable is indexed by Type; rows without a name are undefined.
var typeTable = func() (table []TypeInfo) {
	put := func(t Type, info TypeInfo) {
		table = append(table, make([]TypeInfo, max(0, int(t)+1-len(table)))...)
		table[t] = info
	}
	for t, info := range otherTypes {
		put(t, info)
	}
	for _, f := range packed.All() {
		put(Type(f.GGUF), TypeInfo{f.Name, f.BlockElems, f.BlockBytes})
	}
	return table
}()

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
