package gpu

import (
	"tgc/ir"
	"tgc/ir/program"
)

// Printer is a language for GPUs: it prints selected instructions. A method
// prints what it needs and gives the operand that has the result; a literal
// result prints nothing.
type Printer interface {
	// Simplify asks for what a compiler after the printer would do itself: masks
	// of bits that are 0 left out, cheaper byte permutes.
	Simplify() bool

	modulePrinter
	variablePrinter
	wordPrinter
	arithmeticPrinter
	castPrinter
	memoryPrinter
	flowPrinter
}

// modulePrinter prints what is around the instructions.
type modulePrinter interface {
	// Scalar is parameter i, of 64 bits, as a variable.
	Scalar(i int, t Type) Operand
	// Buffer and Table are addresses of a parameter and of constant bytes.
	Buffer(i int) string
	Table(i int, p *program.Param) string
	Comment(text string)
	// Text puts the module together around the body.
	Text(k *Kernel) string
}

// variablePrinter prints variables and moves.
type variablePrinter interface {
	Declare(t Type) Operand
	// Array makes n variables that are an array's elements.
	Array(t Type, n int64) []Operand
	// Use is o as an operand of an instruction of type t, Hold o in a variable of
	// that type. Integers are extended by their own sign, or cut.
	Use(o Operand, t Type) Operand
	Hold(o Operand, t Type) Operand
	// Variable is o where an instruction takes no literal.
	Variable(o Operand, t Type) Operand
	// Copy makes a new variable with the value of another, Move assigns one.
	Copy(o Operand) Operand
	Move(to, from Operand)
}

// wordPrinter prints arithmetic on packed words.
type wordPrinter interface {
	// Word is an operator of words; a shift's count is a literal. Its result may
	// be an expression, of which Named makes a variable.
	Word(op ir.Op, x ...Operand) Operand
	Named(o Operand) Operand
	// Permute picks four bytes out of eight, one per nibble of the selector.
	Permute(x, y Operand, selector int) Operand
	PermuteBy(x, y, selector Operand) Operand
	// Unpack takes the element that starts at a bit out of a word, extended.
	Unpack(w Operand, d ir.DType, at int) Operand
	// Extend extends the low bits of an integer as the lane of a narrow dtype.
	Extend(d ir.DType, o Operand) Operand
	// Half is arithmetic on two f16 in a word.
	Half(op ir.Op, x []Operand) Operand
	// Dot4 adds the product of four bytes, signed or not, to acc.
	Dot4(signed [2]bool, x, y, acc Operand) Operand
	// InsertBytes puts the low bytes of o into a word at a byte offset; what the
	// word holds so far lies below. The result may be an expression.
	InsertBytes(into, o Operand, at, width int) Operand
}

// arithmeticPrinter prints one lane of an elementwise op. Arithmetic and Logic
// report false for an op that the machine lacks.
type arithmeticPrinter interface {
	Logic(op ir.Op, x []Operand) (Operand, bool)
	Arithmetic(op ir.Op, n Number, x []Operand) (Operand, bool)
	// Guess is RECIP or RSQRT of f32 to about a unit in the last place; what is subnormal counts as 0.
	Guess(op ir.Op, x Operand) Operand
	Compare(op ir.Op, n Number, x, y Operand) Operand
	NotZero(n Number, x Operand) Operand
	// Choose is p ? x : y; p is no literal.
	Choose(p, x, y Operand, t Type) Operand
	// Extreme is MIN or MAX of floats: NaN if either is, -0 below +0.
	Extreme(op ir.Op, n Number, x, y Operand) Operand
	// Shift shifts by any count: those past the width give 0 or the sign.
	Shift(op ir.Op, n Number, x, count Operand) Operand
	// CountBits is POPC or CLZ in the width of the dtype.
	CountBits(op ir.Op, n Number, x Operand) Operand
	// Divide is FLOORDIV, else FLOORMOD, by what is no literal power of two; by 0
	// it gives 0.
	Divide(isDiv bool, n Number, x, y Operand) Operand
}

// castPrinter prints conversions.
type castPrinter interface {
	// ByteToFloat is byte at of a word plus 2^23 as f32, less off.
	ByteToFloat(w Operand, at int, off float64) Operand
	// SubHalves takes f16 or bf16 off others, two in a word. It is asked of printers that simplify only.
	SubHalves(d ir.DType, x, less Operand) Operand
	HalfToFloat(w Operand, upper bool) Operand
	// RoundHalf rounds an f32 to f16 or bf16, RoundHalves two into a word.
	RoundHalf(d ir.DType, x Operand) Operand
	RoundHalves(d ir.DType, low, high Operand) Operand
	// ToFloat converts an integer or float to f32 or f64, rounded to even.
	ToFloat(n Number, t Type, x Operand) Operand
	// FloatToInt truncates and saturates to an integer; NaN gives 0.
	FloatToInt(n Number, d ir.DType, x Operand) Operand
	// Bitcast keeps the bits of a variable, in one of type t.
	Bitcast(o Operand, t Type) Operand
	// Join makes a 64-bit variable of two words, Split two words of one.
	Join(t Type, low, high Operand) Operand
	Split(o Operand) []Operand
	// WordOf is a lane of 32 bits, or of fewer, as a word for memory.
	WordOf(o Operand) Operand
}

// memoryPrinter prints accesses. Those of several elements are aligned to all of
// them.
type memoryPrinter interface {
	// Scaled is a.Base plus size times an index, Reachable an address whose offset
	// an access can have.
	Scaled(a *Address, space program.Space, index Operand, size int64) Operand
	Reachable(a *Address, space program.Space) *Address
	// Typed reports an access that can have any type, not words only.
	Typed(access Access) bool
	Load(access Access, t Type, n int, a *Address) []Operand
	// LoadNarrow loads an element of 1 or 2 bytes, extended; LoadBytes the low
	// bytes of a word.
	LoadNarrow(access Access, d ir.DType, a *Address) Operand
	LoadBytes(access Access, width int, a *Address) Operand
	Store(access Access, t Type, a *Address, x []Operand)
	StoreNarrow(access Access, d ir.DType, a *Address, o Operand)
	// StoreBytes stores bytes of a word from a byte offset on.
	StoreBytes(access Access, width int, a *Address, w Operand, at int)
	Guarded(in *program.Instr, access Access)
	Prefetch(a *Address)
	// CopyAsync starts a copy of 4, 8 or 16 bytes from global to shared memory.
	CopyAsync(to, from *Address, bytes int64)
	Atomic(in *program.Instr, a *Address, t Type, value Operand) Operand
}

// flowPrinter prints control flow and what threads do together.
type flowPrinter interface {
	Loop(in *program.Instr) error
	Branch(in *program.Instr) error
	Grid(in *program.Instr) error
	// Do prints an instruction without a result: barriers, waits, fences.
	Do(in *program.Instr)
	// Thread is the thread's index along an axis: x, y or z.
	Thread(axis byte) Operand
	// Peer is what the base of shared memory is in a block of the cluster.
	Peer(base string, block Operand) Operand
	// Shuffle is the variable of the lane that differs by the bits of another.
	Shuffle(o Operand, t Type, other Operand) Operand
	Mma(in *program.Instr, shape string)
	// GroupFence orders what was done to accumulators before the products of a warpgroup that follow; values are
	// what they have, none where a product only writes them.
	GroupFence(values []Operand)
	// GroupMma starts a product of a warpgroup, into accumulators to which it adds or, as if they were 0, does not.
	GroupMma(in *program.Instr, accumulators []Operand, adds bool)
	// GroupWait waits for all products of warpgroups; accumulators are those of each.
	GroupWait(accumulators [][]Operand)
}
