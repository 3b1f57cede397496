package opt

import (
	"tgc/ir"
	"tgc/ir/program"
)

// guardLoads loads what a choice by equality takes only where it is taken: the new row of a
// cache, which is one of those that attention visits, instead of old ones that every thread
// has in registers. A load that is hardly ever done costs an instruction; a choice costs
// one for each element.
func guardLoads(p *program.Program) {
	g := &guarding{weights: weightsOf(p), makers: make(map[*program.Value]*program.Instr), uses: make(map[*program.Value]int), chosen: make(map[*program.Value]int), written: make(map[*program.Value]int)}
	at := 0
	g.body.Each(func(in *program.Instr) {
		at++
		if in.Result != nil {
			g.makers[in.Result] = in
		}
		for _, v := range in.Args {
			g.uses[v]++
		}
		if load := g.choice(in); load != nil {
			g.chosen[load]++
		}
		if in.Op == program.Store || in.Op == program.Scatter {
			g.written[g.memory.Root(in.Args[0])] = at
		}
	})
	gone := make(map[*program.Value]bool)
	at = 0
	g.body.Each(func(in *program.Instr) {
		at++
		if in.Op == program.Load && g.chosen[in.Result] > 0 && g.chosen[in.Result] == g.uses[in.Result] && g.stays(in, at) {
			gone[in.Result] = true
		}
	})
	loads := make(map[*program.Value]program.Instr)
	for v := range gone {
		loads[v] = *g.makers[v]
	}
	g.body.Each(func(in *program.Instr) {
		if v := g.choice(in); v != nil && gone[v] {
			load := loads[v]
			*in = program.Instr{
				Op: program.Guarded, Result: in.Result, Align: load.Align, Cache: load.Cache,
				Args: []*program.Value{g.makers[in.Args[0]].Args[0], load.Args[0], in.Args[2]},
			}
		}
	})
	dropLoads(g.body, gone)
}

// guarding is what guardLoads knows of a program.
type guarding struct {
	*weights
	makers  map[*program.Value]*program.Instr
	uses    map[*program.Value]int
	chosen  map[*program.Value]int // of the uses, those by a choice
	written map[*program.Value]int // the last instruction that writes an array, in the order of the text
}

// choice is the value that an instruction takes where two integers are equal; nil of
// another instruction. Its lanes are chosen together.
func (g *guarding) choice(in *program.Instr) *program.Value {
	if in.Op != program.Alu || in.Ir != ir.OpWhere || in.Result.Type.Lanes < 2 {
		return nil
	}
	all := g.makers[in.Args[0]]
	if all == nil || all.Op != program.Broadcast {
		return nil
	}
	if equal := g.makers[all.Args[0]]; equal == nil || equal.Op != program.Alu || equal.Ir != ir.OpCmpEq {
		return nil
	}
	if load := g.makers[in.Args[1]]; load == nil || load.Op != program.Load {
		return nil
	}
	return in.Args[1]
}

// stays reports a load, at such a place in the text, that finds the same later on.
func (g *guarding) stays(in *program.Instr, at int) bool {
	if in.Args[0].Type.Space == program.SharedSpace {
		top := false // no loop comes back to what is written before it
		for i := range g.body.Instrs {
			top = top || g.body.Instrs[i].Result == in.Result
		}
		return top && g.written[g.memory.Root(in.Args[0])] < at
	}
	return g.isActivation(in.Args[0])
}

// dropLoads leaves out loads of a block and of those in it.
func dropLoads(b *program.Block, gone map[*program.Value]bool) {
	if len(gone) == 0 {
		return
	}
	kept := b.Instrs[:0]
	for _, in := range b.Instrs {
		if in.Op == program.Load && gone[in.Result] {
			continue
		}
		for _, inner := range []*program.Block{in.Body, in.Else} {
			if inner != nil {
				dropLoads(inner, gone)
			}
		}
		kept = append(kept, in)
	}
	b.Instrs = kept
}
