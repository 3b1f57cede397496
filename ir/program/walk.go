package program

import "iter"

// Blocks are the blocks in an instruction: the body of a loop, the arms of an if.
func (in *Instr) Blocks() iter.Seq[*Block] {
	return func(yield func(*Block) bool) {
		if in.Body != nil && !yield(in.Body) {
			return
		}
		if in.Else != nil {
			yield(in.Else)
		}
	}
}

// Each calls do for the instructions of a block and of the blocks in it, in order.
func (b *Block) Each(do func(*Instr)) {
	for i := range b.Instrs {
		in := &b.Instrs[i]
		do(in)
		for inner := range in.Blocks() {
			inner.Each(do)
		}
	}
}

// Readers counts the operands of all instructions that are a value.
func (p *Program) Readers() map[*Value]int {
	readers := make(map[*Value]int)
	p.Body.Each(func(in *Instr) {
		for _, a := range in.Args {
			readers[a]++
		}
	})
	return readers
}

// EachUse calls do for every operand of an instruction and of those in its blocks.
func (in *Instr) EachUse(do func(*Value)) {
	for _, a := range in.Args {
		do(a)
	}
	for b := range in.Blocks() {
		for i := range b.Instrs {
			b.Instrs[i].EachUse(do)
		}
	}
}

// SharesUnits reports a program of a CPU whose workers take the last of its units as they get on, not a part
// dealt out before: one that streams from memory (it prefetches), so that a chunk of units is longer than the taking of it.
func (p *Program) SharesUnits() bool {
	found := false
	p.Body.Each(func(in *Instr) { found = found || in.Op == Prefetch })
	return found && p.Units() > 1
}

// TakesWord reports a Shuffle of lanes of its first argument that follow one another, the first
// a multiple of four: of bytes a word, or several, from which one on.
func (in *Instr) TakesWord() (word int, ok bool) {
	if in.Op != Shuffle || in.Mask[0]%4 != 0 {
		return 0, false
	}
	for i, from := range in.Mask {
		if from != in.Mask[0]+i || from >= in.Args[0].Type.Lanes {
			return 0, false
		}
	}
	return in.Mask[0] / 4, true
}
