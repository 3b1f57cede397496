package opt

import (
	"slices"

	"tgc/ir/program"
	"tgc/ir/program/dep"
)

// gatherFills moves fills of shared arrays in front of an earlier barrier, where they
// need nothing that comes after it, if weights are used between some. Copies of a kernel's
// results that each have stages of their own, such as those of several tokens, fill them
// one after the other, with what they are for in between; side by side, one barrier is
// enough, and the arithmetic of all copies stands in one piece that can be ordered.
// Without such copies fills stay where they are: OLMoE in int8 decodes 5 % slower with all
// of them in front of the first barrier. A kernel that streams no weights has all of them
// there: attention waits once for the sums and the values of its warps.
func gatherFills(p *program.Program) {
	w := weightsOf(p)
	g := &fillGatherer{weights: w, block: w.body, loaded: make(map[*program.Value]bool)}
	for i := range g.block.Instrs {
		if in := &g.block.Instrs[i]; w.isStreamed(in) {
			g.loaded[in.Result] = true
		}
	}
	if !w.streams() { // no weights wait, or are held, for what fills need
		g.run()
		return
	}
	before := slices.Clone(g.block.Instrs)
	if g.behindWeights = true; !g.run() {
		return
	}
	g.block.Instrs, g.behindWeights = before, false // there are copies: all of their fills
	g.run()
}

// run gathers what it can and reports whether it moved anything.
func (g *fillGatherer) run() (any bool) {
	last := -1
	for at := 0; at < len(g.block.Instrs); at++ {
		in := &g.block.Instrs[at]
		if in.Op == program.Barrier {
			if moved := g.gather(last, at); moved > 0 {
				any = true
				at += moved
				g.sink(last+1, at)
			}
		}
		if dep.Of(in)&dep.Synchronises != 0 {
			last = at
		}
	}
	return any
}

type fillGatherer struct {
	*weights
	block  *program.Block
	loaded map[*program.Value]bool // weights

	behindWeights bool                    // only fills behind the first use of a weight
	unsettled     map[*program.Value]bool // arrays that are written between two barriers, or later
}

// gather moves what can be moved in front of a barrier and gives the number of
// instructions that were. last is the barrier before it.
func (g *fillGatherer) gather(last, barrier int) int {
	b := g.block
	moved := dep.NewSlice(b, g.movable)
	used := make(map[*program.Value]bool) // arrays that are accessed in front of a fill, or stay
	for i := range barrier {
		moved.In[i] = true
		arrays, _ := g.fill(&b.Instrs[i])
		for _, a := range arrays {
			used[a] = true
		}
	}
	weights := false // have been used behind the barrier
	g.unsettled = make(map[*program.Value]bool)
	end := barrier + 1
	for ; end < len(b.Instrs) && (dep.Of(&b.Instrs[end])&dep.Synchronises == 0 || b.Instrs[end].Op == program.Barrier); end++ {
	}
	for i := last + 1; i < end; i++ {
		g.written(&b.Instrs[i])
	}
	for i := barrier + 1; i < end; i++ {
		in := &b.Instrs[i]
		arrays, isFill := g.fill(in)
		for _, a := range arrays {
			isFill = isFill && !used[a]
		}
		weights = weights || g.usesWeights(in)
		if isFill && (weights || !g.behindWeights) && g.reaches(moved, in) {
			g.take(moved, in, i)
			continue
		}
		for _, a := range arrays {
			used[a] = true
		}
	}
	return g.reorder(moved, barrier)
}

// usesWeights reports an instruction on a loaded weight.
func (g *fillGatherer) usesWeights(in *program.Instr) bool {
	return slices.ContainsFunc(in.Args, func(v *program.Value) bool { return g.loaded[v] })
}

// written notes the arrays that an instruction writes, with its blocks.
func (g *fillGatherer) written(in *program.Instr) {
	_, written := dep.Pointers(in)
	for _, p := range written {
		if p.Type.Space == program.SharedSpace {
			g.unsettled[g.memory.Root(p)] = true
		}
	}
	for b := range in.Blocks() {
		for i := range b.Instrs {
			g.written(&b.Instrs[i])
		}
	}
}

// sink moves the fills between two barriers behind what else is there, if that does not
// read what they write.
func (g *fillGatherer) sink(from, barrier int) {
	instrs := g.block.Instrs[from:barrier]
	read := make(map[*program.Value]bool)
	for i := range instrs {
		if arrays, isFill := g.fill(&instrs[i]); !isFill {
			for _, a := range arrays {
				read[a] = true
			}
		}
	}
	var rest, fills []program.Instr
	for i := range instrs {
		arrays, isFill := g.fill(&instrs[i])
		for _, a := range arrays {
			isFill = isFill && !read[a]
		}
		if isFill {
			fills = append(fills, instrs[i])
		} else {
			rest = append(rest, instrs[i])
		}
	}
	copy(instrs, append(rest, fills...))
}

// movable reports an instruction that may be moved in front of a barrier: what it
// reads, if anything, no thread of the block writes there or later.
func (g *fillGatherer) movable(in *program.Instr) bool {
	if !dep.Free(in) {
		return false
	}
	pointer := dep.Pointer(in)
	if pointer == nil {
		return dep.Of(in)&dep.Reads == 0
	}
	if pointer.Type.Space == program.SharedSpace {
		return !g.unsettled[g.memory.Root(pointer)]
	}
	param := g.memory.Param(pointer)
	return param != nil && !param.Write
}

// fill lists the shared arrays that an instruction accesses, with those of its blocks,
// and reports one that writes to them and does nothing else: a store, or one under a
// condition.
func (g *fillGatherer) fill(in *program.Instr) (arrays []*program.Value, ok bool) {
	ok = in.Op == program.Store || in.Op == program.If
	stores := 0
	var walk func(in *program.Instr)
	walk = func(in *program.Instr) {
		read, written := dep.Pointers(in)
		for _, p := range slices.Concat(read, written) {
			if p.Type.Space == program.SharedSpace {
				arrays = append(arrays, g.memory.Root(p))
			}
		}
		switch {
		case in.Op == program.Store:
			ok = ok && dep.Pointer(in).Type.Space == program.SharedSpace
			stores++
		case in.Op != program.If && in.Op != program.Yield && !dep.Pure(in):
			ok = false
		}
		for b := range in.Blocks() {
			for i := range b.Instrs {
				walk(&b.Instrs[i])
			}
		}
	}
	walk(in)
	return arrays, ok && stores > 0 && len(in.Results) == 0
}

// reaches reports that all that an instruction and its blocks use can be moved.
func (g *fillGatherer) reaches(s *dep.Slice, in *program.Instr) bool {
	reached := true
	in.EachUse(func(v *program.Value) {
		reached = reached && s.Reaches(&program.Instr{Args: []*program.Value{v}})
	})
	return reached
}

func (g *fillGatherer) take(s *dep.Slice, in *program.Instr, i int) {
	s.In[i] = true
	in.EachUse(func(v *program.Value) { s.Take(&program.Instr{Args: []*program.Value{v}}) })
}

// reorder puts what was taken in front of the barrier.
func (g *fillGatherer) reorder(s *dep.Slice, barrier int) (moved int) {
	instrs := g.block.Instrs
	var front, rest []program.Instr
	for i := barrier; i < len(instrs); i++ {
		if i > barrier && s.In[i] {
			front = append(front, instrs[i])
		} else {
			rest = append(rest, instrs[i])
		}
	}
	g.block.Instrs = append(append(instrs[:barrier:barrier], front...), rest...)
	return len(front)
}
