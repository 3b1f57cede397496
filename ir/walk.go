package ir

import "math/bits"

// Visited is the set of nodes that one walk over a graph has met. Walks are
// short and many: a set that starts small, knows the numbers of an arena's nodes
// and never shrinks takes a third of the time of a map.
type Visited struct{ met Found[struct{}] }

// Add adds a node and reports that it is new.
func (v *Visited) Add(u *UOp) bool {
	if _, ok := v.met.Get(u); ok {
		return false
	}
	v.met.Set(u, struct{}{})
	return true
}

// Len is the number of nodes that were added.
func (v *Visited) Len() int { return v.met.count + len(v.met.rest) }

// Found is what one walk found out about nodes. Unlike Memo, whose pages follow
// the numbers, it takes room for its own nodes only.
type Found[T any] struct {
	rows  []memoRow[T] // open addressing; their count is a power of 2
	count int
	rest  map[*UOp]T // of nodes outside an arena
}

// smallFound is the number of rows of the smallest table.
const smallFound = 32

// slot is where the search for a number starts: neighbouring numbers are apart
// (Fibonacci hashing), so that runs of them from two places do not pile up.
func (f *Found[T]) slot(number uint32) int {
	return int(number * 2654435769 >> (33 - bits.Len32(uint32(len(f.rows)))))
}

// Get returns what was found out about u.
func (f *Found[T]) Get(u *UOp) (value T, ok bool) {
	if u.number == 0 {
		value, ok = f.rest[u]
		return value, ok
	}
	if f.count == 0 {
		return value, false
	}
	for at := f.slot(u.number); ; at = (at + 1) & (len(f.rows) - 1) {
		switch row := &f.rows[at]; row.node {
		case u:
			return row.value, true
		case nil:
			return value, false
		}
	}
}

// Set notes a value for u.
func (f *Found[T]) Set(u *UOp, value T) {
	if u.number == 0 {
		if f.rest == nil {
			f.rest = make(map[*UOp]T)
		}
		f.rest[u] = value
		return
	}
	if 2*f.count >= len(f.rows) {
		old := f.rows
		f.rows, f.count = make([]memoRow[T], max(smallFound, 4*len(old))), 0
		for i := range old {
			if old[i].node != nil {
				f.put(old[i])
			}
		}
	}
	f.put(memoRow[T]{value, u})
}

func (f *Found[T]) put(row memoRow[T]) {
	at := f.slot(row.node.number)
	for f.rows[at].node != nil && f.rows[at].node != row.node {
		at = (at + 1) & (len(f.rows) - 1)
	}
	if f.rows[at].node == nil {
		f.count++
	}
	f.rows[at] = row
}
