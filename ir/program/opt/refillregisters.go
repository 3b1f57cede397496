package opt

import "tgc/ir/program/dep"

// Rows that do not fit the registers before the wait. Where a thread has more
// rows than it can load at once, the registers of one that has been used take the
// next: its loads come right after the last use, not right before their own first
// one, so that memory is read while the rows in between are summed up. Without, the
// second half of gate and up of LLaMA 3.2 1B were three trips to memory one after
// the other.

// refill places the loads of weights that stayed. left is how many registers
// those before the wait have left over.
func (h *hoister) refill(left int) {
	freed := h.freedAt()
	var waiting []int
	for i := range h.body.Instrs {
		if h.position(i) == inPlace && h.isStreamed(&h.body.Instrs[i]) && h.slices[afterWait].Reaches(&h.body.Instrs[i]) {
			waiting = append(waiting, i)
		}
	}
	h.after = make(map[int][]int)
	for i := 0; i < len(h.body.Instrs) && len(waiting) > 0; i++ {
		if waiting[0] == i { // too late to be early
			left -= h.body.Instrs[i].Result.Type.Registers()
			waiting = waiting[1:]
		}
		left += freed[i]
		for freed[i] > 0 && len(waiting) > 0 {
			n := h.body.Instrs[waiting[0]].Result.Type.Registers()
			if n > left {
				break
			}
			left -= n
			h.after[i] = append(h.after[i], waiting[0])
			waiting = waiting[1:]
		}
	}
}

// freedAt is how many registers of loaded weights an instruction is the last to
// use.
func (h *hoister) freedAt() map[int]int {
	last := dep.LastUses(h.body)
	freed := make(map[int]int)
	for i := range h.body.Instrs {
		in := &h.body.Instrs[i]
		if end, used := last[in.Result]; used && h.isStreamed(in) {
			freed[end] += in.Result.Type.Registers()
		}
	}
	return freed
}
