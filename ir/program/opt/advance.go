package opt

import "tgc/ir/program"

// advanceRegisters bounds the registers of a thread that hold loads of any kind when
// its block meets for the first time: with more, weights that were loaded early
// spill, which waits for them.
const advanceRegisters = 80

// leastAdvanced are registers for such loads in any case: the residuals of a
// thread's rows, at the end of a block, would wait for a trip to L2 otherwise.
const leastAdvanced = 4

// advanceLoads issues what a block loads after its first barrier together with
// what it loads before it: weights of a norm while its row is summed up, the
// residual of each row. Weights of the rows are loaded early already (hoist.go).
func advanceLoads(p *program.Program) {
	w := weightsOf(p)
	a := &advancer{block: w.body, made: make(map[*program.Value]int), moves: make(map[int]bool)}
	if !a.findPlace() {
		return
	}
	left := max(advanceRegisters-a.held, leastAdvanced)
	for i := a.barrier + 1; i < len(a.block.Instrs); i++ {
		in := &a.block.Instrs[i]
		if in.Op != program.Load || !w.isActivation(in.Args[0]) {
			continue
		}
		registers := in.Result.Type.Registers()
		if registers <= left && a.movable(i) {
			left -= registers
			a.move(i)
		}
	}
	a.rearrange()
}

type advancer struct {
	block   *program.Block
	made    map[*program.Value]int // by instruction of the block
	place   int                    // loads move before this instruction
	barrier int
	held    int // registers loaded before the barrier
	moves   map[int]bool
}

// findPlace looks for the first barrier after the wait, and for the last load
// before it.
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
			a.held += in.Result.Type.Registers()
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

// move marks an instruction and what it needs.
func (a *advancer) move(i int) {
	if i < a.place || a.moves[i] {
		return
	}
	a.moves[i] = true
	for _, v := range a.block.Instrs[i].Args {
		if j, ok := a.made[v]; ok {
			a.move(j)
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
