package ir

import "math/bits"

// NodeMap maps nodes to values: what a Go map does, at a third of the time,
// because the nodes of an arena are numbered. The zero NodeMap is empty. It is
// never walked, so the numbers, which tell the order of creation, decide nothing.
//
// It starts as a small hash table, which is what the many short walks over few
// nodes need, and becomes pages by number once it holds a good part of all
// nodes up to its largest, as the memo of an analysis does. Nodes outside an
// arena, and a second arena's in pages that are taken, are kept in a Go map.
type NodeMap[T any] struct {
	rows  []nodeRow[T] // open addressing; their count is a power of 2
	pages []*[nodePage]nodeRow[T]
	rest  map[*UOp]T
	count int    // of rows in use, or in pages
	last  uint32 // largest number
}

type nodeRow[T any] struct {
	value T // first: no padding after an empty one
	node  *UOp
}

const (
	nodePage    = 64  // rows made at once
	smallTable  = 32  // rows of the smallest table
	leastPaged  = 256 // nodes from which on a map may become pages
	pagedSpread = 8   // numbers per node up to which it does
)

// slot is where the search for a number starts: neighbouring numbers are kept
// apart (Fibonacci hashing), so that runs of them from two places do not pile up.
func (m *NodeMap[T]) slot(number uint32) int {
	return int(number * 2654435769 >> (33 - bits.Len32(uint32(len(m.rows)))))
}

// Get returns the value of u.
func (m *NodeMap[T]) Get(u *UOp) (value T, ok bool) {
	if m.pages != nil {
		page, at := u.number/nodePage, u.number%nodePage
		if int(page) < len(m.pages) && m.pages[page] != nil {
			if row := &m.pages[page][at]; row.node == u {
				return row.value, true
			}
		}
	} else if m.count > 0 && u.number != 0 {
		for at := m.slot(u.number); ; at = (at + 1) & (len(m.rows) - 1) {
			switch row := &m.rows[at]; row.node {
			case u:
				return row.value, true
			case nil:
				return value, false
			}
		}
	}
	if m.rest != nil {
		value, ok = m.rest[u]
	}
	return value, ok
}

// Of is the value of u, the zero value where it has none.
func (m *NodeMap[T]) Of(u *UOp) T {
	value, _ := m.Get(u)
	return value
}

// Has reports that u has a value.
func (m *NodeMap[T]) Has(u *UOp) bool {
	_, ok := m.Get(u)
	return ok
}

// Len is the number of nodes that have a value.
func (m *NodeMap[T]) Len() int { return m.count + len(m.rest) }

// Set gives u a value.
func (m *NodeMap[T]) Set(u *UOp, value T) {
	switch {
	case u.number == 0:
		m.setRest(u, value)
	case m.pages != nil:
		m.setPaged(u, value)
	default:
		if 2*m.count >= len(m.rows) && m.grow() {
			m.setPaged(u, value)
			return
		}
		m.last = max(m.last, u.number)
		m.put(nodeRow[T]{value, u})
	}
}

func (m *NodeMap[T]) setRest(u *UOp, value T) {
	if m.rest == nil {
		m.rest = make(map[*UOp]T)
	}
	m.rest[u] = value
}

func (m *NodeMap[T]) setPaged(u *UOp, value T) {
	page, at := int(u.number/nodePage), u.number%nodePage
	if page >= len(m.pages) {
		m.pages = append(m.pages, make([]*[nodePage]nodeRow[T], page+1-len(m.pages))...)
	}
	if m.pages[page] == nil {
		m.pages[page] = new([nodePage]nodeRow[T])
	}
	row := &m.pages[page][at]
	switch row.node {
	case u:
		row.value = value
	case nil:
		row.node, row.value = u, value
		m.count++
	default:
		m.setRest(u, value)
	}
}

// grow makes room in the table, or pages of it, which it reports.
func (m *NodeMap[T]) grow() (paged bool) {
	old := m.rows
	paged = m.count >= leastPaged && int(m.last) <= pagedSpread*m.count
	m.count = 0
	if paged {
		m.rows = nil
		m.pages = make([]*[nodePage]nodeRow[T], m.last/nodePage+1)
	} else {
		m.rows = make([]nodeRow[T], max(smallTable, 4*len(old)))
	}
	for _, row := range old {
		switch {
		case row.node == nil:
		case paged:
			m.setPaged(row.node, row.value)
		default:
			m.put(row)
		}
	}
	return paged
}

func (m *NodeMap[T]) put(row nodeRow[T]) {
	at := m.slot(row.node.number)
	for m.rows[at].node != nil && m.rows[at].node != row.node {
		at = (at + 1) & (len(m.rows) - 1)
	}
	if m.rows[at].node == nil {
		m.count++
	}
	m.rows[at] = row
}

// Visited is the set of nodes that a walk over a graph has met.
type Visited struct{ met NodeMap[struct{}] }

// Add adds a node and reports that it is new.
func (v *Visited) Add(u *UOp) bool {
	before := v.met.Len()
	v.met.Set(u, struct{}{})
	return v.met.Len() > before
}

// Len is the number of nodes that were added.
func (v *Visited) Len() int { return v.met.Len() }
