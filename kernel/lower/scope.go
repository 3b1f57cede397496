package lower

import (
	"math/bits"

	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/ir/program"
)

// scopes are the open loops, and the coordinates of what is computed in them.
type scopes struct {
	*lowering
	stack    []*scope
	prologue *program.Block
	bits     []uint // the first of each vector range's coordinate in a memo key
}

// val is a lowered value: a scalar, or a vector over lane ranges.
type val struct {
	v       *program.Value
	subAxes []int            // ranges that index the lanes, row-major; none: a scalar
	pend    analyse.RangeSet // lanes still to be summed: the value is their sum
	depth   int              // of the scope that holds it
}

// coords says where copies and lanes stand: a number for a copy, laneCoord for
// a lane, unset for a range that no enclosing node opened.
type coords []int32

const (
	laneCoord = -1
	unset     = -2
)

func (c coords) with(i int, v int32) coords {
	out := append(coords(nil), c...)
	out[i] = v
	return out
}

// startCoords has all lanes as lanes and no copy chosen.
func (l *scopes) startCoords() coords {
	c := make(coords, len(l.Ranges))
	for i := range c {
		c[i] = unset
		if l.lanes.Has(i) {
			c[i] = laneCoord
		}
	}
	return c
}

// placeBits finds the bits of a coordinate in a memo key, within one of its words.
func placeBits(offset uint, extent int64) (first, next uint) {
	width := uint(bits.Len64(uint64(extent) + 1))
	if offset < 64 && offset+width > 64 {
		offset = 64
	}
	return offset, offset + width
}

// memoKey is a node and the coordinates that it depends on.
type memoKey struct {
	node *ir.UOp
	at   [2]uint64
}

func (l *scopes) key(u *ir.UOp, at coords) memoKey {
	k := memoKey{node: u}
	for _, i := range l.free.Of(u).Meet(l.vector).List() {
		if at[i] == unset {
			fail("a copy of range %d is used outside its loop", i)
		}
		k.at[l.bits[i]>>6] |= uint64(at[i]+1) << (l.bits[i] & 63)
	}
	return k
}

// scope is an open block: the prologue, the grid loop's body or a loop's body.
// Values are emitted into the outermost scope that binds all ranges they
// depend on, which is loop-invariant code motion by construction.
type scope struct {
	block   *program.Block
	binds   analyse.RangeSet
	index   map[int]*program.Value
	memo    map[memoKey]val
	derived map[derivedKey]*program.Value
	words   map[wordKey]word
	varies  analyse.RangeSet // threads on which the number of iterations depends
}

// derivedKey names a value made from another: an expansion, a fold, a pointer.
type derivedKey struct {
	from *program.Value
	what string
}

func newScope(b *program.Block) *scope {
	return &scope{block: b, index: make(map[int]*program.Value), memo: make(map[memoKey]val),
		derived: make(map[derivedKey]*program.Value), words: make(map[wordKey]word)}
}

// depth is the scope where something with these free ranges can stand; ok is
// false if a loop range among them is not open.
func (l *scopes) depthOf(free analyse.RangeSet) (depth int, ok bool) {
	rest := free.Minus(l.vector).Minus(l.block.threads)
	for d := len(l.stack) - 1; d > 0 && !rest.Empty(); d-- {
		if hit := rest.Meet(l.stack[d].binds); !hit.Empty() {
			depth = max(depth, d)
			rest = rest.Minus(hit)
		}
	}
	return depth, rest.Empty()
}

func (l *scopes) depth(u *ir.UOp) int {
	d, ok := l.depthOf(l.free.Of(u))
	if !ok {
		fail("%s depends on a loop that is not open", u.Op)
	}
	return d
}

// in runs f with the scopes up to depth d open.
func (l *scopes) in(d int, f func()) {
	saved := l.stack
	l.stack = saved[: d+1 : d+1]
	l.b.With(l.stack[d].block, f)
	l.stack = saved
}

// within runs f with one more scope open.
func (l *scopes) within(s *scope, f func()) {
	saved := l.stack
	l.stack = append(saved[:len(saved):len(saved)], s)
	f()
	l.stack = saved
}

// top is the current depth.
func (l *scopes) top() int { return len(l.stack) - 1 }

// derive makes a value from another in its scope, once.
func (l *scopes) derive(depth int, key derivedKey, make func() *program.Value) *program.Value {
	s := l.stack[depth]
	if v, ok := s.derived[key]; ok {
		return v
	}
	var v *program.Value
	l.in(depth, func() { v = make() })
	s.derived[key] = v
	return v
}

// loop opens a serial loop over range i in the current scope, runs the body
// and closes it; body returns the next value of each carried value.
func (l *scopes) loop(i int, body func(open *program.Loop) []*program.Value) []*program.Value {
	r := l.Ranges[i]
	hi := l.exprs.lower(r.Src[0], l.startCoords()).v
	open := l.b.BeginFor(l.b.Index(0), hi, l.b.Index(1))
	s := newScope(open.Body)
	s.binds.Add(i)
	s.index[i] = open.Index
	s.varies = l.free.Of(r.Src[0]).Meet(l.block.threads)
	var next []*program.Value
	l.within(s, func() {
		l.memory.openPrefetch(i)
		next = body(open)
	})
	return l.b.EndFor(open, next...)
}
