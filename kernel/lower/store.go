package lower

import (
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/program"
	"tgc/kernel/plan"
	"tgc/kernel/shape"
)

// storer writes stores.
type storer struct{ *lowering }

// emitStores writes stores inside the grid loop. Neighbours that have the same
// serial range at a level share its loop.
func (l *storer) emitStores(stores []shape.Store, level int, at coords) {
	for i := 0; i < len(stores); {
		r, ok := l.serialRange(stores[i], level)
		j := i + 1
		for ; j < len(stores); j++ {
			if next, more := l.serialRange(stores[j], level); more != ok || next != r {
				break
			}
		}
		if !ok {
			l.emitTogether(stores[i:j], at)
			i = j
			continue
		}
		if p := l.sparse(stores[i]); p != nil && level == 0 && j == i+1 {
			if c := l.anyOrder(p, stores[i]); c != nil {
				l.anyOrderLoop(p, c, at)
			} else {
				l.sparseLoop(p, at, func() { l.emitStores(stores[i:j], len(p.over), at) })
			}
		} else {
			l.scopes.loop(r, func(*program.Loop) []*program.Value { l.emitStores(stores[i:j], level+1, at); return nil })
		}
		i = j
	}
}

// serialRange is the serial range of a store at a nesting level.
func (l *storer) serialRange(s shape.Store, level int) (int, bool) {
	for _, r := range s.Node.Ranges() {
		i := l.free.Index.Of(r)
		if l.Roles[i] != plan.Serial {
			continue
		}
		if level == 0 {
			return i, true
		}
		level--
	}
	return 0, false
}

// storeCopies are the copies of a store in one iteration: their coordinates, and
// the values once they are computed.
type storeCopies struct {
	shape.Store
	cond    *ir.UOp
	subAxes []int // lanes
	points  []coords
	values  []*program.Value
}

// emitTogether writes stores that share all their serial loops. A store that
// reads what another overwrites must have its value before.
func (l *storer) emitTogether(stores []shape.Store, at coords) {
	if !readEachOther(stores) {
		for _, s := range stores {
			l.emitStore(s, at)
		}
		return
	}
	var all []*storeCopies
	for _, s := range stores {
		c := l.copiesOf(s, at)
		l.computeCopies(c)
		all = append(all, c)
	}
	for _, c := range all {
		l.writeCopies(c)
	}
}

// readEachOther reports that one of several stores reads what another writes.
func readEachOther(stores []shape.Store) bool {
	for _, s := range stores {
		if len(stores) == 1 {
			return false
		}
		for _, u := range ir.Toposort(s.Node.Src[1]) {
			for _, w := range stores {
				if u.Op == ir.OpLoad && w.Node != s.Node && u.Src[0] == w.Node.Src[0] {
					return true
				}
			}
		}
	}
	return false
}

// emitStore writes every copy of a store. A CPU has few registers: there each
// copy is written when it is computed.
func (l *storer) emitStore(s shape.Store, at coords) {
	c := l.copiesOf(s, at)
	if l.block.onGPU() {
		l.computeCopies(c)
		l.writeCopies(c)
		return
	}
	if l.emitTurned(c) {
		return
	}
	for _, p := range c.points {
		l.write(s.Node, c.cond, c.subAxes, p, l.valueOf(c, p))
	}
}

// emitTurned writes a store whose copies lie side by side, and its lanes do not, and reports whether it is one.
func (l *storer) emitTurned(c *storeCopies) bool {
	axes := lists.Filter(lists.Map(c.Node.Ranges(), l.free.Index.Of), func(i int) bool { return l.Roles[i] == plan.Unroll })
	if len(c.points) < 2 || slices.ContainsFunc(axes, l.free.Of(c.cond).Has) {
		return false
	}
	t, ok := l.memory.turnedCopies(c.Node, c.points, axes, c.subAxes)
	if !ok {
		return false
	}
	t.base = l.storePlace(c.Node, c.points[0])
	var cond *program.Value
	if !c.cond.IsInt(1) {
		x := l.exprs.settle(l.exprs.lower(c.cond, c.points[0]))
		if cond = x.v; len(x.subAxes) > 0 {
			cond = l.exprs.expand(x, c.subAxes)
		}
	}
	for k := 0; k < len(c.points); k += t.run {
		values := lists.Map(c.points[k:k+t.run], func(p coords) *program.Value { return l.valueOf(c, p) })
		l.memory.storeTurned(t, k, values, cond)
	}
	return true
}

// copiesOf lists the copies of a store.
func (l *storer) copiesOf(s shape.Store, at coords) *storeCopies {
	c := &storeCopies{Store: s, cond: l.storeCondition(s), points: []coords{at}}
	for _, r := range s.Node.Ranges() {
		i := l.free.Index.Of(r)
		switch l.Roles[i] {
		case plan.Lane:
			c.subAxes = unionSubAxes(c.subAxes, []int{i})
		case plan.Unroll:
			c.points = l.loops.copiesAlong(c.points, []int{i}, "copies of a store")
		}
	}
	return c
}

func (l *storer) valueOf(c *storeCopies, p coords) *program.Value {
	return l.exprs.expand(l.exprs.settle(l.exprs.lower(c.Node.Src[1], p)), c.subAxes)
}

// computeCopies computes all copies, and what says where they go.
func (l *storer) computeCopies(c *storeCopies) {
	c.values = make([]*program.Value, len(c.points))
	for k, p := range c.points {
		c.values[k] = l.valueOf(c, p)
		if !c.cond.IsInt(1) {
			l.exprs.lower(c.cond, p)
		}
		l.storePlace(c.Node, p)
	}
}

// writeCopies writes what computeCopies computed; of threads that hold the same
// point only one does.
func (l *storer) writeCopies(c *storeCopies) {
	l.onlyIf(l.block.soleThread(l.free.Of(c.Node)), func() {
		for k, p := range c.points {
			l.write(c.Node, c.cond, c.subAxes, p, c.values[k])
		}
	})
}

// onlyIf runs f under a condition, if there is one.
func (l *storer) onlyIf(cond *program.Value, f func()) {
	if cond == nil {
		f()
		return
	}
	l.b.If(cond, func() []*program.Value {
		l.folds.inLoop(func() []*program.Value { f(); return nil })
		return nil
	}, nil)
}

// storePlace is where a copy of a store goes.
func (l *storer) storePlace(u *ir.UOp, at coords) place {
	before := l.b.MakeFor(l.Arena.Origin(u))
	defer l.b.MakeAgainFor(before)
	p := l.memory.placeOf(l.memory.base(u.Src[0]), l.memory.addressOf(u), int64(u.Src[0].DType.Size()), at)
	if l.Options.Has(plan.STREAM, u.Src[0].Arg.(ir.ParamArg).Slot) {
		p.cache = program.CacheStream
	}
	return p
}

// storeCondition is what must hold for a point to be written: the gates of
// padded ranges, and every index in bounds.
func (l *storer) storeCondition(s shape.Store) *ir.UOp {
	a := l.Arena
	cond := a.ConstInt(ir.Bool, 1)
	and := func(c *ir.UOp) {
		c = l.Simplify.Do(c)
		switch {
		case c.IsInt(1):
		case cond.IsInt(1):
			cond = c
		default:
			cond = a.And(cond, c)
		}
	}
	for _, g := range s.Gates {
		and(g)
	}
	for k, x := range s.Node.Indices() {
		extent := s.Node.Src[0].Src[k]
		low, high := l.memory.inBounds(x, extent)
		if !low {
			and(a.Lt(a.Index(-1), x))
		}
		if !high {
			and(a.Lt(x, extent))
		}
	}
	return cond
}

// write emits one copy of a store.
func (l *storer) write(u, cond *ir.UOp, subAxes []int, at coords, v *program.Value) {
	if cond.IsInt(1) {
		l.writeLanes(l.storePlace(u, at), subAxes, v)
		return
	}
	c := l.exprs.settle(l.exprs.lower(cond, at))
	if len(c.subAxes) == 0 {
		p := l.storePlace(u, at)
		l.b.If(c.v, func() []*program.Value {
			l.writeLanes(p, subAxes, v)
			return nil
		}, nil)
		return
	}
	lanes := l.exprs.expand(c, subAxes)
	if p := l.storePlace(u, at); p.vector == nil && lanes.Type.Lanes > 1 && !l.block.onGPU() {
		// All lanes but those of the last vector are written at once.
		all := l.b.Lt(l.b.Int(program.Scalar(ir.I32), 0), l.b.FoldLanes(ir.OpMin, l.b.Cast(lanes, ir.I32)))
		l.b.If(all, func() []*program.Value { l.writeLanes(p, subAxes, v); return nil },
			func() []*program.Value {
				return l.folds.inLoop(func() []*program.Value { l.writeEach(u, lanes, v, subAxes, at); return nil })
			})
		return
	}
	l.writeEach(u, lanes, v, subAxes, at)
}

// writeLanes stores all lanes.
func (l *storer) writeLanes(p place, subAxes []int, v *program.Value) {
	if len(subAxes) == 0 {
		l.b.Store(p.ptr, v, p.align)
		return
	}
	size := int64(p.ptr.Type.Elem.Size())
	align := int(lowBit(ir.GCD(int64(p.align), size)))
	if p.vector != nil {
		l.b.Scatter(p.ptr, l.expandLanes(p.vector, p.subAxes, subAxes), v, align)
		return
	}
	lanes := l.exprs.pick(p.subAxes, subAxes, nil)
	offsets := make([]int64, len(lanes))
	for i, from := range lanes {
		offsets[i] = p.offsets[from]
	}
	if inOrder(offsets) {
		l.b.StoreCached(p.ptr, v, p.align, p.cache)
		return
	}
	if n := wordRun(offsets, size); n > 1 {
		for i := 0; i < len(offsets); i += n {
			at := p.ptr
			if offsets[i] > 0 {
				at = l.b.PtrAdd(p.ptr, l.b.Index(offsets[i]))
			}
			l.b.StoreCached(at, l.b.Slice(v, i, n), int(lowBit(ir.GCD(int64(p.align), size*offsets[i]))), p.cache)
		}
		return
	}
	l.b.Scatter(p.ptr, l.b.IntLanes(ir.I64, offsets...), v, align)
}

// wordRun is the number of neighbouring lanes that lie side by side in memory, as
// many everywhere and at least a word; else 1.
func wordRun(offsets []int64, size int64) int {
	n := 1
	for n < len(offsets) && offsets[n] == offsets[n-1]+1 {
		n++
	}
	if int64(n)*size < shape.BankBytes || len(offsets)%n != 0 {
		return 1
	}
	for i := range offsets {
		if i%n != 0 && offsets[i] != offsets[i-1]+1 {
			return 1
		}
	}
	return n
}

func (l *storer) expandLanes(v *program.Value, from, to []int) *program.Value {
	if slices.Equal(from, to) {
		return v
	}
	return l.b.Shuffle(v, v, l.exprs.pick(from, to, nil)...)
}

// writeEach stores lane by lane where each lane has its own condition.
func (l *storer) writeEach(u *ir.UOp, cond, v *program.Value, subAxes []int, at coords) {
	for lane := range l.exprs.laneCount(subAxes) {
		point := slices.Clone(at)
		l.exprs.setLane(point, subAxes, lane)
		p := l.storePlace(u, point)
		x := l.b.Extract(v, lane)
		l.b.If(l.b.Extract(cond, lane), func() []*program.Value {
			l.b.Store(p.ptr, x, p.align)
			return nil
		}, nil)
	}
}
