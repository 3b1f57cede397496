package opt

import (
	"slices"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/ir/program/dep"
	"tgc/target"
)

// The sums of a tile are written one after the other where each is made of sums of its own
// (of the groups of a block, of the digits of activations): the whole block of weights would
// be read for each row and token. They are independent and of the same form, so that they
// can take turns: the first operation of each, the second of each. What they share, a vector
// of weights or an activation, is then needed for some instructions only.

// turnsFrom is the number of sums of a loop from which their order matters: of fewer, what
// each needs stays in registers anyway.
const turnsFrom = 8

// dotTurnsFrom is the same of a loop with dots, each of which is a sum in a register, too. One Zen 4 core with AVX2, prompts of 128 in
// int8, tokens a second, tiles of 4 results from 8 and from 4: Q4_K_M 542 and 596, Q6_K 437 and 490, OLMoE 704 and 765.
const dotTurnsFrom = 4

// takeTurns orders the loops of a program.
func takeTurns(p *program.Program, desc *target.Desc) {
	p.Body.Each(func(in *program.Instr) {
		if in.Op == program.For {
			orderTurns(in.Body, desc)
		}
	})
}

// turns is a loop's body that is put in order.
type turns struct {
	block *program.Block
	at    map[*program.Value]int // where a value is made
	ready []bool                 // instructions that stand in the new order
	order []program.Instr
}

// orderTurns orders a body of loads, prefetches and arithmetic alone.
func orderTurns(b *program.Block, desc *target.Desc) {
	last := len(b.Instrs) - 1
	if last < 0 || b.Instrs[last].Op != program.Yield {
		return
	}
	sums, streams := b.Instrs[last].Args, hasOp(b, program.Prefetch)
	many := len(sums) >= turnsFrom || !streams && len(sums) >= dotTurnsFrom && hasOp(b, program.Dot4)
	if len(sums) < 2 || !many && !streams {
		return
	}
	t := &turns{block: b, at: make(map[*program.Value]int), ready: make([]bool, len(b.Instrs))}
	for i := range b.Instrs[:last] {
		in := &b.Instrs[i]
		if dep.Of(in)&^(dep.Reads|dep.Hints) != 0 || in.Result == nil && in.Op != program.Prefetch {
			return
		}
		if in.Result != nil {
			t.at[in.Result] = i
		}
	}
	lists := t.lists(sums)
	if !many && !t.shareLoads(lists) {
		return
	}
	t.putHints()
	for _, group := range t.inRegisters(sums, lists, desc) {
		t.run(group)
	}
	for i := range b.Instrs {
		t.put(i) // what no sum needs
	}
	b.Instrs = t.order
}

// inRegisters are groups of sums that fit the registers together, the others of which keep theirs in memory meanwhile: all,
// where they do. Narrow sums come first, as others read what they are made of. A group is of sums that share most of what they are
// made of: the results of one matrix, whose weights are decoded for all of them at once. One Zen 5 core, exact batches, tokens a second, in the
// order of results and so: Q5_K_M of 8 86 and 148, of 4 100 and 134, Q6_K of 8 94 and 122, IQ4_XS of 4 146 and 164.
func (t *turns) inRegisters(sums []*program.Value, lists [][]int, desc *target.Desc) [][][]int {
	registers := func(v *program.Value) int { return (v.Type.Bytes() + desc.VectorBytes - 1) / desc.VectorBytes }
	total := 0
	for _, v := range sums {
		total += registers(v)
	}
	if total <= desc.VectorRegs {
		return [][][]int{lists}
	}
	var narrow [][]int
	var wide []int
	for k, v := range sums {
		if v.Type.Bytes() < desc.VectorBytes {
			narrow = append(narrow, lists[k])
		} else {
			wide = append(wide, k)
		}
	}
	groups := [][][]int{narrow}
	for len(wide) > 0 {
		var group [][]int
		made := make([]bool, len(t.ready))
		for room := desc.VectorRegs / 2; len(wide) > 0; {
			next := mostShared(wide, lists, made)
			k := wide[next]
			if room -= registers(sums[k]); room < 0 && len(group) > 0 {
				break
			}
			for _, i := range lists[k] {
				made[i] = true
			}
			group, wide = append(group, lists[k]), slices.Delete(wide, next, next+1)
		}
		groups = append(groups, group)
	}
	return groups
}

// mostShared is the index of the sum of which most is made already, the first of several.
func mostShared(sums []int, lists [][]int, made []bool) (best int) {
	most := -1
	for k, sum := range sums {
		n := 0
		for _, i := range lists[sum] {
			if made[i] {
				n++
			}
		}
		if n > most {
			best, most = k, n
		}
	}
	return best
}

// hasOp reports a block with an instruction of its own of some kind.
func hasOp(b *program.Block, op program.Op) bool {
	return slices.ContainsFunc(b.Instrs, func(in program.Instr) bool { return in.Op == op })
}

// shareLoads reports a load that two sums need: few sums of a loop with prefetches take turns then. LLVM moves no load across a
// prefetch, so that the order of loads is the program's. One Zen 5 core, gate and up in Q4_0, exact: 39 GB/s as LLVM
// orders them, 35 among prefetches, with activations kept in memory for the second matrix, and 39 in turns; the two
// sums of a single matrix, which share nothing, lose 4 % in turns.
func (t *turns) shareLoads(lists [][]int) bool {
	needed := make(map[int]bool)
	for _, list := range lists {
		for _, i := range list {
			if t.block.Instrs[i].Op != program.Load {
				continue
			}
			if needed[i] {
				return true
			}
			needed[i] = true
		}
	}
	return false
}

// putHints leaves prefetches at the head, with what makes their addresses.
func (t *turns) putHints() {
	for i := range t.block.Instrs {
		if in := &t.block.Instrs[i]; in.Op == program.Prefetch {
			var list []int
			t.list(in.Args[0], make(map[int]bool), &list)
			for _, k := range append(list, i) {
				t.put(k)
			}
		}
	}
}

// run lets the sums take turns. What an operation reads comes right before it.
func (t *turns) run(lists [][]int) {
	for more := true; more; {
		more = false
		for k, list := range lists {
			for len(list) > 0 {
				i := list[0]
				list = list[1:]
				t.put(i)
				if !t.moves(i) {
					break
				}
			}
			lists[k], more = list, more || len(list) > 0
		}
	}
}

// lists are what each sum is made of.
func (t *turns) lists(sums []*program.Value) [][]int {
	lists := make([][]int, len(sums))
	for k, v := range sums {
		t.list(v, make(map[int]bool), &lists[k])
	}
	return lists
}

// list is what a value is made of in this body, in an order in which it can be made: what is
// added to comes first, because it is the older part of a sum, and what is only read last.
func (t *turns) list(v *program.Value, seen map[int]bool, out *[]int) {
	i, inside := t.at[v]
	if !inside || seen[i] {
		return
	}
	seen[i] = true
	in := &t.block.Instrs[i]
	args := in.Args
	if in.Op == program.Alu && in.Ir == ir.OpFma {
		args = []*program.Value{args[2], args[0], args[1]}
	}
	for _, x := range args {
		if k, inside := t.at[x]; inside && !t.moves(k) {
			t.list(x, seen, out)
		}
	}
	for _, x := range args {
		t.list(x, seen, out)
	}
	*out = append(*out, i)
}

// moves reports an instruction that brings an operand: the operation that reads it belongs
// to the same turn.
func (t *turns) moves(i int) bool {
	switch in := &t.block.Instrs[i]; in.Op {
	case program.Alu:
		return in.Result.Type.Lanes == 1 || in.Ir == ir.OpBitcast
	case program.Dot4, program.FoldLanes:
		return false
	}
	return true
}

func (t *turns) put(i int) {
	if !t.ready[i] {
		t.ready[i] = true
		t.order = append(t.order, t.block.Instrs[i])
	}
}
