package kernel

import (
	"slices"

	"tgc/ir/program"
)

// Activations of a loop over rows. What a loop reads from shared memory at the
// same place in every iteration stands in front of it, in registers. Where these
// leave too few for weights loaded ahead (pipeline.go), the loop reads them anew,
// each for all rows of the iteration at once: 64 floats a thread against 16.

// rereadShared moves such reads into the loops of a block that stream weights.
func (l *lowerer) rereadShared(p *preloader, body *program.Block) {
	for i := range body.Instrs {
		loop := &body.Instrs[i]
		if loop.Op != program.For || len(loop.Results) > 0 || !l.runsOnce(loop) || writesShared(loop.Body) {
			continue
		}
		if p.freeRegisters(l, body.Instrs, nil) >= min(p.streamed(loop.Body), preloadRegisters) {
			continue
		}
		reads := sharedReads(body, loop)
		if len(reads) == 0 {
			continue
		}
		moved := make(map[*program.Value]bool)
		for _, in := range reads {
			moved[in.Result] = true
		}
		loop.Body.Instrs = slices.Concat(reads, loop.Body.Instrs)
		p.orderByReads(loop.Body, moved)
		body.Instrs = slices.DeleteFunc(body.Instrs, func(in program.Instr) bool { return in.Op == program.Load && moved[in.Result] })
		l.rereadShared(p, body)
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

// sharedReads are the loads from shared memory in a block that only the loop uses.
func sharedReads(body *program.Block, loop *program.Instr) (reads []program.Instr) {
	elsewhere := make(map[*program.Value]bool)
	for i := range body.Instrs {
		if in := &body.Instrs[i]; in.Result != loop.Result || in.Op != program.For || in.Body != loop.Body {
			usesIn(in, func(v *program.Value) { elsewhere[v] = true })
		}
	}
	for i := range body.Instrs {
		in := &body.Instrs[i]
		if in.Op == program.Load && in.Args[0].Type.Space == program.SharedSpace && !elsewhere[in.Result] {
			reads = append(reads, *in)
		}
	}
	return reads
}

// orderByReads orders the arithmetic of a loop by the reads that it needs, one
// after the other, so that few of them are in registers at once; what needs none
// comes where it is used first. Loads of weights stay in front.
func (p *preloader) orderByReads(b *program.Block, reads map[*program.Value]bool) {
	n := 0
	for n < len(b.Instrs) && ordered(b.Instrs[n].Op) {
		n++
	}
	made := make(map[*program.Value]int)
	place := make([]int, n) // the last read that an instruction needs, from 1
	count := 0
	for i := range place {
		in := &b.Instrs[i]
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
	for i := n; i < len(b.Instrs); i++ {
		usesIn(&b.Instrs[i], func(v *program.Value) { first[v] = count + 1 })
	}
	for i := n - 1; i >= 0; i-- {
		in := &b.Instrs[i]
		if at, used := first[in.Result]; used && place[i] == 0 && !p.isStreamed(in) {
			place[i] = at
		}
		for _, a := range in.Args {
			if at, used := first[a]; !used || place[i] < at {
				first[a] = place[i]
			}
		}
	}
	out := make([]program.Instr, 0, len(b.Instrs))
	for at := range count + 2 {
		for i := range place {
			if place[i] == at {
				out = append(out, b.Instrs[i])
			}
		}
	}
	b.Instrs = append(out, b.Instrs[n:]...)
}

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
