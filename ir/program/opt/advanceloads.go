package opt

import (
	"slices"

	"tgc/ir/program"
	"tgc/ir/program/dep"
)

// leastAdvanced are registers for such loads in any case: the residuals of a
// thread's rows, at the end of a block, would wait for a trip to L2 otherwise.
const leastAdvanced = 4

// advanceLoads issues what a block loads after its first barrier together with
// what it loads before it: weights of a norm while its row is summed up, the
// residual of each row. Weights of the rows are loaded early already (hoistearlyloads.go).
// A kernel that streams no weights issues all its loads first, where their addresses are
// known: a norm and a barrier before attention reads its cache are no reason to wait for
// memory once more.
func advanceLoads(p *program.Program) {
	w := weightsOf(p)
	if !w.streams() {
		w.issueFirst(behindWait(w.body), 0, p.Options.Of(program.Advance))
		return
	}
	if place, barrier, held := advancePlace(w.body); barrier >= 0 {
		w.issueFirst(place, barrier+1, max(p.Options.Of(program.Advance)-held, leastAdvanced))
	}
}

// issueFirst moves loads behind from, which take so many registers at most, to place.
func (w *weights) issueFirst(place, from, registers int) {
	block := w.body
	moved := dep.NewSlice(block, dep.Pure)
	for i := range place {
		moved.In[i] = true
	}
	for i := max(from, place); i < len(block.Instrs); i++ {
		in := &block.Instrs[i]
		if !w.isRead(in) || in.Result.Type.Registers() > registers || !moved.Reaches(in) {
			continue
		}
		registers -= in.Result.Type.Registers()
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

// isRead reports a load of an activation.
func (w *weights) isRead(in *program.Instr) bool {
	switch in.Op {
	case program.Load:
		return w.isActivation(in.Args[0])
	case program.Guarded:
		return w.isActivation(in.Args[1])
	}
	return false
}

// behindWait is the place behind a block's wait for the grid before, its start if it has
// none.
func behindWait(b *program.Block) int {
	return 1 + slices.IndexFunc(b.Instrs, func(in program.Instr) bool { return in.Op == program.WaitGrid })
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
