package lower

import (
	"slices"

	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/ir/program"
	"tgc/kernel/plan"
	"tgc/kernel/shape"
)

// Sparse loops of a GPU. A store in a loop whose condition is read from memory, such as
// the terms of a SCATTER that belong to the points of a block, is carried out for few of
// the elements. The lanes of a warp look at an element each, some at a time, and the warp
// then takes those that count one after the other, in the order of the loop: every lane
// has the bits of all.
const sparseTurns = 8 // elements that a lane looks at in one iteration: loads in flight

// sparse reports a store whose loop over a range is sparse: which of its conditions are
// read from memory at each element and are the same for all threads of a block.
func (l *storer) sparse(s shape.Store, i int) (conditions []*ir.UOp) {
	if !l.block.onGPU() || i != l.innermostSerial(s, i) {
		return nil
	}
	apart := l.vector.Union(l.block.threads)
	for _, g := range s.Gates {
		free := l.free.Of(g)
		if free.Has(i) && free.Meet(apart).Empty() && analyse.Any(g, func(u *ir.UOp) bool {
			return (u.Op == ir.OpLoad || u.Op == ir.OpField) && l.free.Of(u).Has(i)
		}) {
			conditions = append(conditions, g)
		}
	}
	return conditions
}

// anySparse reports that the kernel has such a loop: its blocks are whole warps.
func (l *storer) anySparse() bool {
	return slices.ContainsFunc(l.Stores, func(s shape.Store) bool {
		return slices.ContainsFunc(s.Node.Ranges(), func(r *ir.UOp) bool {
			i := l.free.Index.Of(r)
			return l.Roles[i] == plan.Serial && len(l.sparse(s, i)) > 0
		})
	})
}

// innermostSerial is the innermost serial range on which conditions of a store depend that
// depend on a range.
func (l *storer) innermostSerial(s shape.Store, i int) int {
	innermost := i
	for _, r := range s.Node.Ranges() {
		at := l.free.Index.Of(r)
		if l.Roles[at] == plan.Serial && slices.ContainsFunc(s.Gates, func(g *ir.UOp) bool { f := l.free.Of(g); return f.Has(i) && f.Has(at) }) {
			innermost = at
		}
	}
	return innermost
}

// sparseLoop writes the loop over range i of one store, whose body is what is left of it.
func (l *storer) sparseLoop(i int, conditions []*ir.UOp, at coords, body func()) {
	hi := l.exprs.lower(l.Ranges[i].Src[0], l.scopes.startCoords()).v
	lane := l.block.threadPart(threadSubAxis{1, plan.WarpSize})
	l.b.For(l.b.Index(0), hi, l.b.Index(plan.WarpSize*sparseTurns), nil, func(first *program.Value, _ []*program.Value) []*program.Value {
		hits := make([]*program.Value, sparseTurns) // all loads come before the first use
		l.folds.inLoop(func() []*program.Value {
			for k := range hits {
				hits[k] = l.hit(i, l.b.Add(l.b.Add(first, l.b.Index(int64(k*plan.WarpSize))), lane), hi, conditions, at)
			}
			return nil
		})
		for k, h := range hits {
			l.takeHits(i, h, l.b.Add(first, l.b.Index(int64(k*plan.WarpSize))), lane, body)
		}
		return nil
	})
}

// hit is 1 where an element of range i meets the conditions, else 0.
func (l *storer) hit(i int, element, hi *program.Value, conditions []*ir.UOp, at coords) *program.Value {
	there := l.b.Lt(element, hi)
	last := l.b.Sub(hi, l.b.Index(1))
	l.at(i, l.b.Where(there, element, last), func() {
		for _, c := range conditions {
			there = l.b.Alu(ir.OpAnd, there, l.exprs.settle(l.exprs.lower(c, at)).v)
		}
	})
	return l.b.Cast(there, ir.I32)
}

// at runs f where range i has a value, in the current block.
func (l *storer) at(i int, element *program.Value, f func()) {
	saved := l.scopes.stack
	s := newScope(l.b.Block())
	s.binds.Add(i)
	s.index[i] = element
	l.scopes.stack = append(saved[:len(saved):len(saved)], s)
	f()
	l.scopes.stack = saved
}

// overWarp folds a value over the lanes of a warp.
func (l *storer) overWarp(op ir.Op, x *program.Value) *program.Value {
	for mask := int64(plan.WarpSize / 2); mask > 0; mask /= 2 {
		x = l.b.Alu(op, x, l.folds.exchange(x, mask))
	}
	return x
}

// takeHits runs the body for each lane that has a hit, lowest first: the element is the
// first one's plus the number of the lane.
func (l *storer) takeHits(i int, hit, first, lane *program.Value, body func()) {
	word := program.Scalar(ir.U32)
	bit := l.b.Alu(ir.OpShl, l.b.Cast(hit, ir.U32), l.b.Cast(lane, ir.U32))
	bits := l.b.Bitcast(l.overWarp(ir.OpAdd, l.b.Bitcast(bit, ir.I32)), ir.U32)
	count := l.b.Cast(l.ones(bits), ir.I64)
	l.b.For(l.b.Index(0), count, l.b.Index(1), []*program.Value{bits}, func(_ *program.Value, carried []*program.Value) []*program.Value {
		rest := l.b.Alu(ir.OpAnd, carried[0], l.b.Sub(carried[0], l.b.Int(word, 1)))
		lowest := l.b.Cast(l.b.Alu(ir.OpXor, carried[0], rest), ir.F32) // a power of two: its exponent is the lane
		exponent := l.b.Alu(ir.OpShr, l.b.Bitcast(lowest, ir.U32), l.b.Int(word, 23))
		element := l.b.Add(first, l.b.Sub(l.b.Cast(exponent, ir.I64), l.b.Index(127)))
		l.folds.inLoop(func() []*program.Value { l.at(i, element, body); return nil })
		return []*program.Value{rest}
	})
}

// ones counts the bits of a word.
func (l *storer) ones(x *program.Value) *program.Value {
	word := program.Scalar(ir.U32)
	shifted := func(x *program.Value, by int64) *program.Value { return l.b.Alu(ir.OpShr, x, l.b.Int(word, by)) }
	and := func(x *program.Value, mask int64) *program.Value { return l.b.Alu(ir.OpAnd, x, l.b.Int(word, mask)) }
	x = l.b.Sub(x, and(shifted(x, 1), 0x55555555))
	x = l.b.Add(and(x, 0x33333333), and(shifted(x, 2), 0x33333333))
	x = and(l.b.Add(x, shifted(x, 4)), 0x0f0f0f0f)
	return shifted(l.b.Mul(x, l.b.Int(word, 0x01010101)), 24)
}
