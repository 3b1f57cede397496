package lower

import (
	"fmt"
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/ir/program"
	"tgc/kernel/plan"
)

// Combining what threads hold of a reduce: by shuffles within a warp, then
// through shared memory, always in the same order. Afterwards all threads that
// took part have the result.

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

// pends reports a range over which a sum may stay open: lanes, and threads of
// one warp. Lanes of a GPU are registers one after the other, which a sum may as
// well take in turn.
func (l *folder) pends(i int) bool {
	if !l.Roles[i].IsThread() {
		return l.Roles[i] == plan.Lane && !l.block.onGPU()
	}
	_, _, parts := l.warpPart(i)
	return parts == 1
}

// foldThreads sums up what is pending over threads of a warp.
func (l *folder) foldThreads(op ir.Op, x val, over analyse.RangeSet) val {
	out := val{subAxes: x.subAxes, pend: x.pend.Minus(over), depth: x.depth}
	key := derivedKey{x.v, subAxesKey("threads "+op.String(), over.List())}
	out.v = l.scopes.derive(x.depth, key, func() *program.Value {
		items := []*program.Value{x.v}
		for _, i := range over.List() {
			items = l.combineThreads(i, items, func(x, y []*program.Value) []*program.Value {
				return []*program.Value{l.b.Alu(op, x[0], y[0])}
			}, true)
		}
		return items[0]
	})
	return out
}

// threadReduce emits a plain reduce over threads, of all copies at once.
func (l *folder) threadReduce(u *ir.UOp, i int, at coords) val {
	op := u.Arg.(ir.ReduceArg).Op
	points := l.loops.combos(l.free.Of(u))
	want := l.scopes.key(u, at)
	if !l.holdsKey(u, points, want) {
		points = []coords{at}
	}
	items, values := make([]*program.Value, len(points)), make([]val, len(points))
	for k, p := range points {
		values[k] = l.exprs.settle(l.exprs.lower(u.Src[0], p))
		items[k] = values[k].v
	}
	items = l.combineThreads(i, items, func(x, y []*program.Value) []*program.Value {
		return lists.Make(len(x), func(k int) *program.Value { return l.b.Alu(op, x[k], y[k]) })
	}, true)
	memo := l.scopes.stack[l.scopes.top()].memo
	for k, p := range points {
		memo[l.scopes.key(u, p)] = val{v: items[k], subAxes: values[k].subAxes, depth: l.scopes.top()}
	}
	return memo[want]
}

func (l *folder) holdsKey(u *ir.UOp, points []coords, want memoKey) bool {
	return slices.ContainsFunc(points, func(p coords) bool { return l.scopes.key(u, p) == want })
}

// threadProj emits a tuple reduce over threads: all components that stand here,
// in all their copies, share every step.
func (l *folder) threadProj(u, tuple *ir.UOp, c, i int, at coords) val {
	d := l.scopes.top()
	want := []int{c}
	for o := range tuple.Arg.(ir.ReduceArg).N {
		if depth, ok := l.scopes.depthOf(l.free.Of(l.Arena.Proj(tuple, o))); ok && depth == d && o != c {
			want = append(want, o)
		}
	}
	t := &threadTuple{l: l.lowering, tuple: tuple, parts: tuple, index: make(map[memoKey]int)}
	for _, o := range l.tuples.closure(tuple, want) {
		t.add(o)
	}
	items := l.combineThreads(i, t.items, t.fold, symmetricLambda(tuple))
	memo := l.scopes.stack[d].memo
	for k, m := range t.members {
		if depth, _ := l.scopes.depthOf(l.free.Of(m.node)); depth == d {
			memo[m.key] = val{v: items[k], subAxes: m.subAxes, depth: d}
		}
	}
	out, ok := memo[l.scopes.key(u, at)]
	if !ok {
		fail("a tuple component has no result at its coordinates")
	}
	return out
}

// threadTuple is a tuple reduce over threads with all its copies.
type threadTuple struct {
	l       *lowering
	tuple   *ir.UOp
	parts   *ir.UOp
	members []tupleCopy
	items   []*program.Value
	index   map[memoKey]int
}

// tupleCopy is a component at the coordinates of its copies.
type tupleCopy struct {
	comp    int
	node    *ir.UOp // PROJ
	at      coords
	key     memoKey
	subAxes []int
}

func (t *threadTuple) add(comp int) {
	l := t.l
	node := l.Arena.Proj(t.tuple, comp)
	free := l.free.Of(node)
	subAxes := l.lanes.Meet(free).List()
	for _, at := range l.loops.combos(free) {
		key := l.scopes.key(node, at)
		x := l.exprs.settle(l.exprs.lower(t.parts.ReduceValues()[comp], at))
		t.index[key] = len(t.members)
		t.members = append(t.members, tupleCopy{comp, node, at, key, subAxes})
		t.items = append(t.items, l.exprs.expand(x, subAxes))
	}
}

func (t *threadTuple) fold(x, y []*program.Value) []*program.Value {
	l, n := t.l, t.parts.Arg.(ir.ReduceArg).N
	e := l.tuples.newLambda(n)
	out := make([]*program.Value, len(x))
	for k, m := range t.members {
		v := e.eval(t.parts.ReduceCombine()[m.comp], func(c int) val {
			from := x
			if c >= n {
				c, from = c-n, y
			}
			i := t.index[l.scopes.key(l.Arena.Proj(t.tuple, c), m.at)]
			return val{v: from[i], subAxes: t.members[i].subAxes, depth: l.scopes.top()}
		})
		out[k] = l.exprs.expand(v, m.subAxes)
	}
	return out
}

// symmetricLambda reports a combine step that gives the same bits with its two
// operands exchanged.
func symmetricLambda(p *ir.UOp) bool {
	return !slices.ContainsFunc(p.ReduceCombine(), func(body *ir.UOp) bool { return !mirrors(body, body, p.Arg.(ir.ReduceArg).N) })
}

// mirrors reports that y is x with accumulator and element exchanged.
func mirrors(x, y *ir.UOp, n int) bool {
	if x.Op != y.Op || x.DType != y.DType || len(x.Src) != len(y.Src) {
		return false
	}
	if x.Op == ir.OpArg {
		return (int(x.Arg.(ir.IntArg))+n)%(2*n) == int(y.Arg.(ir.IntArg))
	}
	if len(x.Src) == 0 {
		return x == y
	}
	all := func(order ...int) bool {
		for i, o := range order {
			if !mirrors(x.Src[i], y.Src[o], n) {
				return false
			}
		}
		return true
	}
	switch len(x.Src) {
	case 1:
		return all(0)
	case 2:
		commutes := x.Op == ir.OpAdd || x.Op == ir.OpMul || x.Op == ir.OpMax || x.Op == ir.OpMin || x.Op == ir.OpCmpEq || x.Op == ir.OpAnd || x.Op == ir.OpOr
		return all(0, 1) || commutes && all(1, 0)
	}
	return all(0, 1, 2)
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
		items = l.combineShared(items, step, parts, f)
	}
	return items
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
// its items in shared memory, and reads all parts in order.
func (l *folder) combineShared(items []*program.Value, step, parts int64, f fold) []*program.Value {
	arrays := lists.Map(items, func(x *program.Value) *program.Value {
		return l.block.newShared(x.Type.Elem, l.block.blockSize*int64(x.Type.Lanes))
	})
	if l.block.repeats() {
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
func (l *folder) inLoop(f func() []*program.Value) []*program.Value {
	saved := l.scopes.stack
	l.scopes.stack = append(saved[:len(saved):len(saved)], newScope(l.b.Block()))
	out := f()
	l.scopes.stack = saved
	return out
}

// slot is the place of a thread's item in a shared array.
func (l *folder) slot(array, thread *program.Value, lanes int) *program.Value {
	return l.b.PtrAdd(array, l.b.Mul(thread, l.b.Index(int64(lanes))))
}

func slotAlign(t program.Type) int {
	return int(min(lowBit(int64(t.Elem.Size())*int64(t.Lanes)), 16))
}

// checkThreads finds plans whose threads cannot meet: a value that they share
// stands in a loop whose length differs among them.
func (l *folder) checkThreads() error {
	if l.block.threads.Empty() {
		return nil
	}
	meets := make(map[*ir.UOp]analyse.RangeSet) // ranges in whose loops threads meet below a node
	for _, u := range ir.Toposort(l.Sink) {
		var s analyse.RangeSet
		for _, x := range u.Src {
			s = s.Union(meets[x])
		}
		switch u.Op {
		case ir.OpReduce:
			if l.block.threads.Has(l.free.Index.Of(u.ReduceRange())) {
				s = s.Union(l.free.Of(u))
			}
		case ir.OpStage:
			if l.stager.sharesStage(u) {
				s = s.Union(l.free.Of(u))
			}
		}
		meets[u] = s
	}
	for _, i := range meets[l.Sink].List() {
		if varies := l.free.Of(l.Ranges[i].Src[0]).Meet(l.block.threads); !varies.Empty() {
			return fmt.Errorf("kernel: plan: threads share a value inside a loop whose length differs among them")
		}
	}
	return nil
}
