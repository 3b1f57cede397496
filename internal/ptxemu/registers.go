package ptxemu

import "math/bits"

// How many registers a kernel holds at once: liveness over the flow graph.

// slotSet is a set of data slots.
type slotSet []uint64

func (s slotSet) add(slot int)    { s[slot/64] |= 1 << (slot % 64) }
func (s slotSet) remove(slot int) { s[slot/64] &^= 1 << (slot % 64) }

// merge adds the slots of another set and reports whether any was new.
func (s slotSet) merge(other slotSet) bool {
	grown := false
	for i, w := range other {
		grown = grown || w&^s[i] != 0
		s[i] |= w
	}
	return grown
}

// words is the size of the set's registers in words of 32 bits.
func (s slotSet) words(widths map[int]int) int {
	n := 0
	for i, w := range s {
		for ; w != 0; w &= w - 1 {
			n += max(widths[64*i+bits.TrailingZeros64(w)]/32, 1)
		}
	}
	return n
}

// registers is the most words that are live in front of any step. widths are the
// bits of the slots that count.
func (g *flowGraph) registers(widths map[int]int) int {
	size := 0
	for slot := range widths {
		size = max(size, slot/64+1)
	}
	into := make([]slotSet, len(g.starts)+1) // live where a block begins; the last is the end
	for b := range into {
		into[b] = make(slotSet, size)
	}
	for changed := true; changed; {
		changed = false
		for b := len(g.starts) - 1; b >= 0; b-- {
			live := g.liveBehind(b, into, size)
			g.backwards(b, live, widths, nil)
			changed = into[b].merge(live) || changed
		}
	}
	most := 0
	for b := range g.starts {
		live := g.liveBehind(b, into, size)
		g.backwards(b, live, widths, func() { most = max(most, live.words(widths)) })
	}
	return most
}

// liveBehind is what a block's successors need.
func (g *flowGraph) liveBehind(b int, into []slotSet, size int) slotSet {
	live := make(slotSet, size)
	for _, n := range g.next[b] {
		live.merge(into[n])
	}
	return live
}

// backwards goes through a block from its end; seen is called in front of every
// step. A step under a guard may leave its result as it was.
func (g *flowGraph) backwards(b int, live slotSet, widths map[int]int, seen func()) {
	last := len(g.steps)
	if b+1 < len(g.starts) {
		last = g.starts[b+1]
	}
	for i := last - 1; i >= g.starts[b]; i-- {
		s := &g.steps[i]
		for _, slot := range s.writes {
			if s.guard < 0 && widths[slot] > 0 {
				live.remove(slot)
			}
		}
		for _, list := range [][]int{s.reads, s.joins} {
			for _, slot := range list {
				if widths[slot] > 0 {
					live.add(slot)
				}
			}
		}
		if seen != nil {
			seen()
		}
	}
}
