package tokenizer

import (
	"math"
	"slices"
)

// Both families build tokens the same way: start with one symbol per character
// and replace the best pair of neighbours by one symbol until no pair is left.
// "Best" is a number, the priority (lower is better); among equals the
// leftmost pair goes first.

// A symbol is a span of the text, text[start:end], and a node of a list.
type symbol struct {
	id         int32 // BPE: which symbol; SPM does not use it
	start, end int32 // byte offsets; start == end once merged into the left neighbour
	prev, next int32 // indices of the neighbours; -1 at the ends
}

// noMerge is the priority of a pair that does not merge.
const noMerge = math.MaxUint32

// A pairer says at which priority two neighbouring symbols merge, and the id
// of the symbol that results.
type pairer interface {
	pair(left, right *symbol) (priority uint32, id int32)
}

// A candidate is a pair that may merge. It is stale when either symbol has
// grown or gone: then length is not the length of both together.
type candidate struct {
	key         uint64 // priority<<32 | left: the order of merging
	left, right int32  // indices of symbols
	length      int32  // bytes of both symbols together
	id          int32  // symbol that replaces them
}

// candidates is a binary heap with the smallest key first. (container/heap
// would allocate for every element.)
type candidates []candidate

// order makes a heap of any order of candidates.
func (q candidates) order() {
	for i := len(q)/2 - 1; i >= 0; i-- {
		q.down(i)
	}
}

func (q *candidates) push(c candidate) {
	*q = append(*q, c)
	h := *q
	for i := len(h) - 1; i > 0; {
		parent := (i - 1) / 2
		if h[parent].key <= h[i].key {
			break
		}
		h[parent], h[i] = h[i], h[parent]
		i = parent
	}
}

func (q *candidates) pop() candidate {
	h := *q
	best, last := h[0], len(h)-1
	h[0] = h[last]
	*q = h[:last]
	q.down(0)
	return best
}

func (q candidates) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(q) {
			return
		}
		if child+1 < len(q) && q[child+1].key < q[child].key {
			child++
		}
		if q[i].key <= q[child].key {
			return
		}
		q[i], q[child] = q[child], q[i]
		i = child
	}
}

// A merger holds the memory of merging, so that one call after the other can
// use it again. Set symbols with add, call merge, read symbols in order.
type merger struct {
	symbols []symbol
	queue   candidates
	offers  []candidate // the short way: offers[i] is the merge of symbols i and i+1
}

// shortLength is the number of symbols up to which scanning all pairs for the
// best one beats a priority queue.
const shortLength = 24

// reset forgets the symbols and makes room for n. The memory of an unusually
// long text is let go.
func (m *merger) reset(n int) {
	const keep = 1 << 16 // symbols
	if cap(m.symbols) > keep {
		*m = merger{}
	}
	m.symbols = slices.Grow(m.symbols[:0], n)
}

// add appends the symbol for text[start:end].
func (m *merger) add(id int32, start, end int) {
	m.symbols = append(m.symbols, symbol{id: id, start: int32(start), end: int32(end)})
}

// merge merges until no pair is left and leaves the remaining symbols, in
// order, in m.symbols.
func (m *merger) merge(p pairer) {
	if len(m.symbols) <= shortLength {
		m.mergeShort(p)
		return
	}
	m.mergeLong(p)
}

// mergeShort takes quadratic time in the number of symbols.
func (m *merger) mergeShort(p pairer) {
	s := m.symbols
	m.offers = m.offers[:0]
	for i := 0; i+1 < len(s); i++ {
		m.offers = append(m.offers, offer(p, s, i))
	}
	offers := m.offers
	for len(offers) > 0 {
		best := 0
		for i := range offers {
			if offers[i].key < offers[best].key {
				best = i
			}
		}
		if offers[best].key == noMerge {
			break
		}
		s[best].id, s[best].end = offers[best].id, s[best+1].end
		s = slices.Delete(s, best+1, best+2)
		offers = slices.Delete(offers, best, best+1)
		if best > 0 {
			offers[best-1] = offer(p, s, best-1)
		}
		if best < len(offers) {
			offers[best] = offer(p, s, best)
		}
	}
	m.symbols = s
}

// offer returns the merge of symbols i and i+1; its key is the priority alone.
func offer(p pairer, s []symbol, i int) candidate {
	priority, id := p.pair(&s[i], &s[i+1])
	return candidate{key: uint64(priority), id: id}
}

// mergeLong takes time in proportion to n log n.
func (m *merger) mergeLong(p pairer) {
	s := m.symbols
	for i := range s {
		s[i].prev, s[i].next = int32(i-1), int32(i+1)
	}
	s[len(s)-1].next = -1

	m.queue = m.queue[:0]
	for i := range len(s) - 1 {
		if c, ok := proposal(p, s, int32(i)); ok {
			m.queue = append(m.queue, c)
		}
	}
	m.queue.order()
	for len(m.queue) > 0 {
		best := m.queue.pop()
		left, right := &s[best.left], &s[best.right]
		gone := left.start == left.end || right.start == right.end
		if gone || right.end-left.start != best.length {
			continue // stale
		}
		left.id, left.end = best.id, right.end
		right.start = right.end
		left.next = right.next
		if left.next >= 0 {
			s[left.next].prev = best.left
		}
		if left.prev >= 0 {
			m.propose(p, left.prev)
		}
		m.propose(p, best.left)
	}
	m.symbols = slices.DeleteFunc(s, func(s symbol) bool { return s.start == s.end })
}

// propose queues the merge of symbol left with its right neighbour, if any.
func (m *merger) propose(p pairer, left int32) {
	if c, ok := proposal(p, m.symbols, left); ok {
		m.queue.push(c)
	}
}

func proposal(p pairer, s []symbol, left int32) (candidate, bool) {
	right := s[left].next
	if right < 0 {
		return candidate{}, false
	}
	priority, id := p.pair(&s[left], &s[right])
	if priority == noMerge {
		return candidate{}, false
	}
	return candidate{
		key:  uint64(priority)<<32 | uint64(left),
		left: left, right: right, length: s[right].end - s[left].start, id: id,
	}, true
}
