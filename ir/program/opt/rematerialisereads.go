package opt

import (
	"slices"

	"tgc/internal/lists"
	"tgc/ir/program"
)

// rematerialiseReads moves reads of activations into loops over rows. What such a loop
// reads from shared memory, or from a buffer that nothing writes meanwhile, at the same
// place in every iteration, is read before the loop and stays in registers. Where these
// leave too few for weights loaded ahead (rotateloops.go), the loop reads it anew, each read
// for all rows of the iteration at once: 64 floats a thread against 16.
func rematerialiseReads(p *program.Program) {
	w := weightsOf(p)
	for i := 0; i < len(w.body.Instrs); i++ {
		loop := &w.body.Instrs[i]
		if loop.Op != program.For || len(loop.Results) > 0 || !w.known.runs(loop) || !w.crowded(w.streamed(loop.Body)) {
			continue
		}
		reads := w.activationsOf(loop)
		if len(reads) == 0 {
			continue
		}
		moved := lists.Set(lists.Map(reads, func(in program.Instr) *program.Value { return in.Result }))
		loop.Body.Instrs = w.orderByReads(slices.Concat(reads, loop.Body.Instrs), moved)
		w.body.Instrs = slices.DeleteFunc(w.body.Instrs, func(in program.Instr) bool { return in.Op == program.Load && moved[in.Result] })
		i = -1 // from the start: the registers are others now
	}
}

// writesShared reports a block that may change what lies in shared memory.
func writesShared(b *program.Block) bool {
	found := false
	b.Each(func(in *program.Instr) {
		switch in.Op {
		case program.Barrier:
			found = true
		case program.Store, program.Scatter, program.CopyAsync:
			found = found || in.Args[0].Type.Space == program.SharedSpace
		}
	})
	return found
}

// activationsOf are the loads of activations in the grid loop's body that only the loop
// uses.
func (w *weights) activationsOf(loop *program.Instr) (reads []program.Instr) {
	elsewhere, shared := make(map[*program.Value]bool), !writesShared(loop.Body)
	for i := range w.body.Instrs {
		if in := &w.body.Instrs[i]; in.Body != loop.Body {
			in.EachUse(func(v *program.Value) { elsewhere[v] = true })
		}
	}
	for i := range w.body.Instrs {
		in := &w.body.Instrs[i]
		if in.Op == program.Load && !elsewhere[in.Result] && in.Result.Type.Registers() >= leastRead &&
			(w.isActivation(in.Args[0]) || shared && in.Args[0].Type.Space == program.SharedSpace) {
			reads = append(reads, *in)
		}
	}
	return reads
}
