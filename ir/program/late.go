package program

import (
	"slices"

	"tgc/ir"
)

// FoldLate moves what follows the shuffles of several results behind the arithmetic
// that waits for none, divisions last, where weights are loaded behind a division. A
// thread's rows are lowered one after the other, each with its sum over the lanes of
// a warp and what is made of it, and a division has a branch that assemblers move no
// load across: the weights of the rows behind it come a trip to memory later.
func FoldLate(p *Program, bytes int) {
	f := &lateFolder{least: bytes, base: make(map[*Value]*Value)}
	f.trace(p.Body)
	f.block(p.Body)
}

type lateFolder struct {
	least int               // bytes of weights behind a division
	base  map[*Value]*Value // what pointers lead into
}

func (f *lateFolder) trace(b *Block) {
	if b == nil {
		return
	}
	for i := range b.Instrs {
		in := &b.Instrs[i]
		if in.Op == PtrAdd {
			f.base[in.Result] = f.root(in.Args[0])
		}
		f.trace(in.Body)
		f.trace(in.Else)
	}
}

func (f *lateFolder) root(p *Value) *Value {
	if b := f.base[p]; b != nil {
		return b
	}
	return p
}

func (f *lateFolder) block(b *Block) {
	start := 0
	for i := range b.Instrs {
		in := &b.Instrs[i]
		if in.Body != nil && in.Op != If {
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
func reorders(in *Instr) bool {
	switch in.Op {
	case Alu, Const, ConstLanes, Iota, Broadcast, Extract, Insert, Shuffle, Concat, FoldLanes, Dot4, ThreadIndex, ShuffleLane,
		PtrAdd, Load, Gather, Guarded, Store:
		return true
	case If: // of a store by some of the threads
		return len(in.Results) == 0 && storesOnly(in.Body) && (in.Else == nil || storesOnly(in.Else))
	}
	return false
}

func storesOnly(b *Block) bool {
	return !slices.ContainsFunc(b.Instrs, func(in Instr) bool { return in.Op != Store && in.Op != Yield && in.Op != PtrAdd })
}

// region reorders instructions between two others that stay.
func (f *lateFolder) region(instrs []Instr) {
	r := &foldingRegion{lateFolder: f, late: make(map[*Value]int)}
	class := make([]int, len(instrs))
	divided, delayed := false, 0
	for i := range instrs {
		in := &instrs[i]
		class[i] = r.note(in)
		divided = divided || class[i] > 1 && isDivision(in)
		if divided && class[i] == 0 && in.Op == Load && in.Cache == CacheStream {
			delayed += in.Result.Type.Lanes * in.Result.Type.Elem.Size()
		}
	}
	if delayed == 0 || delayed < f.least || slices.ContainsFunc(r.loaded, func(v *Value) bool { return slices.Contains(r.stored, v) }) {
		return
	}
	out := make([]Instr, 0, len(instrs))
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
	late           map[*Value]int // classes of what waits for a shuffle
	loaded, stored []*Value       // bases of pointers
	most           int
}

// note is the class of an instruction: 0 before all shuffles, then 1 and the
// divisions on its way from one.
func (r *foldingRegion) note(in *Instr) int {
	class := 0
	if in.Op == ShuffleLane {
		class = 1
	}
	for _, b := range []*Block{in.Body, in.Else} {
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
	case Load, Gather:
		r.loaded = append(r.loaded, r.root(in.Args[0]))
	case Guarded:
		r.loaded = append(r.loaded, r.root(in.Args[1]))
	case Store:
		r.stored = append(r.stored, r.root(in.Args[0]))
	}
	if in.Result != nil && class > 0 {
		r.late[in.Result] = class
	}
	r.most = max(r.most, class)
	return class
}

// isDivision reports what is a call or a branch on the way to a correct rounding.
func isDivision(in *Instr) bool {
	return in.Op == Alu && (in.Ir == ir.OpFDiv || in.Ir == ir.OpRecip || in.Ir == ir.OpSqrt)
}
