package opt

import (
	"slices"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/ir/program/dep"
)

// sinkEpilogues moves what follows the shuffles of several results after the arithmetic
// that waits for none, divisions last, where enough weights are loaded after a division. A thread's rows are lowered one after the other, each with its sum over the
// lanes of a warp and what is computed from it, and a division has a branch that
// assemblers move no load across: the weights of the rows after it come a trip to memory
// later.
func sinkEpilogues(p *program.Program) {
	(&epilogues{weightsOf(p)}).block(p.Body)
}

type epilogues struct{ *weights }

func (e *epilogues) block(b *program.Block) {
	start := 0
	for i := range b.Instrs {
		in := &b.Instrs[i]
		if in.Body != nil && in.Op != program.If {
			e.block(in.Body)
		}
		if !reorders(in) {
			e.region(b.Instrs[start:i])
			start = i + 1
		}
	}
	e.region(b.Instrs[start:])
}

// reorders reports an instruction that may change its place among others: one whose
// order only operands, results and memory decide, or a store by some of the threads.
func reorders(in *program.Instr) bool {
	if in.Op == program.If {
		return len(in.Results) == 0 && storesOnly(in.Body) && (in.Else == nil || storesOnly(in.Else))
	}
	return dep.Free(in) || in.Op == program.Store
}

func storesOnly(b *program.Block) bool {
	return !slices.ContainsFunc(b.Instrs, func(in program.Instr) bool {
		return in.Op != program.Store && in.Op != program.Yield && in.Op != program.PtrAdd
	})
}

// region reorders instructions between two others that stay.
func (e *epilogues) region(instrs []program.Instr) {
	r := &epilogueRegion{memory: e.memory, class: make(map[*program.Value]int)}
	class := make([]int, len(instrs))
	divided, delayed := false, 0
	for i := range instrs {
		in := &instrs[i]
		class[i] = r.note(in)
		divided = divided || class[i] > 1 && isDivision(in)
		if divided && class[i] == 0 && e.isStreamed(in) && in.Result.Type.Bytes() >= streamBytes {
			delayed += in.Result.Type.Bytes()
		}
	}
	if delayed == 0 || delayed < e.program.Options.Of(program.Late) || slices.ContainsFunc(r.loaded, func(v *program.Value) bool { return slices.Contains(r.stored, v) }) {
		return
	}
	out := make([]program.Instr, 0, len(instrs))
	for c := 0; c <= r.most; c++ {
		for i := range instrs {
			if class[i] == c {
				out = append(out, instrs[i])
			}
		}
	}
	copy(instrs, out)
}

// epilogueRegion knows what of a region waits for shuffles, and which memory it
// uses.
type epilogueRegion struct {
	memory         *dep.Memory
	class          map[*program.Value]int // of what waits for a shuffle
	loaded, stored []*program.Value       // what pointers lead into
	most           int
}

// note is the class of an instruction: 0 before all shuffles, then 1 and the
// number of divisions on its way from one.
func (r *epilogueRegion) note(in *program.Instr) int {
	class := 0
	if in.Op == program.ShuffleLane {
		class = 1
	}
	for b := range in.Blocks() {
		for k := range b.Instrs {
			class = max(class, r.note(&b.Instrs[k]))
		}
	}
	for _, a := range in.Args {
		class = max(class, r.class[a])
	}
	if class > 0 && isDivision(in) {
		class++
	}
	read, written := dep.Pointers(in)
	for _, p := range read {
		r.loaded = append(r.loaded, r.memory.Root(p))
	}
	for _, p := range written {
		r.stored = append(r.stored, r.memory.Root(p))
	}
	if in.Result != nil && class > 0 {
		r.class[in.Result] = class
	}
	r.most = max(r.most, class)
	return class
}

// isDivision reports what is a call or a branch on the way to a correct rounding.
func isDivision(in *program.Instr) bool {
	return in.Op == program.Alu && (in.Ir == ir.OpFDiv || in.Ir == ir.OpRecip || in.Ir == ir.OpSqrt)
}
