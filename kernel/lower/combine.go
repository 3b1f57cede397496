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
			items = l.combineThreads(i, items, folding{l.eachItem(op), true, true})
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
	f := l.eachItem(op)
	if l.Roles[i] == plan.Cluster {
		items = l.combineBlocks(items, l.free.Of(u), f.inOrder)
	} else {
		items = l.combineThreads(i, items, folding{f, true, true})
	}
	memo := l.scopes.stack[l.scopes.top()].memo
	for k, p := range points {
		memo[l.scopes.key(u, p)] = val{v: items[k], subAxes: values[k].subAxes, depth: l.scopes.top()}
	}
	return memo[want]
}

// eachItem combines items by an operation, each by itself.
func (l *folder) eachItem(op ir.Op) fold {
	return func(x, y []*program.Value) []*program.Value {
		return lists.Make(len(x), func(k int) *program.Value { return l.b.Alu(op, x[k], y[k]) })
	}
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
	var free analyse.RangeSet
	t := &threadTuple{l: l.lowering, tuple: tuple, index: make(map[memoKey]int)}
	for _, o := range l.tuples.closure(tuple, want) {
		t.add(o)
		free = free.Union(l.free.Of(l.Arena.Proj(tuple, o)))
	}
	var items []*program.Value
	switch {
	case l.Roles[i] != plan.Cluster:
		items = l.combineThreads(i, t.items, folding{t.fold, symmetricLambda(tuple), false})
	case l.Arena.MonoidOf(tuple).Rescales:
		items = l.combineBlocks(t.items, free, t.rescaled)
	default:
		items = l.combineBlocks(t.items, free, fold(t.fold).inOrder)
	}
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
		x := l.exprs.settle(l.exprs.lower(t.tuple.ReduceValues()[comp], at))
		t.index[key] = len(t.members)
		t.members = append(t.members, tupleCopy{comp, node, at, key, subAxes})
		t.items = append(t.items, l.exprs.expand(x, subAxes))
	}
}

func (t *threadTuple) fold(x, y []*program.Value) []*program.Value {
	l, n := t.l, t.tuple.Arg.(ir.ReduceArg).N
	e := l.tuples.newLambda()
	out := make([]*program.Value, len(x))
	for k, m := range t.members {
		v := e.eval(t.tuple.ReduceCombine()[m.comp], func(c int) val {
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

// rescaled combines parts of a softmax: each is rescaled once, by the maximum of all.
func (t *threadTuple) rescaled(parts [][]*program.Value) []*program.Value {
	l, m, a := t.l, t.l.Arena.MonoidOf(t.tuple), t.l.Arena
	key := t.tuple.ReduceValues()[0].DType
	weight := m.Weight(a, a.Make(ir.OpArg, key, ir.IntArg(0)), a.Make(ir.OpArg, key, ir.IntArg(1)))
	e := l.tuples.newLambda()
	out := make([]*program.Value, len(t.members))
	for k, x := range t.members {
		if x.comp != 0 {
			continue
		}
		least := l.exprs.lower(m.LeastKey(a, key), l.scopes.startCoords())
		out[k] = l.exprs.expand(least, x.subAxes)
		for _, p := range parts {
			out[k] = l.b.Alu(ir.OpMax, out[k], p[k])
		}
	}
	for k, x := range t.members {
		if x.comp == 0 {
			continue
		}
		top := t.index[l.scopes.key(a.Proj(t.tuple, 0), x.at)]
		for i, p := range parts {
			w := l.exprs.expand(e.eval(weight, func(c int) val {
				v := p[top]
				if c == 1 {
					v = out[top]
				}
				return val{v: v, subAxes: t.members[top].subAxes, depth: l.scopes.top()}
			}), x.subAxes)
			switch {
			case i == 0:
				out[k] = l.b.Alu(ir.OpMul, p[k], w)
			case l.Options.FMA:
				out[k] = l.b.Fma(p[k], w, out[k])
			default:
				out[k] = l.b.Alu(ir.OpAdd, out[k], l.b.Alu(ir.OpMul, p[k], w))
			}
		}
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
