package program

// DropBarriers removes barriers that order nothing: no two accesses on its two
// sides, up to the barriers next to it in the block, go to the same memory with
// one of them a write. Arrays of a block that are filled one after the other and
// read only then need one barrier together.
func DropBarriers(p *Program) {
	d := &barrierDropper{root: make(map[*Value]*Value)}
	d.walk(p.Body, true)
}

type barrierDropper struct {
	root map[*Value]*Value // pointers to shared arrays
}

// accesses are what a stretch of a program does to memory that threads share.
type accesses struct {
	read, written map[*Value]bool // by array; the key nil is all of global memory
	unknown       bool            // anything: what stands outside of the block
}

func newAccesses() accesses {
	return accesses{read: make(map[*Value]bool), written: make(map[*Value]bool)}
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

// walk finds the barriers of a block that can go. Around a barrier stand the
// accesses since the last one that stays, and those up to the next one. whole
// says that a block of threads runs this block once and nothing else.
func (d *barrierDropper) walk(b *Block, whole bool) {
	drop := make(map[int]bool)
	last := -1 // a barrier of which it is open whether it stays
	before, after := newAccesses(), newAccesses()
	before.unknown = !whole
	for i := range b.Instrs {
		in := &b.Instrs[i]
		if in.Op != Barrier {
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
		if in.Body != nil {
			d.walk(in.Body, whole && in.Op == GridLoop)
		}
		if in.Else != nil {
			d.walk(in.Else, false)
		}
		out = append(out, in)
	}
	clear(b.Instrs[len(out):])
	b.Instrs = out
}

// collect notes an instruction's accesses, with those of blocks in it.
func (d *barrierDropper) collect(in *Instr, to *accesses) {
	if in.Result != nil && in.Result.Type.Ptr {
		switch {
		case in.Op == Alloca:
			if in.Result.Type.Space == SharedSpace {
				d.root[in.Result] = in.Result
			}
		case len(in.Args) > 0:
			d.root[in.Result] = d.root[in.Args[0]]
		}
	}
	private := func(p *Value) bool { return p.Type.Space == LocalSpace || p.Type.Space == ConstSpace }
	switch in.Op {
	case Load, Gather:
		if !private(in.Args[0]) {
			to.read[d.root[in.Args[0]]] = true
		}
	case Guarded:
		if !private(in.Args[1]) {
			to.read[d.root[in.Args[1]]] = true
		}
	case Store, Scatter:
		if !private(in.Args[0]) {
			to.written[d.root[in.Args[0]]] = true
		}
	case Atomic, Fence, AsyncCopy, AsyncCommit, AsyncWait:
		to.unknown = true
	}
	for _, b := range []*Block{in.Body, in.Else} {
		if b == nil {
			continue
		}
		for i := range b.Instrs {
			d.collect(&b.Instrs[i], to)
		}
	}
}
