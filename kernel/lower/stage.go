package lower

import (
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/ir/program"
	"tgc/kernel/plan"
	"tgc/kernel/shape"
)

// A STAGE is an array of computed values. Where its ranges are copies or lanes
// and the index is known at the coordinates of the read, it is no array at all:
// the value is lowered at that point. Otherwise it is a stack array, filled in
// the scope of its free ranges: without grid ranges that is the prologue. With
// thread sub-axes among its own ranges it lies in shared memory, and threads fill
// it together.

// stager fills and reads arrays.
type stager struct {
	*lowering
	paddings map[*ir.UOp]padding
	arrays   map[memoKey]*program.Value
	shared   *sharedArrays
	filled   bool // the stages before the rows
}

// maxStageElements bounds a stack array.
const maxStageElements = 1 << 20

// loadStage reads a STAGE.
func (l *stager) loadStage(u *ir.UOp, at coords) val {
	stage := u.Src[0]
	if point, ok := l.registerPoint(u, at); ok {
		return l.exprs.settle(l.exprs.lower(stage.Src[0], point))
	}
	if v, ok := l.panelScale(u, at); ok {
		return v
	}
	l.fillTogether(stage)
	array := l.fillStage(stage, at)
	return l.memory.read(l.memory.placeOf(array, l.memory.rejoinedLanes(l.readAddress(u), at), int64(stage.DType.Size()), at))
}

// fillTogether fills, before the first read of a stage that depends on no loop,
// all such stages: what lies between them would keep their barriers from being
// one (the pass eliminate-barriers).
func (l *stager) fillTogether(stage *ir.UOp) {
	if !l.block.onGPU() || l.filled || !l.fillsFirst(stage) {
		return
	}
	l.filled = true
	for _, u := range ir.Toposort(l.Sink) {
		if u.Op == ir.OpStage && l.fillsFirst(u) && !l.holdsRows(u) {
			l.fillStage(u, l.scopes.startCoords())
		}
	}
}

// fillsFirst reports a shared stage that is filled once.
func (l *stager) fillsFirst(stage *ir.UOp) bool {
	free := l.free.Of(stage)
	d, open := l.scopes.depthOf(free)
	return l.sharesStage(stage) && open && d == 0 && free.Meet(l.vector).Empty()
}

// holdsRows reports a stage whose values read another one: rows of a tile are
// summed after what stands before them.
func (l *stager) holdsRows(stage *ir.UOp) bool {
	return analyse.Any(stage.Src[0], func(u *ir.UOp) bool { return u.Op == ir.OpStage })
}

// readAddress is where a read of a stage goes in its array.
func (l *stager) readAddress(u *ir.UOp) *flatAddress {
	if addr := l.memory.address[u]; addr != nil {
		return addr
	}
	return l.memory.remember(u, l.paddingOf(u.Src[0]).of(l.Arena, l.stageIndex(u)))
}

// stageIndex is the row-major index of a read in the array of its stage, without
// padding.
func (l *stager) stageIndex(u *ir.UOp) *ir.UOp {
	axes := l.stageAxes(u.Src[0])
	index := slices.Clone(axes)
	copy(index[len(l.ownThreads(u.Src[0])):], u.Indices())
	return l.flatIndex(axes, index, true)
}

// flatIndex is the row-major index in an array of a stage.
func (l *stager) flatIndex(axes, index []*ir.UOp, clamp bool) *ir.UOp {
	extents := lists.Map(axes, l.constantExtent)
	return l.memory.rowMajor(extents, index, clamp)
}

// registerPoint finds the coordinates of a read whose index is known.
func (l *stager) registerPoint(u *ir.UOp, at coords) (coords, bool) {
	point := at
	for k, z := range u.Src[0].Src[1:] {
		i := l.free.Index.Of(z)
		x := u.Src[1+k]
		if l.Roles[i] == plan.Lane && x == z {
			continue
		}
		if l.Roles[i] != plan.Unroll {
			return nil, false
		}
		n, ok := l.exprs.known(x, at)
		if !ok {
			return nil, false
		}
		point = point.with(i, int32(max(min(n, l.extent[i]-1), 0)))
	}
	return point, true
}

// constantExtent is an upper bound of a stage range's extent.
func (l *stager) constantExtent(z *ir.UOp) *ir.UOp {
	hi := l.Bounds.Of(z.Src[0]).Hi
	if hi > maxStageElements {
		fail("a stage range of up to %d elements does not fit", hi)
	}
	return l.Arena.Index(max(hi, 1))
}

// ownLanes are the lane ranges that the values of a stage depend on from
// outside: they are further, innermost axes of its array.
func (l *stager) ownLanes(stage *ir.UOp) []*ir.UOp {
	return lists.Map(l.free.Of(stage).Meet(l.lanes).List(), func(i int) *ir.UOp { return l.Ranges[i] })
}

// sharesStage reports a stage that threads fill together.
func (l *stager) sharesStage(stage *ir.UOp) bool {
	return slices.ContainsFunc(stage.Src[1:], func(z *ir.UOp) bool { return l.block.threads.Has(l.free.Index.Of(z)) })
}

// ownThreads are the thread ranges that the values of a shared stage depend on
// from outside: its outermost axes.
func (l *stager) ownThreads(stage *ir.UOp) []*ir.UOp {
	if !l.sharesStage(stage) {
		return nil
	}
	return lists.Map(l.free.Of(stage).Meet(l.block.threads).List(), func(i int) *ir.UOp { return l.Ranges[i] })
}

// stageAxes are the axes of a stage's array, outermost first.
func (l *stager) stageAxes(stage *ir.UOp) []*ir.UOp {
	return append(append(l.ownThreads(stage), stage.Src[1:]...), l.ownLanes(stage)...)
}

// fillStage makes and fills the array of a STAGE, once per scope of its free
// ranges and copy of them.
func (l *stager) fillStage(stage *ir.UOp, at coords) *program.Value {
	d, k := l.scopes.depth(stage), l.scopes.key(stage, at)
	if v, ok := l.scopes.stack[d].memo[k]; ok {
		return v.v
	}
	if shape.IsSharedTile(stage) {
		l.fillPanels(d)
		return l.scopes.stack[d].memo[k].v
	}
	copies := l.filledTogether(stage, at)
	s := l.scopes.stack[d]
	l.scopes.in(d, func() {
		for _, c := range copies {
			for _, i := range l.free.Of(stage).Meet(l.vector).List() {
				if l.lanes.Has(i) != (c[i] == laneCoord) {
					fail("a stage is read along other lanes than its own")
				}
			}
		}
		shared := l.sharesStage(stage)
		if shared && l.block.repeats() {
			l.block.barrier()
		}
		l.fillLoops(stage, stage.Src[1:], copies, func(at coords) {
			l.fillPoint(stage, l.scopes.key(stage, at), at)
		})
		if shared {
			l.block.barrier()
			l.shared.filled(stage, func(read *ir.UOp) *program.Value { return l.leftBy(read, stage) })
		}
	})
	for _, c := range copies {
		key := l.scopes.key(stage, c)
		s.memo[key] = val{v: l.arrayOf(stage, key), depth: d}
	}
	return s.memo[k].v
}

// fillPanels fills all panels of the scope at depth d between two barriers.
func (l *stager) fillPanels(d int) {
	s := l.scopes.stack[d]
	l.scopes.in(d, func() {
		if l.block.repeats() {
			l.block.barrier()
		}
		for _, stage := range ir.Toposort(l.Sink) {
			if stage.Op != ir.OpStage || !shape.IsSharedTile(stage) {
				continue
			}
			if at, ok := l.scopes.depthOf(l.free.Of(stage)); !ok || at != d {
				continue
			}
			k := l.scopes.key(stage, l.scopes.startCoords())
			l.arrayOf(stage, k)
			l.fillLoops(stage, stage.Src[1:], []coords{l.scopes.startCoords()}, func(at coords) { l.fillPoint(stage, k, at) })
			s.memo[k] = val{v: l.arrayOf(stage, k), depth: d}
		}
		l.block.barrier()
	})
}

// filledTogether are the copies of a stage that are filled in one loop. They
// are those of all tokens, rows or columns that a work unit or thread has at once: the sums of a
// tile are then made in one loop, which reads and decodes its weights once for all, and
// the threads of a block wait for each other once.
func (l *stager) filledTogether(stage *ir.UOp, at coords) []coords {
	free := l.free.Of(stage).Meet(l.vector)
	if !l.block.onGPU() || free.Meet(l.lanes).Empty() {
		return l.loops.combos(free)
	}
	start := l.scopes.startCoords()
	for _, i := range free.List() {
		start[i] = at[i]
	}
	return []coords{start}
}

func (l *stager) arrayOf(stage *ir.UOp, k memoKey) *program.Value {
	array := l.arrays[k]
	if array == nil {
		array = l.newArray(stage)
		l.arrays[k] = array
	}
	return array
}

// leftBy is the array of a stage that no other one is to read after its reader, nil where it keeps
// it: one in another scope than its reader is filled, or read, at other times.
func (l *stager) leftBy(stage, reader *ir.UOp) *program.Value {
	if !l.sharesStage(stage) || shape.IsSharedTile(stage) || l.free.Of(stage) != l.free.Of(reader) || !l.free.Of(stage).Meet(l.vector).Empty() {
		return nil
	}
	return l.arrays[l.scopes.key(stage, l.scopes.startCoords())]
}

func (l *stager) newArray(stage *ir.UOp) *program.Value {
	count := int64(1)
	for _, z := range l.stageAxes(stage) {
		n, _ := l.constantExtent(z).Int()
		if count *= n; count > maxStageElements {
			fail("a stage of more than %d elements", maxStageElements)
		}
	}
	if pad := l.paddingOf(stage); pad.line > 0 {
		return l.block.newSharedAt(stage.DType, pad.size(count), program.GroupAlign)
	}
	if l.sharesStage(stage) {
		if l.shared == nil {
			l.shared = &sharedArrays{lowering: l.lowering, elements: make(map[*program.Value]int64)}
		}
		return l.shared.take(storedType(stage.DType), l.paddingOf(stage).size(count))
	}
	return l.memory.array(storedType(stage.DType), program.LocalSpace, count, 64)
}

// fillLoops opens the serial ranges of a stage in order, then fills it at its copies
// of some points.
func (l *stager) fillLoops(stage *ir.UOp, ranges []*ir.UOp, points []coords, fill func(at coords)) {
	for k, z := range ranges {
		i := l.free.Index.Of(z)
		if l.Roles[i] == plan.Serial {
			l.scopes.loop(i, func(*program.Loop) []*program.Value {
				l.fillLoops(stage, ranges[k+1:], points, fill)
				return nil
			})
			return
		}
		if l.Roles[i] == plan.Unroll {
			for c := range int32(l.extent[i]) {
				next := lists.Map(points, func(at coords) coords { return at.with(i, c) })
				l.fillLoops(stage, ranges[k+1:], next, fill)
			}
			return
		}
	}
	for _, at := range points {
		fill(at)
	}
}

func (l *stager) fillPoint(stage *ir.UOp, key memoKey, at coords) {
	if !l.holdsRows(stage) {
		l.arrayOf(stage, key)
	}
	var subAxes []int
	var own analyse.RangeSet
	axes := l.stageAxes(stage)
	for _, z := range axes {
		i := l.free.Index.Of(z)
		if own.Add(i); l.Roles[i] == plan.Lane {
			subAxes = unionSubAxes(subAxes, []int{i})
		}
	}
	addr := l.memory.address[stage]
	if addr == nil {
		addr = l.memory.remember(stage, l.paddingOf(stage).of(l.Arena, l.flatIndex(axes, axes, false)))
	}
	v := l.exprs.expand(l.exprs.settle(l.exprs.lower(stage.Src[0], at)), subAxes)
	p := l.memory.placeOf(l.arrayOf(stage, key), addr, int64(stage.DType.Size()), at)
	if l.sharesStage(stage) {
		l.stores.onlyIf(l.block.soleInBlock(own), func() { l.stores.writeLanes(p, subAxes, v) })
		return
	}
	l.stores.writeLanes(p, subAxes, v)
}
