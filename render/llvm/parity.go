package llvm

import (
	"math/bits"

	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"

	"tgc/ir"
	"tgc/ir/program"
)

// Parities of bytes: the lowest bit of the number of ones, at a place of its own. That of a byte is that of
// the exclusive or of its nibbles, which names an entry of a table.

// parity is (popc(x) & 1) << n of bytes; nil for anything else.
func (r *renderer) parity(in *program.Instr) value.Value {
	n := int64(0)
	if in.Ir == ir.OpShl {
		by, known := r.constInt(in.Args[1])
		if in = r.made[in.Args[0].ID]; in == nil || !known || by < 0 || by > 7 {
			return nil
		}
		n = by
	}
	if in.Op != program.Alu || in.Ir != ir.OpAnd || in.Result.Type.Elem != ir.U8 || in.Result.Type.Lanes < 4 || !r.isX86() {
		return nil
	}
	one, known := r.constInt(in.Args[1])
	count := r.made[in.Args[0].ID]
	if !known || one != 1 || count == nil || count.Op != program.Alu || count.Ir != ir.OpPopc {
		return nil
	}
	x := r.value(count.Args[0])
	table := make([]byte, 16)
	for i := range table {
		table[i] = byte(bits.OnesCount(uint(i)) & 1 << n)
	}
	nibbles := r.at.NewXor(x, r.at.NewLShr(x, intOf(x.Type(), 4)))
	return r.lookup(string(table), r.at.NewAnd(nibbles, intOf(x.Type(), 15)), x.Type().(*types.VectorType))
}
