package opt

import "tgc/ir/program"

// A loop asks for the lines of an iteration to come at its head. A core keeps only some ten to
// twenty lines on their way: those that follow wait for a place, and so do the loads after
// them, while later in the iteration nothing is asked for. One Zen 5 core, attention over a
// cache of 4,000 rows of 128 (128 lines an iteration of 1,300 instructions), GB/s of the 45 that a plain
// read has: at the head 29, spread 50.

// vectorBytes is what one load of a CPU reads, at most.
const vectorBytes = 64

// spreadPrefetches puts the prefetches of each loop's body at even distances in it.
func spreadPrefetches(p *program.Program) {
	readers := p.Readers()
	p.Body.Each(func(in *program.Instr) {
		if in.Op == program.For {
			spreadIn(in.Body, readers)
		}
	})
}

// hint is a prefetch with the addition that makes its address, and how much of the block comes before it at least.
type hint struct {
	instrs []program.Instr
	from   int
}

// spreadIn moves the prefetches of a block to where their share of the block's loads is done.
func spreadIn(b *program.Block, readers map[*program.Value]int) {
	hints, rest := takeHints(b.Instrs, readers)
	if len(hints) < 2 {
		return
	}
	total := work(rest[hints[0].from:])
	order, done, next := make([]program.Instr, 0, len(b.Instrs)), int64(0), 0
	for i, in := range rest {
		for ; next < len(hints) && i >= hints[next].from && (done*int64(len(hints)) >= total*int64(next) || in.Op == program.Yield); next++ {
			order = append(order, hints[next].instrs...)
		}
		order = append(order, in)
		if i >= hints[0].from {
			done += work(rest[i : i+1])
		}
	}
	b.Instrs = order
}

// takeHints takes a block's prefetches out of it.
func takeHints(list []program.Instr, readers map[*program.Value]int) (hints []hint, rest []program.Instr) {
	for _, in := range list {
		if in.Op != program.Prefetch {
			rest = append(rest, in)
			continue
		}
		instrs, last := []program.Instr{in}, len(rest)-1
		if last >= 0 && rest[last].Op == program.PtrAdd && rest[last].Result == in.Args[0] && readers[in.Args[0]] == 1 {
			instrs, rest = []program.Instr{rest[last], in}, rest[:last]
		}
		hints = append(hints, hint{instrs, len(rest)})
	}
	return hints, rest
}

// work is about how many loads some instructions are: LLVM keeps loads and prefetches in order, and moves all else.
func work(list []program.Instr) (n int64) {
	for i := range list {
		in := &list[i]
		for inner := range in.Blocks() {
			n += work(inner.Instrs)
		}
		if in.Op == program.Load || in.Op == program.Gather {
			n += 1 + int64(in.Result.Type.Bytes()-1)/vectorBytes
		}
	}
	return n
}
