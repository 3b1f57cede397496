package opt

import (
	"tgc/ir/program"
	"tgc/ir/program/dep"
)

// eliminateBarriers removes barriers that order nothing: no two accesses on its two
// sides, up to the barriers next to it in the block, go to the same memory with
// one of them a write. Arrays of a block that are filled one after the other and
// read only then need one barrier together.
func eliminateBarriers(p *program.Program) {
	d := &barrierEliminator{dep.MemoryOf(p)}
	d.walk(p.Body, true)
}

type barrierEliminator struct{ memory *dep.Memory }

// accesses are what a stretch of a program does to memory that threads share.
type accesses struct {
	read, written map[*program.Value]bool // by array; the key nil is all of global memory
	unknown       bool                    // anything: what happens outside of the block
}

func newAccesses() accesses {
	return accesses{read: make(map[*program.Value]bool), written: make(map[*program.Value]bool)}
}

func (a accesses) conflict(b accesses) bool {
	if a.unknown || b.unknown {
		return true
	}
	for v := range a.written {
		if b.read[v] || b.written[v] {
			return true
		}
	}
	for v := range b.written {
		if a.read[v] {
			return true
		}
	}
	return false
}

func (a *accesses) add(b accesses) {
	for v := range b.read {
		a.read[v] = true
	}
	for v := range b.written {
		a.written[v] = true
	}
	a.unknown = a.unknown || b.unknown
}

// walk finds the barriers of a block that can go. Around a barrier are the
// accesses since the last one that stays, and those up to the next one. whole
// says that a block of threads runs this block once and nothing else.
func (d *barrierEliminator) walk(b *program.Block, whole bool) {
	drop := make(map[int]bool)
	last := -1 // a barrier of which it is open whether it stays
	before, after := newAccesses(), newAccesses()
	before.unknown = !whole
	for i := range b.Instrs {
		in := &b.Instrs[i]
		if in.Op != program.Barrier {
			d.collect(in, &after)
			continue
		}
		switch {
		case last < 0:
			before.add(after)
		case before.conflict(after):
			before = after
		default:
			drop[last] = true
			before.add(after)
		}
		last, after = i, newAccesses()
	}
	if last >= 0 && whole && !before.conflict(after) {
		drop[last] = true
	}
	out := b.Instrs[:0]
	for i := range b.Instrs {
		in := b.Instrs[i]
		if drop[i] {
			continue
		}
		for inner := range in.Blocks() {
			d.walk(inner, whole && in.Op == program.GridLoop)
		}
		out = append(out, in)
	}
	clear(b.Instrs[len(out):])
	b.Instrs = out
}

// collect notes an instruction's accesses, with those of blocks in it.
func (d *barrierEliminator) collect(in *program.Instr, to *accesses) {
	read, written := dep.Pointers(in)
	d.note(read, to.read)
	d.note(written, to.written)
	switch in.Op {
	case program.Atomic, program.Fence, program.WaitCopies: // what was copied is written until the wait
		to.unknown = true
	}
	for b := range in.Blocks() {
		for i := range b.Instrs {
			d.collect(&b.Instrs[i], to)
		}
	}
}

// note adds what pointers lead into, if threads share it.
func (d *barrierEliminator) note(pointers []*program.Value, to map[*program.Value]bool) {
	for _, p := range pointers {
		switch p.Type.Space {
		case program.GlobalSpace:
			to[nil] = true
		case program.SharedSpace, program.PeerSpace: // of a peer: the same array, as far as is known
			to[d.memory.Root(p)] = true
		}
	}
}
