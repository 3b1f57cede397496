package lower

import (
	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/program"
	"tgc/kernel/plan"
)

// How threads exchange what they combine: lanes by shuffles, warps through shared memory.

// folder combines what the threads of a block have.
type folder struct{ *lowering }

// fold combines two lists of values, item by item.
type fold func(x, y []*program.Value) []*program.Value

// warpPart splits a thread sub-axis: masks of shuffles, largest first, then parts
// that lie step threads apart.
func (l *folder) warpPart(i int) (masks []int64, step, parts int64) {
	d := l.block.subAxes[i]
	if d.stride >= plan.WarpSize || d.stride&(d.stride-1) != 0 || d.extent&(d.extent-1) != 0 {
		return nil, d.stride, d.extent
	}
	top := min(d.end(), plan.WarpSize)
	for m := top / 2; m >= d.stride; m /= 2 {
		masks = append(masks, m)
	}
	return masks, top, d.end() / top
}

// combineThreads combines items over a thread sub-axis.
func (l *folder) combineThreads(i int, items []*program.Value, f fold, symmetric bool) []*program.Value {
	masks, step, parts := l.warpPart(i)
	if len(masks) > 0 {
		l.block.mustBeUniform(true)
	}
	for _, m := range masks {
		other := lists.Map(items, func(x *program.Value) *program.Value { return l.exchange(x, m) })
		if symmetric {
			items = f(items, other)
			continue
		}
		// The lower lane's part comes first on both sides.
		low := l.b.Lt(l.exprs.indexMod(l.exprs.indexDiv(l.block.tid, l.b.Index(m)), l.b.Index(2)), l.b.Index(1))
		first, second := make([]*program.Value, len(items)), make([]*program.Value, len(items))
		for k, x := range items {
			c := l.b.Broadcast(low, x.Type.Lanes)
			first[k], second[k] = l.b.Where(c, x, other[k]), l.b.Where(c, other[k], x)
		}
		items = f(first, second)
	}
	if parts > 1 {
		arrays := lists.Map(items, func(x *program.Value) *program.Value {
			return l.block.newShared(x.Type.Elem, l.block.blockSize*int64(x.Type.Lanes))
		})
		first := firstParts(parts)
		items = l.combineShared(arrays, items, step, first, l.block.repeats(), f)
		if first < parts {
			items = l.combineShared(arrays, items, step*first, parts/first, true, f)
		}
	}
	return items
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

// exchange is the value of the lane whose index differs by mask.
func (l *folder) exchange(x *program.Value, mask int64) *program.Value {
	by := l.b.Int(program.Scalar(ir.I32), mask)
	if x.Type.Elem == ir.Bool {
		return l.b.Cast(l.b.ShuffleLane(l.b.Cast(x, ir.I32), by), ir.Bool)
	}
	return l.b.ShuffleLane(x, by)
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

// inLoop runs f with the scopes of the block that the builder is in: what f
// makes must not be remembered outside.
func (l *folder) inLoop(f func() []*program.Value) (out []*program.Value) {
	l.scopes.within(newScope(l.b.Block()), func() { out = f() })
	return out
}

// slot is the place of a thread's item in a shared array.
func (l *folder) slot(array, thread *program.Value, lanes int) *program.Value {
	return l.b.PtrAdd(array, l.b.Mul(thread, l.b.Index(int64(lanes))))
}

func slotAlign(t program.Type) int {
	return int(min(lowBit(int64(t.Elem.Size())*int64(t.Lanes)), 16))
}
