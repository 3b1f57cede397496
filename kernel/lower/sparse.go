package lower

import (
	"maps"
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/ir/program"
	"tgc/kernel/plan"
	"tgc/kernel/shape"
)

// Sparse loops of a GPU. A store in loops whose condition is read from memory, such as
// the terms of a SCATTER that belong to the points of a block, is carried out for few of
// the elements. The threads of a block look at one element each, some at a time, and note
// those that count as bits in shared memory, in a row for the warps to which the element
// belongs. Then each thread goes through the bits of its own row, in the order of the loop:
// what an element adds to meets its terms in their order.
//
// Of a row, which is mostly empty, each word has a bit in one of few words over it.

// Elements that a thread looks at in one iteration, all of whose loads are in flight
// together, and at most before the bits are gone through; and bytes for the bits.
const (
	sparseTurns = 8
	sparseLooks = 32
	sparseBytes = 32 << 10
)

const wordBits = 32

// sparseLoop is a loop over elements of which few count.
type sparseLoop struct {
	over       []int     // its ranges, outer before inner
	conditions []*ir.UOp // the same for all threads of the block
	thread     int       // the thread range that says whose an element is, -1: everybody's
	owner      *ir.UOp   // its coordinate for an element
	total      int64     // elements, 0: not known
}

// sparse reports a store whose outermost loops are sparse; nil: they are not.
func (l *storer) sparse(s shape.Store) *sparseLoop {
	if !l.block.onGPU() {
		return nil
	}
	p := &sparseLoop{thread: -1, total: 1}
	loops := lists.Filter(lists.Map(s.Node.Ranges(), l.free.Index.Of), func(i int) bool { return l.Roles[i] == plan.Serial })
	apart, loaded, depth := l.vector.Union(l.block.threads), false, 0
	for _, g := range s.Gates {
		if i, owner := l.ownerOf(g); owner != nil && p.owner == nil {
			p.thread, p.owner = i, owner
			continue
		}
		if free := l.free.Of(g); free.Meet(apart).Empty() {
			for k, i := range loops {
				if free.Has(i) {
					depth = max(depth, k+1)
				}
			}
			p.conditions = append(p.conditions, g)
			loaded = loaded || l.readsAlong(g, loops)
		}
	}
	p.over = loops[:depth]
	for _, i := range p.over {
		if !l.free.Of(l.Ranges[i].Src[0]).Meet(apart).Empty() || slices.ContainsFunc(p.over, l.free.Of(l.Ranges[i].Src[0]).Has) {
			return nil
		}
		p.total *= l.extent[i]
	}
	if !loaded {
		return nil
	}
	return p
}

// ownerOf takes a condition apart that one of the block's threads alone meets: thread
// range == a coordinate that is the same for all threads.
func (l *storer) ownerOf(g *ir.UOp) (thread int, owner *ir.UOp) {
	if g.Op != ir.OpCmpEq || g.Src[0].Op != ir.OpRange {
		return -1, nil
	}
	i := l.free.Index.Of(g.Src[0])
	if !l.block.threads.Has(i) || !l.free.Of(g.Src[1]).Meet(l.vector.Union(l.block.threads)).Empty() {
		return -1, nil
	}
	return i, g.Src[1]
}

// readsAlong reports a condition that reads memory at each element of some loops.
func (l *storer) readsAlong(g *ir.UOp, loops []int) bool {
	return analyse.Any(g, func(u *ir.UOp) bool {
		return (u.Op == ir.OpLoad || u.Op == ir.OpField) && slices.ContainsFunc(loops, l.free.Of(u).Has)
	})
}

// anySparse reports that the kernel has such a loop: its blocks are whole warps.
func (l *storer) anySparse() bool {
	return slices.ContainsFunc(l.Stores, func(s shape.Store) bool { return l.sparse(s) != nil })
}

// hits are the bits of the elements that count.
type hits struct {
	*lowering
	*sparseLoop
	rows, words int64          // of bits, and of a row
	share       int64          // coordinates of the thread range that have one row
	looks       int64          // elements that a thread looks at before the bits are gone through
	bits        *program.Value // words of bits, row after row
	groups      *program.Value // bits of words, likewise
}

// groupWords are the words over a row.
func (h *hits) groupWords() int64 { return (h.words + wordBits - 1) / wordBits }

// sparseLoop writes the loops of one store, whose body is what is left of it.
func (l *storer) sparseLoop(p *sparseLoop, at coords, body func()) {
	h := l.newHits(p)
	elements := h.elements()
	l.b.For(l.b.Index(0), elements, l.b.Index(h.looks*l.block.blockSize), nil, func(first *program.Value, _ []*program.Value) []*program.Value {
		l.block.barrier()
		h.clear()
		l.block.barrier()
		h.look(first, elements, at)
		l.block.barrier()
		h.take(first, body)
		return nil
	})
}

// elements is how many there are.
func (h *hits) elements() *program.Value {
	n := h.b.Index(1)
	for _, i := range h.over {
		n = h.b.Mul(n, h.rangeExtent(i))
	}
	return n
}

// rangeExtent is the extent of a range that is known before all loops.
func (h *hits) rangeExtent(i int) *program.Value {
	return h.exprs.lower(h.Ranges[i].Src[0], h.scopes.startCoords()).v
}

// newHits reserves shared memory: a row for each warp, or for warps that share elements.
func (l *storer) newHits(p *sparseLoop) *hits {
	h := &hits{lowering: l.lowering, sparseLoop: p, rows: 1, share: 1, looks: sparseLooks}
	if p.thread >= 0 {
		d := l.block.subAxes[p.thread]
		h.share = min(max(plan.WarpSize/d.stride, 1), d.extent)
		h.rows = (d.extent + h.share - 1) / h.share
	}
	for h.looks > 1 && (h.rows*h.looks*l.block.blockSize/8 > sparseBytes || p.total > 0 && p.total <= h.looks/2*l.block.blockSize) {
		h.looks /= 2
	}
	h.words = h.looks * l.block.blockSize / wordBits
	h.bits = l.block.newShared(ir.U32, h.rows*h.words)
	h.groups = l.block.newShared(ir.U32, h.rows*h.groupWords())
	return h
}

// clear sets all words to 0.
func (h *hits) clear() {
	for _, a := range []struct {
		array *program.Value
		words int64
	}{{h.bits, h.rows * h.words}, {h.groups, h.rows * h.groupWords()}} {
		h.b.For(h.block.tid, h.b.Index(a.words), h.b.Index(h.block.blockSize), nil, func(i *program.Value, _ []*program.Value) []*program.Value {
			h.b.Store(h.b.PtrAdd(a.array, i), h.b.Int(program.Scalar(ir.U32), 0), 4)
			return nil
		})
	}
}

// look notes which elements from the first on count.
func (h *hits) look(first, elements *program.Value, at coords) {
	turns := min(h.looks, sparseTurns)
	step := turns * h.block.blockSize
	h.b.For(h.b.Index(0), h.b.Index(h.looks*h.block.blockSize), h.b.Index(step), nil, func(from *program.Value, _ []*program.Value) []*program.Value {
		for _, x := range h.looksAt(first, from, elements, turns, at) {
			h.b.If(x.counts, func() []*program.Value { h.note(x.element, x.owner); return nil }, nil)
		}
		return nil
	})
}

// look is an element that a thread looks at.
type look struct {
	element, counts, owner *program.Value // its number among those that are looked at together
	scope                  *scope         // of what depends on it
}

// looksAt are some elements after the first ones, one each of the block's threads, then of
// the next. All loads come before the first use.
func (h *hits) looksAt(first, after, elements *program.Value, turns int64, at coords) []look {
	looks := make([]look, turns)
	for k := range looks {
		x := &looks[k]
		x.element = h.b.Add(h.b.Add(after, h.b.Index(int64(k)*h.block.blockSize)), h.block.tid)
		h.atElement(h.b.Add(first, x.element), elements, func(there *program.Value) {
			for _, c := range h.conditions {
				there = h.b.Alu(ir.OpAnd, there, h.exprs.settle(h.exprs.lower(c, at)).v)
			}
			x.counts, x.scope = there, h.scopes.stack[h.scopes.top()]
			if h.owner != nil {
				x.owner = h.exprs.settle(h.exprs.lower(h.owner, at)).v
			}
		})
	}
	return looks
}

// note sets the bit of an element, and that of its word.
func (h *hits) note(element, owner *program.Value) {
	word := h.exprs.indexDiv(element, h.b.Index(wordBits))
	bit := h.exprs.indexMod(element, h.b.Index(wordBits))
	group := h.exprs.indexDiv(word, h.b.Index(wordBits))
	above := h.exprs.indexMod(word, h.b.Index(wordBits))
	if owner != nil {
		row := h.exprs.indexDiv(owner, h.b.Index(h.share))
		word = h.b.Add(h.b.Mul(row, h.b.Index(h.words)), word)
		group = h.b.Add(h.b.Mul(row, h.b.Index(h.groupWords())), group)
	}
	set := func(array, word, bit *program.Value) {
		one := h.b.Int(program.Scalar(ir.U32), 1)
		h.b.Atomic(ir.OpOr, h.b.PtrAdd(array, word), h.b.Alu(ir.OpShl, one, h.b.Cast(bit, ir.U32)))
	}
	set(h.bits, word, bit)
	set(h.groups, group, above)
}

// take runs the body for each element that this thread's row has, in order.
func (h *hits) take(first *program.Value, body func()) {
	row := h.b.Index(0)
	if h.thread >= 0 {
		row = h.exprs.indexDiv(h.block.threadIndex(h.thread), h.b.Index(h.share))
	}
	bits := h.b.PtrAdd(h.bits, h.b.Mul(row, h.b.Index(h.words)))
	groups := h.b.PtrAdd(h.groups, h.b.Mul(row, h.b.Index(h.groupWords())))
	h.b.For(h.b.Index(0), h.b.Index(h.groupWords()), h.b.Index(1), nil, func(group *program.Value, _ []*program.Value) []*program.Value {
		h.eachBit(groups, group, func(word *program.Value) {
			h.eachBit(bits, word, func(element *program.Value) {
				h.atElement(h.b.Add(first, element), nil, func(*program.Value) { body() })
			})
		})
		return nil
	})
}

// eachBit runs f for the bits of a word that are set, lowest first, with their numbers in
// the array.
func (h *hits) eachBit(array, word *program.Value, f func(bit *program.Value)) {
	u32 := program.Scalar(ir.U32)
	bits := h.b.Load(h.b.PtrAdd(array, word), 1, 4)
	first := h.b.Mul(word, h.b.Index(wordBits))
	h.b.If(h.b.Lt(h.b.Int(u32, 0), bits), func() []*program.Value {
		h.b.For(h.b.Index(0), h.b.Cast(h.ones(bits), ir.I64), h.b.Index(1), []*program.Value{bits}, func(_ *program.Value, carried []*program.Value) []*program.Value {
			rest := h.b.Alu(ir.OpAnd, carried[0], h.b.Sub(carried[0], h.b.Int(u32, 1)))
			lowest := h.b.Cast(h.b.Alu(ir.OpXor, carried[0], rest), ir.F32) // a power of two: its exponent is the bit's number
			exponent := h.b.Alu(ir.OpShr, h.b.Bitcast(lowest, ir.U32), h.b.Int(u32, 23))
			f(h.b.Add(first, h.b.Sub(h.b.Cast(exponent, ir.I64), h.b.Index(127))))
			return []*program.Value{rest}
		})
		return nil
	}, nil)
}

// atElement runs f where the loops' ranges have the values of an element, in the current
// block; of one past the end, those of the last, and there is false.
func (h *hits) atElement(element, elements *program.Value, f func(there *program.Value)) {
	var there *program.Value
	if elements != nil {
		there = h.b.Lt(element, elements)
		element = h.b.Where(there, element, h.b.Sub(elements, h.b.Index(1)))
	}
	s := newScope(h.b.Block())
	for k, i := range slices.Backward(h.over) {
		s.binds.Add(i)
		if k == 0 {
			s.index[i] = element
			break
		}
		n := h.rangeExtent(i)
		s.index[i], element = h.exprs.indexMod(element, n), h.exprs.indexDiv(element, n)
	}
	h.scopes.within(s, func() { f(there) })
}

// ones counts the bits of a word.
func (l *hits) ones(x *program.Value) *program.Value {
	word := program.Scalar(ir.U32)
	shifted := func(x *program.Value, by int64) *program.Value { return l.b.Alu(ir.OpShr, x, l.b.Int(word, by)) }
	and := func(x *program.Value, mask int64) *program.Value { return l.b.Alu(ir.OpAnd, x, l.b.Int(word, mask)) }
	x = l.b.Sub(x, and(shifted(x, 1), 0x55555555))
	x = l.b.Add(and(x, 0x33333333), and(shifted(x, 2), 0x33333333))
	x = and(l.b.Add(x, shifted(x, 4)), 0x0f0f0f0f)
	return shifted(l.b.Mul(x, l.b.Int(word, 0x01010101)), 24)
}

// Terms in any order. What a sparse loop adds to integers has one result whatever the order:
// a thread adds the terms that it looks at itself, by atomic operations on the elements of its
// block, and nothing is noted, waited for or gone through again.

// anyOrder is a store of a sparse loop that combines integers in memory with a term.
type anyOrder struct {
	shape.Store // without the thread whose point it is
	op          ir.Op
	term        *ir.UOp
}

// anyOrder reports such a store; nil: the terms of a point must meet in their order, or
// several threads have parts of what a term adds.
func (l *storer) anyOrder(p *sparseLoop, s shape.Store) *anyOrder {
	a := l.Arena
	own := func(u *ir.UOp) *ir.UOp { return u }
	if p.thread >= 0 {
		points := map[*ir.UOp]*ir.UOp{l.Ranges[p.thread]: p.owner}
		own = func(u *ir.UOp) *ir.UOp { return l.Simplify.Do(a.Substitute(u, points)) }
	}
	node := own(s.Node)
	if node.Op != ir.OpStore {
		return nil
	}
	value := node.Src[1]
	if !program.HasAtomic(value.Op, value.DType) || !l.free.Of(node).Meet(l.vector.Union(l.block.threads)).Empty() {
		return nil
	}
	for _, r := range node.Ranges() {
		if i := l.free.Index.Of(r); l.Roles[i] == plan.Serial && !slices.Contains(p.over, i) {
			return nil
		}
	}
	old := slices.IndexFunc(value.Src, func(u *ir.UOp) bool {
		return u.Op == ir.OpLoad && u.Src[0] == node.Src[0] && slices.Equal(u.Indices(), node.Indices())
	})
	if old < 0 {
		return nil
	}
	c := &anyOrder{Store: shape.Store{Node: node}, op: value.Op, term: value.Src[1-old]}
	for _, g := range s.Gates {
		c.Gates = append(c.Gates, own(g))
	}
	return c
}

// anyOrderLoop writes its loops: elements in turns among the threads of the block.
func (l *storer) anyOrderLoop(p *sparseLoop, c *anyOrder, at coords) {
	h := &hits{lowering: l.lowering, sparseLoop: &sparseLoop{over: p.over, conditions: []*ir.UOp{l.storeCondition(c.Store)}}}
	turns := int64(sparseTurns)
	for turns > 1 && p.total > 0 && p.total <= turns/2*l.block.blockSize {
		turns /= 2
	}
	elements := h.elements()
	l.block.barrier()
	l.b.For(l.b.Index(0), elements, l.b.Index(turns*l.block.blockSize), nil, func(first *program.Value, _ []*program.Value) []*program.Value {
		for _, x := range h.looksAt(first, l.b.Index(0), elements, turns, at) {
			l.b.If(x.counts, func() []*program.Value { h.combine(c, x.scope, at); return nil }, nil)
		}
		return nil
	})
	l.block.barrier()
}

// combine adds the term of an element, in a block of its own.
func (h *hits) combine(c *anyOrder, element *scope, at coords) {
	s := newScope(h.b.Block())
	s.binds, s.index, s.memo = element.binds, element.index, maps.Clone(element.memo)
	h.scopes.within(s, func() {
		term := h.exprs.settle(h.exprs.lower(c.term, at)).v
		h.b.Atomic(c.op, h.stores.storePlace(c.Node, at).ptr, term)
	})
}
