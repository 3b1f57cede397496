package llvm

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"

	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"

	"tgc/ir"
	"tgc/ir/program"
)

// Gathers from a short table of floats: a register's lanes are permuted by the lowest bits of each offset, whatever its
// others are. A register of 64 bytes holds 16 entries; of two of 32 bytes the fourth bit chooses one.

// permutes are the instructions by the bytes of a register.
var permutes = map[int]string{32: "llvm.x86.avx2.permps", 64: "llvm.x86.avx512.permvar.sf.512"}

// mostPermuted is the number of entries that one register of 64 bytes holds, or two of 32.
const mostPermuted = 16

// floatTable is the constant table of at most 16 floats that a gather of whole registers reads, if that is what it reads.
func (r *renderer) floatTable(in *program.Instr) (table []float32, ok bool) {
	t := in.Result.Type
	if !r.isX86() || permutes[r.desc.VectorBytes] == "" || t.Elem != ir.F32 || in.Args[1].Type.Elem != ir.I32 || t.Lanes*t.Elem.Size()%r.desc.VectorBytes != 0 {
		return nil, false
	}
	text, ok := r.tableOf(in.Args[0])
	if !ok || len(text) > mostPermuted*ir.F32.Size() {
		return nil, false
	}
	for bytes := range slices.Chunk([]byte(text), ir.F32.Size()) {
		table = append(table, math.Float32frombits(binary.LittleEndian.Uint32(bytes)))
	}
	return table, true
}

// permute looks all lanes up in a table.
func (r *renderer) permute(table []float32, offsets *program.Value) value.Value {
	index, width := r.value(r.withoutMask(offsets, len(table))), r.desc.VectorBytes/4
	var parts []value.Value
	for first := 0; first < lanesOf(index); first += width {
		parts = append(parts, r.permutePart(table, r.slice(index, first, width)))
	}
	return r.joinAll(parts)
}

// withoutMask is what a mask of offsets is of, where it keeps the bits that name an entry of a power of two: others are not looked
// at, or name the same entry again.
func (r *renderer) withoutMask(offsets *program.Value, entries int) *program.Value {
	in := r.made[offsets.ID]
	if in == nil || in.Op != program.Alu || in.Ir != ir.OpAnd {
		return offsets
	}
	used := int64(entries - 1)
	lanes, ok := r.constLanes(in.Args[1])
	if !ok || bits.OnesCount(uint(entries)) != 1 || slices.ContainsFunc(lanes, func(m int64) bool { return m&used != used }) {
		return offsets
	}
	return in.Args[0]
}

func (r *renderer) permutePart(table []float32, index value.Value) value.Value {
	n := lanesOf(index)
	t := types.NewVector(uint64(n), types.Float)
	entry := func(of []float32) value.Value {
		return vectorLiteral(t, func(i int) string { return word(types.Float, 0, float64(of[i%len(of)])) })
	}
	look := func(of []float32) value.Value {
		return r.intrinsic(permutes[r.desc.VectorBytes], t, entry(of), index)
	}
	if len(table) <= n {
		return look(table)
	}
	upper := r.at.NewShl(index, intOf(index.Type(), 31-int64(bits.Len(uint(n-1))))) // the bit that chooses is the sign
	return r.at.NewSelect(r.at.NewICmp(enum.IPredSLT, upper, intOf0(index.Type())), look(table[n:]), look(table[:n]))
}
