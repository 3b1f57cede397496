package kernel

import "tgc/ir/program"

// Rows that do not fit the registers ahead of the wait. Where a thread has more
// rows than it can load at once, the registers of one that has been used take the
// next: its loads stand right behind the last use, not in front of their own first
// one, so that memory is read while the rows in between are summed up. Without, the
// second half of gate and up of LLaMA 3.2 1B were three trips to memory one after
// the other.

// lateWeights is how many bytes of weights a thread loads behind a division, from
// which divisions wait for the sums of all rows (program.FoldLate). H200: gate and up
// of LLaMA 3.2 1B, with 144 bytes, 8.45 -> 8.16 us in int8 and 8.75 -> 8.36 in i16;
// of Qwen3 1.7B, with 64, 6.24 -> 6.49, for more registers are in use.
const lateWeights = 96

// refill places the loads of weights that stayed behind. left is how many registers
// those ahead of the wait have left over.
func (p *preloader) refill(left int) {
	freed := p.freedAt()
	var waiting []int
	for i := range p.block.Instrs {
		in := &p.block.Instrs[i]
		if p.ofStream(in) && p.use[i] == inPlace && p.movable(i, behindWait) {
			waiting = append(waiting, i)
		}
	}
	p.behind = make(map[int][]int)
	for i := 0; i < len(p.block.Instrs) && len(waiting) > 0; i++ {
		if waiting[0] == i { // too late to be early
			left -= registersOf(p.block.Instrs[i].Result.Type)
			waiting = waiting[1:]
		}
		left += freed[i]
		for freed[i] > 0 && len(waiting) > 0 {
			n := registersOf(p.block.Instrs[waiting[0]].Result.Type)
			if n > left {
				break
			}
			left -= n
			p.behind[i] = append(p.behind[i], waiting[0])
			waiting = waiting[1:]
		}
	}
}

// ofStream reports a load of a weight.
func (p *preloader) ofStream(in *program.Instr) bool {
	return in.Op == program.Load && p.slots[p.root[in.Args[0]]]
}

// freedAt is how many registers of loaded weights an instruction is the last to
// use.
func (p *preloader) freedAt() map[int]int {
	last := make(map[*program.Value]int)
	for i := range p.block.Instrs {
		usesIn(&p.block.Instrs[i], func(v *program.Value) { last[v] = i })
	}
	freed := make(map[int]int)
	for i := range p.block.Instrs {
		in := &p.block.Instrs[i]
		if end, used := last[in.Result]; used && p.ofStream(in) {
			freed[end] += registersOf(in.Result.Type)
		}
	}
	return freed
}
