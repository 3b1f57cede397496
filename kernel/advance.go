package kernel

import (
	"tgc/ir"
	"tgc/ir/program"
)

// advanceRegisters bounds the registers of a thread that hold loads of any kind when
// its block meets for the first time: with more, weights that were loaded early
// spill, which waits for them.
const advanceRegisters = 80

// leastAdvanced are registers for such loads in any case: the residuals of a
// thread's rows, at the end of a block, would wait for a trip to L2 otherwise.
const leastAdvanced = 4

// advanceLoads issues what a block loads behind its first barrier together with
// what it loads in front of it: weights of a norm while its row is summed up, the
// residual of each row. Weights of the rows have PRELOAD.
func (l *lowerer) advanceLoads(body *program.Block) {
	a := &advancer{block: body, made: make(map[*program.Value]int), plain: make(map[*program.Value]bool), moves: make(map[int]bool)}
	for u, v := range l.params {
		a.plain[v] = u.Op == ir.OpParam && u.Arg.(ir.ParamArg).Format == "" && !l.writes(u)
	}
	if !a.findPlace() {
		return
	}
	left := max(advanceRegisters-a.held, leastAdvanced)
	for i := a.barrier + 1; i < len(body.Instrs); i++ {
		in := &body.Instrs[i]
		if in.Op != program.Load || !a.plain[a.root(in.Args[0])] {
			continue
		}
		registers := registersOf(in.Result.Type)
		if registers <= left && a.movable(i) {
			left -= registers
			a.mark(i)
		}
	}
	a.rearrange()
}

// writes reports a buffer that the kernel stores to.
func (l *lowerer) writes(u *ir.UOp) bool {
	for _, s := range l.stores {
		if s.node.Src[0] == u {
			return true
		}
	}
	return false
}

type advancer struct {
	block   *program.Block
	made    map[*program.Value]int  // by instruction of the block
	plain   map[*program.Value]bool // parameters that are read only and not packed
	place   int                     // loads move in front of this instruction
	barrier int
	held    int // registers loaded in front of it
	moves   map[int]bool
}

// findPlace looks for the first barrier behind the wait, and for the last load in
// front of it.
func (a *advancer) findPlace() bool {
	wait := -1
	for i := range a.block.Instrs {
		in := &a.block.Instrs[i]
		if in.Result != nil {
			a.made[in.Result] = i
		}
		for _, r := range in.Results {
			a.made[r] = i
		}
	}
	for i := range a.block.Instrs {
		in := &a.block.Instrs[i]
		if in.Op == program.Load {
			a.held += registersOf(in.Result.Type)
		}
		switch {
		case in.Op == program.WaitGrid:
			wait, a.place = i, i+1
		case wait >= 0 && in.Op == program.Load:
			a.place = i + 1
		case wait >= 0 && in.Op == program.Barrier:
			a.barrier = i
			return true
		}
	}
	return false
}

// root is the parameter or array that a pointer leads into.
func (a *advancer) root(p *program.Value) *program.Value {
	for {
		i, ok := a.made[p]
		if !ok || !p.Type.Ptr || len(a.block.Instrs[i].Args) == 0 {
			return p
		}
		p = a.block.Instrs[i].Args[0]
	}
}

// movable reports that an instruction's operands are there or are arithmetic that
// can move with it.
func (a *advancer) movable(i int) bool {
	for _, v := range a.block.Instrs[i].Args {
		j, ok := a.made[v]
		if !ok || j < a.place || a.moves[j] {
			continue
		}
		switch a.block.Instrs[j].Op {
		case program.Alu, program.PtrAdd, program.Const, program.ThreadIndex:
		default:
			return false
		}
		if !a.movable(j) {
			return false
		}
	}
	return true
}

func (a *advancer) mark(i int) {
	if i < a.place || a.moves[i] {
		return
	}
	a.moves[i] = true
	for _, v := range a.block.Instrs[i].Args {
		if j, ok := a.made[v]; ok {
			a.mark(j)
		}
	}
}

func (a *advancer) rearrange() {
	var out []program.Instr
	out = append(out, a.block.Instrs[:a.place]...)
	for _, moved := range []bool{true, false} {
		for i := a.place; i < len(a.block.Instrs); i++ {
			if a.moves[i] == moved {
				out = append(out, a.block.Instrs[i])
			}
		}
	}
	a.block.Instrs = out
}

// registersOf is how many registers a value takes.
func registersOf(t program.Type) int { return (t.Lanes*t.Elem.Size() + 3) / 4 }
