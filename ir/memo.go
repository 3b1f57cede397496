package ir

// Memo remembers something for every node of a graph: what a map from nodes
// does, at a third of the time, because the nodes of an arena are numbered. It
// is never walked, so the numbers, which tell the order of creation, decide
// nothing. Nodes outside an arena, and those of a second one, are kept in a map.
type Memo[T any] struct {
	pages []*[memoPage]memoRow[T]
	rest  map[*UOp]T
}

type memoRow[T any] struct {
	value T // first: no padding behind an empty one
	node  *UOp
}

// memoPage is the number of rows that are made at once.
const memoPage = 64

// Get returns what is remembered for u.
func (m *Memo[T]) Get(u *UOp) (value T, ok bool) {
	page, at := u.number/memoPage, u.number%memoPage
	if int(page) < len(m.pages) && m.pages[page] != nil {
		if row := &m.pages[page][at]; row.node == u {
			return row.value, true
		}
	}
	if m.rest != nil {
		value, ok = m.rest[u]
	}
	return value, ok
}

// Has reports that something is remembered for u.
func (m *Memo[T]) Has(u *UOp) bool {
	_, ok := m.Get(u)
	return ok
}

// Set remembers a value for u.
func (m *Memo[T]) Set(u *UOp, value T) {
	if u.number == 0 {
		m.setRest(u, value)
		return
	}
	page, at := int(u.number/memoPage), u.number%memoPage
	if page >= len(m.pages) {
		m.pages = append(m.pages, make([]*[memoPage]memoRow[T], page+1-len(m.pages))...)
	}
	if m.pages[page] == nil {
		m.pages[page] = new([memoPage]memoRow[T])
	}
	row := &m.pages[page][at]
	if row.node != nil && row.node != u {
		m.setRest(u, value)
		return
	}
	row.node, row.value = u, value
}

func (m *Memo[T]) setRest(u *UOp, value T) {
	if m.rest == nil {
		m.rest = make(map[*UOp]T)
	}
	m.rest[u] = value
}
