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

// bitsOf is a word of whose bits a value keeps one in each lane, and which.
func (r *renderer) bitsOf(v *program.Value) (word value.Value, bit []int, ok bool) {
	in := r.made[v.ID]
	if in == nil || in.Op != program.Alu || in.Ir != ir.OpAnd {
		return nil, nil, false
	}
	for i, arg := range in.Args {
		lanes, constant := r.constLanes(in.Args[1-i])
		made := r.made[arg.ID]
		if constant && made != nil && made.Op == program.Broadcast && !slices.ContainsFunc(lanes, func(n int64) bool { return bits.OnesCount64(uint64(n)) != 1 }) {
			return r.value(made.Args[0]), lists.Map(lanes, func(n int64) int { return bits.TrailingZeros64(uint64(n)) }), true
		}
	}
	return nil, nil, false
}

// testBits is 0 < x of a value that keeps one bit of a word in each lane; nil for anything else.
func (r *renderer) testBits(in *program.Instr) value.Value {
	if in.Ir != ir.OpCmpLt || !r.isX86() || r.desc.VectorBytes >= 64 {
		return nil
	}
	t := in.Args[1].Type
	if t.Elem.Size() < 2 || t.Elem.IsSigned() || t.Lanes < 8 {
		return nil
	}
	zero, known := r.constInt(in.Args[0])
	word, bit, ok := r.bitsOf(in.Args[1])
	if !ok || !known || zero != 0 {
		return nil
	}
	word = r.bitcast(word, types.NewVector(uint64(t.Elem.Size()), types.I8))
	bytes := r.shuffleLanes(word, word, lists.Map(bit, func(n int) int { return n / 8 }))
	mask := vectorLiteral(types.NewVector(uint64(t.Lanes), types.I8), func(i int) string { return elementLiteral(ir.U8, 1<<(bit[i]%8), 0) })
	return r.at.NewICmp(enum.IPredNE, r.at.NewAnd(bytes, mask), intOf(bytes.Type(), 0))
}
