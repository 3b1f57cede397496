package opt

import (
	"tgc/ir"
	"tgc/ir/program"
)

// dropUnread takes out arithmetic on vectors and bytes that nothing reads any more.
func dropUnread(p *program.Program) {
	dropUnreadIn(p.Body, p.Readers(), isVector)
	renumber(p)
}

func dropUnreadIn(b *program.Block, readers map[*program.Value]int, pure func(in *program.Instr) bool) {
	kept := len(b.Instrs)
	for i := len(b.Instrs) - 1; i >= 0; i-- {
		in := b.Instrs[i]
		for inner := range in.Blocks() {
			dropUnreadIn(inner, readers, pure)
		}
		if in.Result != nil && readers[in.Result] == 0 && pure(&in) {
			for _, a := range in.Args {
				readers[a]--
			}
			continue
		}
		kept--
		b.Instrs[kept] = in
	}
	b.Instrs = b.Instrs[kept:]
}

// isVector reports arithmetic on vectors and bytes.
func isVector(in *program.Instr) bool {
	computed := in.Op == program.Alu || in.Op == program.Shuffle || in.Op == program.Broadcast
	return computed && (in.Result.Type.Lanes > 1 || in.Result.Type.Elem == ir.U8)
}
