package opt

import (
	"tgc/ir/program"
	"tgc/ir/program/dep"
)

// leastAdvanced are registers for such loads in any case: the residuals of a
// thread's rows, at the end of a block, would wait for a trip to L2 otherwise.
const leastAdvanced = 4

// advanceLoads issues what a block loads after its first barrier together with
// what it loads before it: weights of a norm while its row is summed up, the
// residual of each row. Weights of the rows are loaded early already (hoistearlyloads.go).
func advanceLoads(p *program.Program) {
	w := weightsOf(p)
	block := w.body
	place, barrier, held := advancePlace(block)
	if barrier < 0 {
		return
	}
	moved := dep.NewSlice(block, dep.Pure)
	for i := range place {
		moved.In[i] = true
	}
	left := max(p.Options.Of(program.Advance)-held, leastAdvanced)
	for i := barrier + 1; i < len(block.Instrs); i++ {
		in := &block.Instrs[i]
		if in.Op != program.Load || !w.isActivation(in.Args[0]) || in.Result.Type.Registers() > left || !moved.Reaches(in) {
			continue
		}
		left -= in.Result.Type.Registers()
		moved.In[i] = true
		moved.Take(in)
	}
	var out []program.Instr
	for _, first := range []bool{true, false} {
		for i := range block.Instrs {
			if moved.In[i] == first {
				out = append(out, block.Instrs[i])
			}
		}
	}
	block.Instrs = out
}

// advancePlace looks for the first barrier after the wait, -1 if there is none. Loads
// move to place, after the last load before it; held is how many registers those take.
func advancePlace(b *program.Block) (place, barrier, held int) {
	waited := false
	for i := range b.Instrs {
		in := &b.Instrs[i]
		if in.Op == program.Load {
			held += in.Result.Type.Registers()
		}
		switch {
		case in.Op == program.WaitGrid:
			waited, place = true, i+1
		case waited && in.Op == program.Load:
			place = i + 1
		case waited && in.Op == program.Barrier:
			return place, i, held
		}
	}
	return 0, -1, 0
}
