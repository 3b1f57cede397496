package heuristic

import "math/bits"

// axisSet is a set of axes by index, of any size.
type axisSet []uint64

func (s axisSet) has(i int) bool { return i>>6 < len(s) && s[i>>6]>>(i&63)&1 == 1 }

func (s axisSet) empty() bool {
	for _, w := range s {
		if w != 0 {
			return false
		}
	}
	return true
}

// with, union, minus and meet give new sets.
func (s axisSet) with(i int) axisSet {
	out := make(axisSet, max(len(s), i>>6+1))
	copy(out, s)
	out[i>>6] |= 1 << (i & 63)
	return out
}

func (s axisSet) union(t axisSet) axisSet {
	if len(t) > len(s) {
		s, t = t, s
	}
	if t.empty() {
		return s
	}
	out := append(axisSet(nil), s...)
	for i, w := range t {
		out[i] |= w
	}
	return out
}

func (s axisSet) minus(t axisSet) axisSet {
	out := append(axisSet(nil), s...)
	for i := range out {
		if i < len(t) {
			out[i] &^= t[i]
		}
	}
	return out
}

func (s axisSet) equal(t axisSet) bool { return s.minus(t).empty() && t.minus(s).empty() }

func (s axisSet) without(i int) axisSet { return s.minus(axisSet(nil).with(i)) }

func (s axisSet) meet(t axisSet) axisSet {
	out := make(axisSet, min(len(s), len(t)))
	for i := range out {
		out[i] = s[i] & t[i]
	}
	return out
}

// list is in ascending order.
func (s axisSet) list() []int {
	var out []int
	for w, word := range s {
		for ; word != 0; word &= word - 1 {
			out = append(out, w<<6+bits.TrailingZeros64(word))
		}
	}
	return out
}
