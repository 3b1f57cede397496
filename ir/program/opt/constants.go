package opt

import "tgc/ir/program"

// known holds the scalar integer constants at the head of a program.
type known map[*program.Value]int64

func constants(p *program.Program) known {
	k := make(known)
	for i := range p.Body.Instrs {
		if in := &p.Body.Instrs[i]; in.Op == program.Const && in.Result.Type.Lanes == 1 && !in.Result.Type.Elem.IsFloat() {
			k[in.Result] = in.Int
		}
	}
	return k
}

// runs reports a loop of constant bounds that has an iteration.
func (k known) runs(loop *program.Instr) bool {
	lo, okLo := k[loop.Args[0]]
	hi, okHi := k[loop.Args[1]]
	return okLo && okHi && lo < hi
}
