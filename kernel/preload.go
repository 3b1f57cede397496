package kernel

import (
	"tgc/ir"
	"tgc/ir/program"
)

// The PRELOAD Opt. A GPU's block first issues the loads of its weights, then
// waits for the kernel before it, then computes what stands in front of its
// rows: the latency of memory passes meanwhile.

// preloadRegisters bounds the registers of a thread that wait for such loads.
const preloadRegisters = 64

// Registers of a thread: what a multiprocessor's 64 K give to each of so many
// threads, and how many of those that a program seems to need ptxas does without:
// it takes lanes out of vectors where they stand, and computes values late. With
// 50, 28 and 12 LLaMA 3.2 1B Q6_K makes 1,408, 1,356 and 1,355 tok/s in exact
// mode on an H200; without a bound, spills take what loads gain.
const (
	multiprocessorRegisters = 64 << 10
	residentThreads         = 512
	sparedRegisters         = 50
)

// orderedRegisters of loads ahead of the wait keep their order. ptxas sorts loads
// by what their addresses take, planes of scales last, so that the first row could
// not be summed up before the last one had come; it moves none across a permission
// for the next kernel to start, which may be given again. Gate and up of LLaMA 3.2
// 1B in int8: 9.3 -> 8.5 us.
const orderedRegisters = 16

// streamBytes is the width from which a load of a weight leaves nothing behind
// in the first level of cache: narrower ones share their sectors with others.
const streamBytes = 16

// preloader moves loads to the head of a block.
type preloader struct {
	slots  map[*program.Value]bool // parameters; true: nothing writes them, so that the wait does not matter
	plain  map[*program.Value]bool // parameters that are read only and not packed
	root   map[*program.Value]*program.Value
	made   map[*program.Value]int // by instruction of the block
	block  *program.Block
	use    []position    // of each instruction
	left   int           // registers
	behind map[int][]int // loads that follow an instruction
}

// position says where an instruction goes: where it stood, behind the wait, ahead
// of it.
type position uint8

const (
	inPlace position = iota
	behindWait
	aheadOfWait
)

// preload reorders the body of the grid loop and waits for the last kernel.
func (l *lowerer) preload(body *program.Block) {
	p := &preloader{slots: make(map[*program.Value]bool), plain: make(map[*program.Value]bool), root: make(map[*program.Value]*program.Value),
		made: make(map[*program.Value]int), block: body}
	for u, v := range l.params {
		if u.Op != ir.OpParam {
			continue
		}
		p.root[v] = v
		switch format := u.Arg.(ir.ParamArg).Format; {
		case l.planned.preload[u.Arg.(ir.ParamArg).Slot]:
			p.slots[v] = format != ""
		case format == "" && !l.writes(u):
			p.plain[v] = true
		}
	}
	p.trace(body)
	l.reread(p, body)
	l.orderRows(p, body)
	l.pipeline(p, body)
	p.left = min(preloadRegisters, p.freeRegisters(l, body.Instrs, nil))
	p.use = make([]position, len(body.Instrs))
	for i := range body.Instrs {
		if r := body.Instrs[i].Result; r != nil {
			p.made[r] = i
		}
	}
	for i := range body.Instrs {
		in := &body.Instrs[i]
		if in.Op != program.Load && in.Op != program.Gather || !p.isWeight(in.Args[0]) {
			continue
		}
		registers := registersOf(in.Result.Type)
		if registers > p.left {
			continue
		}
		for _, to := range []position{aheadOfWait, behindWait} {
			if p.movable(i, to) {
				p.left -= registers
				p.mark(i, to)
				break
			}
		}
	}
	p.refill(p.left)
	p.rearrange()
}

// freeRegisters is how many registers of a thread the instructions of a block
// leave where most are in use, weights and pointers to them not counted.
func (p *preloader) freeRegisters(l *lowerer, instrs []program.Instr, args []*program.Value) int {
	return multiprocessorRegisters/int(max(l.blockSize, residentThreads)) + sparedRegisters - p.pressure(instrs, args)
}

// pressure is the most registers that hold values between two instructions of a
// block: those that come before and are used behind.
func (p *preloader) pressure(instrs []program.Instr, args []*program.Value) (most int) {
	last := make(map[*program.Value]int)
	for i := range instrs {
		usesIn(&instrs[i], func(v *program.Value) { last[v] = i })
	}
	live := 0
	ends := make([]int, len(instrs))
	begin := func(v *program.Value) {
		if end, used := last[v]; used {
			live += registersOf(v.Type)
			ends[end] += registersOf(v.Type)
		}
	}
	for _, v := range args {
		begin(v)
	}
	for i := range instrs {
		in := &instrs[i]
		inner := 0
		if in.Body != nil {
			inner = p.pressure(in.Body.Instrs, in.Body.Args)
		}
		most = max(most, live+inner)
		live -= ends[i]
		if in.Result != nil && !p.ofWeight(in) {
			begin(in.Result)
		}
		for _, r := range in.Results {
			begin(r)
		}
	}
	return most
}

// ofWeight reports a load of a weight, or a pointer to it.
func (p *preloader) ofWeight(in *program.Instr) bool {
	return p.isWeight(in.Result) || in.Op == program.Load && p.isWeight(in.Args[0])
}

// isWeight reports a pointer to a weight that PRELOAD names.
func (p *preloader) isWeight(v *program.Value) bool {
	_, ok := p.slots[p.root[v]]
	return ok
}

// trace finds the pointers into the weights, and sets cache policies of loads.
func (p *preloader) trace(b *program.Block) {
	for i := range b.Instrs {
		in := &b.Instrs[i]
		switch {
		case in.Op == program.PtrAdd || in.Op == program.Alu && in.Result.Type.Ptr:
			if r := p.root[in.Args[0]]; r != nil {
				p.root[in.Result] = r
			}
		case in.Op == program.Load || in.Op == program.Gather:
			if p.slots[p.root[in.Args[0]]] {
				in.Cache = program.CacheConst
				if in.Op == program.Load && in.Result.Type.Lanes*in.Result.Type.Elem.Size() >= streamBytes {
					in.Cache = program.CacheStream
				}
			}
		}
		if in.Body != nil {
			p.trace(in.Body)
		}
		if in.Else != nil {
			p.trace(in.Else)
		}
	}
}

// movable reports that what an instruction needs can stand at the head: index
// arithmetic, loads of the same kind, and behind the wait loads of indices.
func (p *preloader) movable(i int, to position) bool {
	if p.use[i] >= to {
		return true
	}
	in := &p.block.Instrs[i]
	switch in.Op {
	case program.Alu, program.Const, program.ConstLanes, program.Iota, program.Broadcast, program.Extract, program.Shuffle, program.Concat,
		program.PtrAdd, program.ThreadIndex:
	case program.Load, program.Gather:
		root := p.root[in.Args[0]]
		if to == aheadOfWait && !p.slots[root] || !p.isWeight(in.Args[0]) && !p.plain[root] {
			return false
		}
	default:
		return false
	}
	for _, a := range in.Args {
		if j, ok := p.made[a]; ok && !p.movable(j, to) {
			return false
		}
		if p.inner(a) {
			return false
		}
	}
	return true
}

// inner reports a result of control flow in the block, which stays.
func (p *preloader) inner(v *program.Value) bool {
	for i := range p.block.Instrs {
		for _, r := range p.block.Instrs[i].Results {
			if r == v {
				return true
			}
		}
	}
	return false
}

func (p *preloader) mark(i int, to position) {
	if p.use[i] >= to {
		return
	}
	p.use[i] = to
	for _, a := range p.block.Instrs[i].Args {
		if j, ok := p.made[a]; ok {
			p.mark(j, to)
		}
	}
}

// rearrange puts the block in order: what is ahead of the wait, the wait, what
// comes next, and the rest as it stood but for loads that follow others.
func (p *preloader) rearrange() {
	var out []program.Instr
	placed := make([]bool, len(p.block.Instrs))
	held := 0
	var place func(i int)
	place = func(i int) {
		if placed[i] {
			return
		}
		placed[i] = true
		in := p.block.Instrs[i]
		for _, a := range in.Args {
			if j, ok := p.made[a]; ok {
				place(j)
			}
		}
		out = append(out, in)
		if p.use[i] == aheadOfWait && p.ofStream(&in) {
			if held += registersOf(in.Result.Type); held >= orderedRegisters {
				out = append(out, program.Instr{Op: program.LaunchNext})
				held = 0
			}
		}
		for _, j := range p.behind[i] {
			place(j)
		}
	}
	for _, s := range []position{aheadOfWait, behindWait, inPlace} {
		if s == behindWait {
			out = append(out, program.Instr{Op: program.WaitGrid})
		}
		for i := range p.block.Instrs {
			if p.use[i] == s {
				place(i)
			}
		}
	}
	p.block.Instrs = out
}
