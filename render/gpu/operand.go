package gpu

import (
	"tgc/ir"
	"tgc/ir/program"
)

// Type is the machine type of a lane, or of a word of packed lanes.
type Type uint8

// The machine types. Integers of 1 and 2 bytes are extended to 32 bits by their
// sign; floats of those sizes are their bits.
const (
	Bool Type = iota
	Half      // 16 bits, only inside of conversions
	I32
	U32 // also packed words
	I64
	U64
	F32
	F64
	NumTypes
)

// Bits is the width of a variable of the type.
func (t Type) Bits() int {
	switch t {
	case Bool:
		return 1
	case Half:
		return 16
	case I64, U64, F64:
		return 64
	}
	return 32
}

// Float reports f32 and f64.
func (t Type) Float() bool { return t == F32 || t == F64 }

// Unsigned is the type of the same width without a sign.
func (t Type) Unsigned() Type {
	switch t {
	case I32:
		return U32
	case I64:
		return U64
	}
	return t
}

// Operand is a variable (a register of PTX, a variable of CUDA C) or, without a
// name, a literal of these bits.
type Operand struct {
	Name string
	Bits uint64
	Type Type
	// Op is the outermost operator of an expression that has no variable yet
	// (Printer.Word).
	Op ir.Op
}

// Literal reports an operand without a variable.
func (o Operand) Literal() bool { return o.Name == "" }

// Same reports the same variable, or literals of the same bits.
func (o Operand) Same(x Operand) bool { return o.Name == x.Name && o.Bits == x.Bits }

// Number is how an instruction computes: narrow integers in 32 bits, indices
// that fit as well.
type Number struct {
	DType ir.DType
	Type  Type
	// Positive says that no lane of the operands is negative.
	Positive bool
	// Exact says that the result does not wrap in the variable, Narrow that it does not in its
	// dtype either.
	Exact, Narrow bool
}

// Word is arithmetic on packed words.
var Word = Number{DType: ir.U32, Type: U32}

// word is a literal word.
func word(bits uint64) Operand { return Operand{Bits: bits, Type: U32} }

// IsSignExtended reports elements whose sign fills the variable that holds them.
func IsSignExtended(d ir.DType) bool { return d.IsSigned() && !d.IsFloat() }

// IsPacked reports a vector of narrow elements.
func IsPacked(t program.Type) bool {
	return !t.Ptr && t.Lanes > 1 && t.Elem != ir.Bool && t.Elem.Size() <= 2
}

// wordsOf is the number of words of a packed vector.
func wordsOf(t program.Type) int { return (t.Lanes*t.Elem.Size() + 3) / 4 }

// mask has the bits of one element.
func mask(d ir.DType) uint64 { return 1<<d.Bits() - 1 }

// repeat is a pattern of one element's bits in every lane of a word.
func repeat(d ir.DType, bits uint64) Operand {
	bits &= mask(d)
	if d.Size() == 1 {
		bits |= bits << 8
	}
	return word(bits | bits<<16)
}

// extended is the value of an element's low bits, as a variable holds it.
func extended(d ir.DType, bits uint64) Operand {
	if shift := 64 - d.Bits(); IsSignExtended(d) {
		return Operand{Bits: uint64(int64(bits<<shift) >> shift), Type: I32}
	}
	return word(bits & mask(d))
}
