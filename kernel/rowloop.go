package kernel

import (
	"slices"

	"tgc/ir"
	"tgc/ir/program"
)

// Activations of a loop over rows. What a loop reads from shared memory, or from a
// buffer that nothing writes meanwhile, at the same place in every iteration stands in
// front of it, in registers. Where these leave too few for weights loaded ahead
// (pipeline.go), the loop reads them anew, each for all rows of the iteration at
// once: 64 floats a thread against 16.

// reread moves such reads into the loops of a block that stream weights.
func (l *lowerer) reread(p *preloader, body *program.Block) {
	for i := range body.Instrs {
		loop := &body.Instrs[i]
		if loop.Op != program.For || len(loop.Results) > 0 || !l.runsOnce(loop) {
			continue
		}
		if p.freeRegisters(l, body.Instrs, nil) >= min(p.streamed(loop.Body), preloadRegisters) {
			continue
		}
		reads := l.activationsOf(body, loop)
		if len(reads) == 0 {
			continue
		}
		moved := make(map[*program.Value]bool)
		for _, in := range reads {
			moved[in.Result] = true
		}
		loop.Body.Instrs = p.orderByReads(slices.Concat(reads, loop.Body.Instrs), moved)
		body.Instrs = slices.DeleteFunc(body.Instrs, func(in program.Instr) bool { return in.Op == program.Load && moved[in.Result] })
		l.reread(p, body)
		return
	}
}

// streamed is how many registers the weights of one iteration take.
func (p *preloader) streamed(b *program.Block) (registers int) {
	for i := range b.Instrs {
		if in := &b.Instrs[i]; p.isStreamed(in) {
			registers += registersOf(in.Result.Type)
		}
	}
	return registers
}

// isStreamed reports a load of a weight.
func (p *preloader) isStreamed(in *program.Instr) bool {
	return in.Op == program.Load && p.root[in.Args[0]] != nil && p.slots[p.root[in.Args[0]]]
}

// writesShared reports a block that may change what lies in shared memory.
func writesShared(b *program.Block) bool {
	for i := range b.Instrs {
		in := &b.Instrs[i]
		switch {
		case in.Op == program.Barrier || in.Op == program.AsyncCopy:
			return true
		case (in.Op == program.Store || in.Op == program.Scatter) && in.Args[0].Type.Space == program.SharedSpace:
			return true
		case in.Body != nil && writesShared(in.Body) || in.Else != nil && writesShared(in.Else):
			return true
		}
	}
	return false
}

// activationsOf are the loads of activations in a block that only the loop uses.
func (l *lowerer) activationsOf(body *program.Block, loop *program.Instr) (reads []program.Instr) {
	steady := make(map[*program.Value]bool) // pointers into what the loop leaves as it is
	for u, v := range l.params {
		steady[v] = u.Op == ir.OpParam && u.Arg.(ir.ParamArg).Format == "" && !l.writes(u)
	}
	elsewhere, shared := make(map[*program.Value]bool), !writesShared(loop.Body)
	for i := range body.Instrs {
		if in := &body.Instrs[i]; in.Op != program.For || in.Body != loop.Body {
			usesIn(in, func(v *program.Value) { elsewhere[v] = true })
		}
	}
	for i := range body.Instrs {
		in := &body.Instrs[i]
		switch {
		case in.Op == program.PtrAdd:
			steady[in.Result] = steady[in.Args[0]]
		case in.Op == program.Load && !elsewhere[in.Result] && registersOf(in.Result.Type) >= leastRead &&
			(steady[in.Args[0]] || shared && in.Args[0].Type.Space == program.SharedSpace):
			reads = append(reads, *in)
		}
	}
	return reads
}

// orderByReads orders the arithmetic in front of a block by the reads that it needs,
// one after the other, so that few of them are in registers at once; what needs none
// comes where it is used first. Loads of weights stay in front.
func (p *preloader) orderByReads(instrs []program.Instr, reads map[*program.Value]bool) []program.Instr {
	n := 0
	for n < len(instrs) && ordered(instrs[n].Op) {
		n++
	}
	made := make(map[*program.Value]int)
	place := make([]int, n) // the last read that an instruction needs, from 1
	count := 0
	for i := range place {
		in := &instrs[i]
		made[in.Result] = i
		for _, a := range in.Args {
			if j, ok := made[a]; ok {
				place[i] = max(place[i], place[j])
			}
		}
		if reads[in.Result] {
			count++
			place[i] = count
		}
	}
	first := make(map[*program.Value]int) // place of the first user
	for i := n; i < len(instrs); i++ {
		usesIn(&instrs[i], func(v *program.Value) { first[v] = count + 1 })
	}
	for i := n - 1; i >= 0; i-- {
		in := &instrs[i]
		if at, used := first[in.Result]; used && place[i] == 0 && !p.isStreamed(in) {
			place[i] = at
		}
		for _, a := range in.Args {
			if at, used := first[a]; !used || place[i] < at {
				first[a] = place[i]
			}
		}
	}
	out := make([]program.Instr, 0, len(instrs))
	for at := range count + 2 {
		for i := range place {
			if place[i] == at {
				out = append(out, instrs[i])
			}
		}
	}
	return append(out, instrs[n:]...)
}

// orderRows orders what a block does with its rows, where it does so once: with the
// activations of a row in registers, weights of the last rows would be loaded only
// when the first have been used.
func (l *lowerer) orderRows(p *preloader, body *program.Block) {
	for i := 0; i < len(body.Instrs); i++ {
		end := i
		reads := make(map[*program.Value]bool)
		weights := 0
		for end < len(body.Instrs) && ordered(body.Instrs[end].Op) {
			in := &body.Instrs[end]
			switch {
			case p.isStreamed(in):
				weights += registersOf(in.Result.Type)
			case in.Op == program.Load && registersOf(in.Result.Type) >= leastRead:
				reads[in.Result] = true
			}
			end++
		}
		if weights > 0 && len(reads) > 1 && p.freeRegisters(l, body.Instrs, nil) < min(weights, preloadRegisters) {
			body.Instrs = append(body.Instrs[:i:i], p.orderByReads(body.Instrs[i:], reads)...)
		}
		i = end
	}
}

// leastRead is from how many registers on a load counts as activations of a row.
const leastRead = 4

// ordered reports an instruction that only its operands and results put into an
// order.
func ordered(op program.Op) bool {
	switch op {
	case program.Alu, program.Const, program.ConstLanes, program.Iota, program.Broadcast, program.Extract, program.Insert,
		program.Shuffle, program.Concat, program.FoldLanes, program.PtrAdd, program.Load, program.Dot4, program.ThreadIndex, program.ShuffleLane:
		return true
	}
	return false
}
