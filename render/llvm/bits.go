package llvm

import (
	"math/bits"
	"slices"

	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/program"
)

// Tests of the bits of one word, a bit in each lane: of 32 lanes they would be four registers of words,
// whose comparisons are packed to bytes in a dozen instructions. The byte of a word in which a lane's bit
// lies, and its bit there, are one shuffle and one comparison of bytes. With masks (AVX-512) words are two.

// bitTest is a word and the bit of each lane.
type bitTest struct {
	word value.Value
	bits []int64
}

// rememberBits notes that a value is a word of which each lane keeps one bit.
func (r *renderer) rememberBits(in *program.Instr) {
	elem := in.Result.Type.Elem
	if in.Ir != ir.OpAnd || !r.isX86() || r.desc.VectorBytes >= 64 || elem.Size() < 2 || elem.IsSigned() || in.Result.Type.Lanes < 8 {
		return
	}
	for i, word := range in.Args {
		lanes, ok := r.constLanes(in.Args[1-i])
		made := r.made[word]
		if ok && made != nil && made.Op == program.Broadcast && !slices.ContainsFunc(lanes, func(n int64) bool { return bits.OnesCount64(uint64(n)) != 1 }) {
			r.bits[in.Result] = bitTest{r.value(made.Args[0]), lists.Map(lanes, func(n int64) int64 { return int64(bits.TrailingZeros64(uint64(n))) })}
		}
	}
}

// testBits is 0 < x of a value that keeps one bit in each lane; nil for anything else.
func (r *renderer) testBits(in *program.Instr) value.Value {
	if in.Ir != ir.OpCmpLt {
		return nil
	}
	test, ok := r.bits[in.Args[1]]
	if zero, known := r.constInt(in.Args[0]); !ok || !known || zero != 0 {
		return nil
	}
	n := len(test.bits)
	size := in.Args[1].Type.Elem.Size()
	word := r.bitcast(test.word, types.NewVector(uint64(size), types.I8))
	bytes := r.shuffleLanes(word, word, lists.Map(test.bits, func(bit int64) int { return int(bit / 8) }))
	mask := vectorLiteral(types.NewVector(uint64(n), types.I8), func(i int) string { return elementLiteral(ir.U8, 1<<(test.bits[i]%8), 0) })
	return r.at.NewICmp(enum.IPredNE, r.at.NewAnd(bytes, mask), intOf(bytes.Type(), 0))
}
