package opt

import (
	"slices"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/ir/program/dep"
)

// prefetchTiles moves the loads of global memory before a loop's last barrier one
// iteration ahead: a loop that fills shared memory and then computes with it issues
// the next iteration's loads before it computes, and their latency passes
// meanwhile. Loops that run matrix instructions are those where there is enough to
// compute. What is loaded must be known from the loop's index, and nothing of it
// may be written by this program. Of a loop that may have no iteration the first loads
// are guarded.
func prefetchTiles(p *program.Program) {
	l := tileLoopsOf(p)
	l.eachLoop(p.Body, func(loop *program.Instr) (before, after []program.Instr) { return l.prefetch(loop), nil })
}

// tileLoops rewrites loops that fill shared memory and compute with it.
type tileLoops struct {
	rewriter
	registers int // of a thread that hold loads
	depth     int // loops around the block at hand
}

func tileLoopsOf(p *program.Program) *tileLoops {
	return &tileLoops{rewriter: rewriterOf(p), registers: p.Options.Of(program.Panel)}
}

// eachLoop rewrites the loops in a block, inner ones first; rewrite gives what goes
// before a loop, and after.
func (l *tileLoops) eachLoop(b *program.Block, rewrite func(loop *program.Instr) (before, after []program.Instr)) {
	for i := 0; i < len(b.Instrs); i++ {
		in := &b.Instrs[i]
		if in.Op == program.For {
			l.depth++
		}
		for inner := range in.Blocks() {
			l.eachLoop(inner, rewrite)
		}
		if in.Op == program.For {
			l.depth--
			before, after := rewrite(in)
			b.Instrs = slices.Concat(b.Instrs[:i], before, b.Instrs[i:i+1], after, b.Instrs[i+1:])
			i += len(before) + len(after)
		}
	}
}

// prefetch changes a loop and gives what goes before it: the loads of the first
// iteration.
func (l *tileLoops) prefetch(loop *program.Instr) []program.Instr {
	lo, okLo := l.known[loop.Args[0]]
	hi, okHi := l.known[loop.Args[1]]
	known := okLo && okHi
	last, computes := lastBarrier(loop.Body)
	if last < 0 || !computes || known && hi-lo < 2 {
		return nil
	}
	s := l.sliceOf(loop)
	var loads []int
	for i := range loop.Body.Instrs[:last] {
		if in := &loop.Body.Instrs[i]; (in.Op == program.Load || in.Op == program.Gather && known) && l.memory.ReadOnly(in.Args[0]) && s.take(in) {
			loads = append(loads, i)
		}
	}
	if len(loads) == 0 {
		return nil
	}
	first := l.carryLoads(loop, s.Slice, loads, last)
	if !known {
		return l.guarded(first, loop)
	}
	return first
}

// lastBarrier is the last barrier of a block, -1 if it has none, and whether the block
// has matrix instructions.
func lastBarrier(b *program.Block) (last int, computes bool) {
	last = -1
	for i := range b.Instrs {
		if b.Instrs[i].Op == program.Barrier {
			last = i
		}
		computes = computes || isMatrix(&b.Instrs[i])
	}
	return last, computes
}

// isMatrix reports an instruction of a warp or a warpgroup that multiplies matrices.
func isMatrix(in *program.Instr) bool { return in.Op == program.Mma || in.Op == program.GroupMma }

// carryLoads makes each load a carried value, loaded for the next iteration after an
// instruction, and gives the loads of the first one.
func (l *tileLoops) carryLoads(loop *program.Instr, s *dep.Slice, loads []int, after int) (first []program.Instr) {
	body := loop.Body
	index, step := body.Args[0], loop.Args[2]
	first, before := l.copyInOrder(s, loads, map[*program.Value]*program.Value{index: loop.Args[0]})
	sum, end, next := l.value(index.Type), l.value(index.Type), l.value(index.Type)
	ahead := []program.Instr{
		{Op: program.Alu, Ir: ir.OpAdd, Result: sum, Args: []*program.Value{index, step}},
		{Op: program.Alu, Ir: ir.OpSub, Result: end, Args: []*program.Value{loop.Args[1], step}},
		{Op: program.Alu, Ir: ir.OpMin, Result: next, Args: []*program.Value{sum, end}},
	}
	second, following := l.copyInOrder(s, loads, map[*program.Value]*program.Value{index: next})
	ahead = append(ahead, second...)
	carried, gone := make(map[*program.Value]*program.Value), make(map[int]bool)
	for _, i := range loads {
		r := body.Instrs[i].Result
		carried[r], gone[i] = l.value(r.Type), true
		l.carry(loop, carried[r], before[r], following[r])
	}
	var out []program.Instr
	for i := range body.Instrs {
		if !gone[i] {
			out = append(out, body.Instrs[i])
		}
		if i == after {
			out = append(out, ahead...)
		}
	}
	body.Instrs = out
	renameValues(body, carried)
	return first
}

// guarded loads only if a loop has an iteration.
func (l *tileLoops) guarded(first []program.Instr, loop *program.Instr) []program.Instr {
	some := l.value(program.Scalar(ir.Bool))
	out := []program.Instr{{Op: program.Alu, Ir: ir.OpCmpLt, Result: some, Args: []*program.Value{loop.Args[0], loop.Args[1]}}}
	zeros := make(map[program.Type]*program.Value)
	for _, in := range first {
		if in.Op == program.Load {
			t := in.Result.Type
			if zeros[t] == nil {
				zeros[t] = l.value(t)
				out = append(out, program.Instr{Op: program.Const, Result: zeros[t]})
			}
			in.Op, in.Args = program.Guarded, []*program.Value{some, in.Args[0], zeros[t]}
		}
		out = append(out, in)
	}
	return out
}

// loadSlice is what loads of a loop's body need of it, as far as arithmetic makes that
// of the loop's index and of what comes from outside; registers are left for loads.
type loadSlice struct {
	*dep.Slice
	registers int
}

func (l *tileLoops) sliceOf(loop *program.Instr) *loadSlice {
	return &loadSlice{dep.NewLoopSlice(loop, dep.Pure), l.registers}
}

// take takes what a load needs, if the load can be issued ahead and its registers are
// left.
func (s *loadSlice) take(in *program.Instr) bool {
	n := in.Result.Type.Registers()
	if n > s.registers || !s.Reaches(in) {
		return false
	}
	s.Take(in)
	s.registers -= n
	return true
}
