package opt

import (
	"slices"

	"tgc/ir"
	"tgc/ir/program"
)

// epilogueWeights is how many bytes of weights a thread loads after a division, from
// which divisions wait for the sums of all rows. H200: gate and up of LLaMA 3.2 1B,
// with 144 bytes, 8.45 -> 8.16 us in int8 and 8.75 -> 8.36 in i16; of Qwen3 1.7B, with
// 64, 6.24 -> 6.49, for more registers are in use.
const epilogueWeights = 96

// sinkEpilogues moves what follows the shuffles of several results behind the arithmetic
// that waits for none, divisions last, where weights are loaded behind a division. A
// thread's rows are lowered one after the other, each with its sum over the lanes of
// a warp and what is made of it, and a division has a branch that assemblers move no
// load across: the weights of the rows behind it come a trip to memory later.
func sinkEpilogues(p *program.Program, bytes int) {
	f := &lateFolder{least: bytes, base: make(map[*program.Value]*program.Value)}
	f.trace(p.Body)
	f.block(p.Body)
}

type lateFolder struct {
	least int                               // bytes of weights behind a division
	base  map[*program.Value]*program.Value // what pointers lead into
}

func (f *lateFolder) trace(b *program.Block) {
	if b == nil {
		return
	}
	for i := range b.Instrs {
		in := &b.Instrs[i]
		if in.Op == program.PtrAdd {
			f.base[in.Result] = f.root(in.Args[0])
		}
		f.trace(in.Body)
		f.trace(in.Else)
	}
}

func (f *lateFolder) root(p *program.Value) *program.Value {
	if b := f.base[p]; b != nil {
		return b
	}
	return p
}

func (f *lateFolder) block(b *program.Block) {
	start := 0
	for i := range b.Instrs {
		in := &b.Instrs[i]
		if in.Body != nil && in.Op != program.If {
			f.block(in.Body)
		}
		if !reorders(in) {
			f.region(b.Instrs[start:i])
			start = i + 1
		}
	}
	f.region(b.Instrs[start:])
}

// reorders reports an instruction that may change its place among others: one whose
// order only operands, results and memory decide.
func reorders(in *program.Instr) bool {
	switch in.Op {
	case program.Alu, program.Const, program.ConstLanes, program.Iota, program.Broadcast, program.Extract, program.Insert, program.Shuffle, program.Concat, program.FoldLanes, program.Dot4, program.ThreadIndex, program.ShuffleLane,
		program.PtrAdd, program.Load, program.Gather, program.Guarded, program.Store:
		return true
	case program.If: // of a store by some of the threads
		return len(in.Results) == 0 && storesOnly(in.Body) && (in.Else == nil || storesOnly(in.Else))
	}
	return false
}

func storesOnly(b *program.Block) bool {
	return !slices.ContainsFunc(b.Instrs, func(in program.Instr) bool {
		return in.Op != program.Store && in.Op != program.Yield && in.Op != program.PtrAdd
	})
}

// region reorders instructions between two others that stay.
func (f *lateFolder) region(instrs []program.Instr) {
	r := &foldingRegion{lateFolder: f, late: make(map[*program.Value]int)}
	class := make([]int, len(instrs))
	divided, delayed := false, 0
	for i := range instrs {
		in := &instrs[i]
		class[i] = r.note(in)
		divided = divided || class[i] > 1 && isDivision(in)
		if divided && class[i] == 0 && in.Op == program.Load && in.Cache == program.CacheStream {
			delayed += in.Result.Type.Lanes * in.Result.Type.Elem.Size()
		}
	}
	if delayed == 0 || delayed < f.least || slices.ContainsFunc(r.loaded, func(v *program.Value) bool { return slices.Contains(r.stored, v) }) {
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

// foldingRegion knows what of a region waits for shuffles, and which memory it
// uses.
type foldingRegion struct {
	*lateFolder
	late           map[*program.Value]int // classes of what waits for a shuffle
	loaded, stored []*program.Value       // bases of pointers
	most           int
}

// note is the class of an instruction: 0 before all shuffles, then 1 and the
// divisions on its way from one.
func (r *foldingRegion) note(in *program.Instr) int {
	class := 0
	if in.Op == program.ShuffleLane {
		class = 1
	}
	for _, b := range []*program.Block{in.Body, in.Else} {
		if b == nil {
			continue
		}
		for k := range b.Instrs {
			class = max(class, r.note(&b.Instrs[k]))
		}
	}
	for _, a := range in.Args {
		class = max(class, r.late[a])
	}
	if class > 0 && isDivision(in) {
		class++
	}
	switch in.Op {
	case program.Load, program.Gather:
		r.loaded = append(r.loaded, r.root(in.Args[0]))
	case program.Guarded:
		r.loaded = append(r.loaded, r.root(in.Args[1]))
	case program.Store:
		r.stored = append(r.stored, r.root(in.Args[0]))
	}
	if in.Result != nil && class > 0 {
		r.late[in.Result] = class
	}
	r.most = max(r.most, class)
	return class
}

// isDivision reports what is a call or a branch on the way to a correct rounding.
func isDivision(in *program.Instr) bool {
	return in.Op == program.Alu && (in.Ir == ir.OpFDiv || in.Ir == ir.OpRecip || in.Ir == ir.OpSqrt)
}
