package opt

import (
	"slices"

	"tgc/ir/program"
	"tgc/ir/program/dep"
)

// leastAdvanced are registers for such loads in any case: the residuals of a
// thread's rows, at the end of a block, would wait for a trip to L2 otherwise.
const leastAdvanced = 4

// leastConstant are registers for constants that are read before the wait in any case: the
// weights of a norm that a thread multiplies its points with.
const leastConstant = 8

// advanceLoads issues what a block loads after its first barrier together with
// what it loads before it: weights of a norm while its row is summed up, the
// residual of each row. Weights of the rows are loaded early already (hoistearlyloads.go).
// A kernel that streams no weights issues all its loads first, where their addresses are
// known: a norm and a barrier before attention reads its cache are no reason to wait for
// memory once more.
//
// What no kernel writes, the weights of a norm for example, is loaded before the wait for
// the grid before, ahead of the weights of rows: it is small, and needed first. Sums of
// matrix instructions take the registers for that (a prompt of 512 in BF16, H200: 40,060
// tokens a second, 37,310 with the first tiles of weights loaded early).
func advanceLoads(p *program.Program) {
	w := weightsOf(p)
	most, streams := p.Options.Of(program.Advance), w.streams()
	if at := behindWait(w.body); at > 0 && !w.multipliesMatrices() {
		room := most
		if streams {
			room = max(most-w.loaded(at), leastConstant)
		}
		w.issueFirst(0, at, room, w.isConstantActivation)
	}
	if !streams {
		w.issueFirst(behindWait(w.body), 0, most, w.isActivation)
		return
	}
	if place, barrier, held := advancePlace(w.body); barrier >= 0 {
		w.issueFirst(place, barrier+1, max(most-held, leastAdvanced), w.isActivation)
	}
}

// multipliesMatrices reports a program with matrix instructions.
func (w *weights) multipliesMatrices() (any bool) {
	w.body.Each(func(in *program.Instr) { any = any || isMatrix(in) })
	return any
}

// loaded is how many registers the loads take that stand before a place.
func (w *weights) loaded(before int) (registers int) {
	for i := range before {
		if in := &w.body.Instrs[i]; in.Op == program.Load {
			registers += in.Result.Type.Registers()
		}
	}
	return registers
}

// issueFirst moves loads behind from, which take so many registers at most, to place:
// those of buffers that take says.
func (w *weights) issueFirst(place, from, registers int, take func(buffer *program.Value) bool) {
	block := w.body
	moved := dep.NewSlice(block, dep.Pure)
	for i := range place {
		moved.In[i] = true
	}
	for i := max(from, place); i < len(block.Instrs); i++ {
		in := &block.Instrs[i]
		if !isRead(in, take) || in.Result.Type.Registers() > registers || !moved.Reaches(in) {
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

// isRead reports a load of such a buffer.
func isRead(in *program.Instr, of func(buffer *program.Value) bool) bool {
	switch in.Op {
	case program.Load:
		return of(in.Args[0])
	case program.Guarded:
		return of(in.Args[1])
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
