package lower

import (
	"tgc/internal/lists"
	"tgc/ir/program"
	"tgc/kernel/plan"
)

// How warps combine their items through shared memory.

// folder combines what the threads of a block have.
type folder struct{ *lowering }

// fold combines two lists of values, item by item.
type fold func(x, y []*program.Value) []*program.Value

// folding is how the items of threads are combined.
type folding struct {
	fold
	symmetric bool // with the same bits in either order
	apart     bool // each item by itself, all in the same way
}

// mostParts is how many parts each thread reads one after the other. A block of 1,024 threads
// reads 64 parts of 16 in as many rounds of all of its warps, in two turns of 8 it reads 16.
const mostParts = 16

// firstParts is how many neighbouring parts are combined first, where the others are combined
// after them: all of few.
func firstParts(parts int64) int64 {
	best := parts
	for n := int64(2); parts > mostParts && n < parts; n++ {
		if parts%n == 0 && n+parts/n < best+parts/best {
			best = n
		}
	}
	return best
}

// combineWarps combines items that lie step threads apart.
func (l *folder) combineWarps(items []*program.Value, step, parts int64, f folding) []*program.Value {
	first, inUse := firstParts(parts), l.block.repeats()
	if f.apart && first == parts && l.paysScattered(items, parts) {
		return l.combineScattered(items, step, parts, inUse, f.fold)
	}
	arrays := lists.Map(items, func(x *program.Value) *program.Value {
		return l.block.newShared(x.Type.Elem, l.block.blockSize*int64(x.Type.Lanes))
	})
	items = l.combineShared(arrays, items, step, first, inUse, f.fold)
	if first < parts {
		items = l.combineShared(arrays, items, step*first, parts/first, true, f.fold)
	}
	return items
}

// combineShared combines parts that lie step threads apart: each thread leaves
// its items in arrays of shared memory, which others may still read, and reads all parts in order.
func (l *folder) combineShared(arrays, items []*program.Value, step, parts int64, inUse bool, f fold) []*program.Value {
	if inUse {
		l.block.barrier()
	}
	for k, x := range items {
		l.b.Store(l.slot(arrays[k], l.block.tid, x.Type.Lanes), x, slotAlign(x.Type))
	}
	l.block.barrier()
	// The first thread of this thread's parts.
	mine := l.exprs.indexMod(l.exprs.indexDiv(l.block.tid, l.b.Index(step)), l.b.Index(parts))
	first := l.b.Sub(l.block.tid, l.b.Mul(mine, l.b.Index(step)))
	read := func(j *program.Value) []*program.Value {
		thread := l.b.Add(first, l.b.Mul(j, l.b.Index(step)))
		out := make([]*program.Value, len(items))
		for k, x := range items {
			out[k] = l.b.Load(l.slot(arrays[k], thread, x.Type.Lanes), x.Type.Lanes, slotAlign(x.Type))
		}
		return out
	}
	return l.foldParts(parts, read, f)
}

// leastSaved is how many loads of a warp take a multiprocessor as long as a barrier and a trip to shared memory.
const leastSaved = 64

// paysScattered reports items of which each part of the threads had better combine some for all, and that have one type.
func (l *folder) paysScattered(items []*program.Value, parts int64) bool {
	n := int64(len(items))
	for _, x := range items {
		if x.Type != items[0].Type {
			return false
		}
	}
	saved := n*parts - ((n+parts-1)/parts*parts + n)
	return saved*l.block.blockSize >= leastSaved*plan.WarpSize
}

// combineScattered combines parts that lie step threads apart, where each part of the threads combines some of the
// items, in order, for all: with n items of p parts a thread loads p*n/p + n of them instead of p*n.
func (l *folder) combineScattered(items []*program.Value, step, parts int64, inUse bool, f fold) []*program.Value {
	n, typ, each := int64(len(items)), items[0].Type, l.block.blockSize
	array := l.block.newShared(typ.Elem, n*each*int64(typ.Lanes))
	slot := func(item, thread *program.Value) *program.Value {
		return l.slot(array, l.b.Add(l.b.Mul(item, l.b.Index(each)), thread), typ.Lanes)
	}
	if inUse {
		l.block.barrier()
	}
	for k, x := range items {
		l.b.Store(slot(l.b.Index(int64(k)), l.block.tid), x, slotAlign(typ))
	}
	l.block.barrier()
	mine := l.exprs.indexMod(l.exprs.indexDiv(l.block.tid, l.b.Index(step)), l.b.Index(parts))
	first := l.b.Sub(l.block.tid, l.b.Mul(mine, l.b.Index(step)))
	combine := func(item *program.Value) {
		read := func(j *program.Value) []*program.Value {
			return []*program.Value{l.b.Load(slot(item, l.b.Add(first, l.b.Mul(j, l.b.Index(step)))), typ.Lanes, slotAlign(typ))}
		}
		l.b.Store(slot(item, first), l.foldParts(parts, read, f)[0], slotAlign(typ))
	}
	for k := int64(0); k < n; k += parts {
		item := l.b.Add(mine, l.b.Index(k))
		if k+parts <= n {
			combine(item)
			continue
		}
		l.b.If(l.b.Lt(item, l.b.Index(n)), func() []*program.Value {
			return l.inLoop(func() []*program.Value { combine(item); return nil })
		}, nil)
	}
	l.block.barrier()
	return lists.Make(int(n), func(k int) *program.Value {
		return l.b.Load(slot(l.b.Index(int64(k)), first), typ.Lanes, slotAlign(typ))
	})
}

// foldParts combines what is read of so many parts.
func (l *folder) foldParts(parts int64, read func(j *program.Value) []*program.Value, f fold) []*program.Value {
	acc := read(l.b.Index(0))
	if parts <= int64(l.Options.Program.Of(program.Parts)) {
		for j := int64(1); j < parts; j++ {
			acc = f(acc, read(l.b.Index(j)))
		}
		return acc
	}
	return l.b.For(l.b.Index(1), l.b.Index(parts), l.b.Index(1), acc, func(j *program.Value, carried []*program.Value) []*program.Value {
		return l.inLoop(func() []*program.Value { return f(carried, read(j)) })
	})
}

// slot is the place of a thread's item in a shared array.
func (l *folder) slot(array, thread *program.Value, lanes int) *program.Value {
	return l.b.PtrAdd(array, l.b.Mul(thread, l.b.Index(int64(lanes))))
}

func slotAlign(t program.Type) int {
	return int(min(lowBit(int64(t.Elem.Size())*int64(t.Lanes)), 16))
}

// inLoop runs f with the scopes of the block that the builder is in: what f
// makes must not be remembered outside.
func (l *folder) inLoop(f func() []*program.Value) (out []*program.Value) {
	l.scopes.within(newScope(l.b.Block()), func() { out = f() })
	return out
}
