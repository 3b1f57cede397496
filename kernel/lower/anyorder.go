package lower

import (
	"maps"
	"slices"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/kernel/plan"
	"tgc/kernel/shape"
)

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
		h.eachLook(first, l.b.Index(0), elements, turns, at, func(x look) {
			l.b.If(x.counts, func() []*program.Value { h.combine(c, x.scope, at); return nil }, nil)
		})
		return nil
	})
	l.block.barrier()
}

// combine adds the term of an element, in a block of its own.
func (h *hits) combine(c *anyOrder, element *scope, at coords) {
	saved := h.scopes.stack
	s := newScope(h.b.Block())
	s.binds, s.index, s.memo = element.binds, element.index, maps.Clone(element.memo)
	h.scopes.stack = append(saved[:len(saved):len(saved)], s)
	term := h.exprs.settle(h.exprs.lower(c.term, at)).v
	h.b.Atomic(c.op, h.stores.storePlace(c.Node, at).ptr, term)
	h.scopes.stack = saved
}
