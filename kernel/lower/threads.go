package lower

import (
	"fmt"
	"slices"

	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/ir/program"
	"tgc/kernel/plan"
	"tgc/target"
)

// The threads of a block. Every LOCAL, GROUP and WARP sub-axis is a sub-axis of the
// thread's flat index: (thread / stride) % extent. Sub-axes on which no value
// depends together may share a place: the threads that sum up a norm in front
// of the rows are those that then share the rows.
//
// Threads that differ only in sub-axes on which a value does not depend compute
// the same; of those, the first one writes.

// threads are the places of sub-axes in the index of a thread.
type threads struct {
	*lowering
	threads     analyse.RangeSet
	subAxes     map[int]threadSubAxis // of thread ranges
	blockSize   int64                 // threads
	tid         *program.Value        // flat index of this thread, I64
	threadParts map[threadSubAxis]*program.Value
	shared      int64 // bytes

	cluster        int64          // blocks of a cluster; 0: each alone
	blockInCluster *program.Value // I64
	exchanges      int            // reduces that the blocks of a cluster share
	exchanged      int            // of those, so far
}

// threadSubAxis is the place of a range in the flat index of a thread.
type threadSubAxis struct{ stride, extent int64 }

func (d threadSubAxis) end() int64 { return d.stride * d.extent }

// placeThreads gives every thread range its place. WARP sub-axes come first,
// because shuffles reach 32 neighbours; then LOCAL ones, inner ranges lower,
// so that neighbours access neighbouring elements; then GROUP ones.
func (l *threads) placeThreads() error {
	l.subAxes, l.blockSize = make(map[int]threadSubAxis), 1
	for i, r := range l.Roles {
		if r.IsThread() {
			l.threads.Add(i)
		}
	}
	if err := l.findClusters(); err != nil {
		return err
	}
	warps := int64(1)
	if l.stores.anySparse() {
		warps, l.blockSize = plan.WarpSize, plan.WarpSize
	}
	if l.threads.Empty() {
		return nil
	}
	conflicts := l.threadConflicts()
	if l.Tile != nil { // lanes of a tile have their places
		l.subAxes[l.free.Index.Of(l.Tile.ColumnLane)] = threadSubAxis{1, plan.ColumnLanes}
		l.subAxes[l.free.Index.Of(l.Tile.RowLane)] = threadSubAxis{plan.ColumnLanes, plan.RowLanes}
		if g := l.Tile.Group; g != nil {
			l.subAxes[l.free.Index.Of(g.Warp)] = threadSubAxis{plan.WarpSize, plan.GroupWarps}
		}
	}
	for _, role := range []plan.Role{plan.Warp, plan.Local, plan.Group} {
		for i := len(l.Roles) - 1; i >= 0; i-- {
			if l.Roles[i] == role && l.subAxes[i].extent == 0 {
				l.subAxes[i] = l.placeSubAxis(l.extent[i], conflicts[i])
			}
		}
	}
	for i, d := range l.subAxes {
		l.blockSize = lcm(l.blockSize, d.end())
		if l.Roles[i] != plan.Local {
			warps = plan.WarpSize
		}
		if l.Roles[i] == plan.Warp && (d.end() > plan.WarpSize || d.extent&(d.extent-1) != 0 || d.stride&(d.stride-1) != 0) {
			return fmt.Errorf("kernel: plan: WARP sub-axes of %d lanes at stride %d, want powers of two within a warp", d.extent, d.stride)
		}
		if l.blockSize > plan.MaxThreads {
			return fmt.Errorf("kernel: plan: %d threads a block, at most %d are allowed", l.blockSize, plan.MaxThreads)
		}
	}
	if l.blockSize = lcm(l.blockSize, warps); l.blockSize > int64(l.Desc.MaxThreads) {
		return fmt.Errorf("kernel: plan: %d threads a block, at most %d are allowed", l.blockSize, l.Desc.MaxThreads)
	}
	return nil
}

// threadConflicts lists, for each thread range, those with which it needs a
// place of its own: some value depends on both.
func (l *threads) threadConflicts() map[int]analyse.RangeSet {
	together, factors := make(map[analyse.RangeSet]bool), l.matrixFactors()
	for _, u := range ir.Toposort(l.Sink) {
		s := l.free.Of(u)
		switch u.Op {
		case ir.OpReduce:
			s = s.Union(l.free.SetOf(u.ReduceRange()))
			for _, v := range u.ReduceValues() {
				s = s.Union(l.free.Of(v))
			}
		case ir.OpStage:
			s = s.Union(l.free.Of(u.Src[0])).Union(l.free.SetOf(u.Src[1:]...))
		}
		if factors[u] && s.Has(l.free.Index.Of(l.Tile.ColumnLane)) { // the factors of columns are read along the lanes of rows
			s.Add(l.free.Index.Of(l.Tile.RowLane))
		}
		together[s.Meet(l.threads)] = true
	}
	conflicts := make(map[int]analyse.RangeSet)
	for s := range together {
		for _, i := range s.List() {
			conflicts[i] = conflicts[i].Union(s).Without(i)
		}
	}
	return conflicts
}

// matrixFactors are the expressions inside the sums that matrix instructions make.
func (l *threads) matrixFactors() map[*ir.UOp]bool {
	inside := make(map[*ir.UOp]bool)
	if l.Tile == nil {
		return inside
	}
	for _, u := range ir.Toposort(l.Sink) {
		if u.Op == ir.OpReduce && l.Roles[l.free.Index.Of(u.ReduceRange())] == plan.Matrix {
			for _, v := range u.ReduceValues() {
				for _, x := range ir.Toposort(v) {
					inside[x] = true
				}
			}
		}
	}
	return inside
}

// placeSubAxis finds the lowest place that is free.
func (l *threads) placeSubAxis(extent int64, conflicts analyse.RangeSet) threadSubAxis {
	candidates := []int64{1}
	for i, d := range l.subAxes {
		if conflicts.Has(i) {
			candidates = append(candidates, d.end())
		}
	}
	slices.Sort(candidates)
	for _, stride := range candidates {
		mine, ok := threadSubAxis{stride, extent}, true
		for i, d := range l.subAxes {
			ok = ok && (!conflicts.Has(i) || stride%d.end() == 0 || d.stride%mine.end() == 0)
		}
		if ok {
			return mine
		}
	}
	// Behind everything: the least common multiple of all ends.
	stride := int64(1)
	for i, d := range l.subAxes {
		if conflicts.Has(i) {
			stride = min(lcm(stride, d.end()), plan.MaxThreads+1)
		}
	}
	return threadSubAxis{stride, extent}
}

func lcm(x, y int64) int64 { return x / ir.GCD(x, y) * y }

func (l *threads) onGPU() bool { return l.Desc.Kind == target.GPU }

// openBlock declares the block's threads and, on a GPU, lets the next kernel
// start unless the plan says later.
func (l *threads) openBlock() {
	if !l.onGPU() {
		return
	}
	l.b.SetBlock(l.blockSize)
	l.trigger("start")
	if l.cluster > 1 {
		l.b.SetCluster(l.cluster)
		l.b.Emit(program.Instr{Op: program.ClusterArrive})
	}
	if l.blockSize > 1 {
		l.tid = l.b.Cast(l.b.ThreadIndex(0), ir.I64)
	}
}

// trigger lets the next kernel start here, if the plan says so.
func (l *threads) trigger(at string) {
	if l.Options.Program.Is(program.Trigger, at) {
		l.b.Emit(program.Instr{Op: program.LaunchNext})
	}
}

// threadIndex is the coordinate of a thread range.
func (l *threads) threadIndex(i int) *program.Value {
	if l.Roles[i] == plan.Cluster {
		return l.blockInCluster
	}
	s := l.scopes.stack[0]
	if v := s.index[i]; v != nil {
		return v
	}
	v := l.threadPart(l.subAxes[i])
	s.index[i] = v
	return v
}

// threadPart is a sub-axis of the thread's flat index.
func (l *threads) threadPart(d threadSubAxis) *program.Value {
	if v := l.threadParts[d]; v != nil {
		return v
	}
	var v *program.Value
	l.scopes.in(0, func() {
		v = l.exprs.indexDiv(l.tid, l.b.Index(d.stride))
		if d.end() < l.blockSize {
			v = l.exprs.indexMod(v, l.b.Index(d.extent))
		}
	})
	l.threadParts[d] = v
	return v
}

// threadTerm is a sub-axis of the thread's flat index times a coefficient.
type threadTerm struct {
	subAxis threadSubAxis
	coef    int64
}

// mergedThreads takes the thread ranges out of a linear form, and makes one sub-axis
// of neighbours whose coefficients go on where the lower one ends: 32*(t/8) +
// 4*(t%8) is 4*t. What different stages compute for one thread then has one
// address.
func (l *threads) mergedThreads(terms []ir.Term) (others []ir.Term, out []threadTerm) {
	for _, t := range terms {
		if i, ok := l.free.Index.Get(t.Atom); ok && l.threads.Has(i) && l.Roles[i] != plan.Cluster {
			out = append(out, threadTerm{l.subAxes[i], t.Coef})
			continue
		}
		others = append(others, t)
	}
	slices.SortFunc(out, func(x, y threadTerm) int { return int(x.subAxis.stride - y.subAxis.stride) })
	for k := 0; k+1 < len(out); {
		low, high := out[k], out[k+1]
		if low.subAxis.end() != high.subAxis.stride || high.coef != low.coef*low.subAxis.extent {
			k++
			continue
		}
		out[k].subAxis.extent *= high.subAxis.extent
		out = slices.Delete(out, k+1, k+2)
	}
	return others, out
}

// soleThread is the condition that this thread is the first of those that agree
// in some sub-axes, in the first block of a cluster; nil if they are all different.
func (l *threads) soleThread(own analyse.RangeSet) *program.Value {
	cond := l.soleInBlock(own)
	if l.cluster > 1 {
		first := l.b.Lt(l.blockInCluster, l.b.Index(1))
		if cond == nil {
			return first
		}
		cond = l.b.Alu(ir.OpAnd, cond, first)
	}
	return cond
}

// used are the places of some sub-axes in the index of a thread, lower ones first.
func (l *threads) used(own analyse.RangeSet) []threadSubAxis {
	var out []threadSubAxis
	for _, i := range own.List() {
		if l.Roles[i].IsThread() {
			out = append(out, l.subAxes[i])
		}
	}
	slices.SortFunc(out, func(x, y threadSubAxis) int { return int(x.stride - y.stride) })
	return out
}

// soleInBlock is soleThread for what every block of a cluster has of its own.
func (l *threads) soleInBlock(own analyse.RangeSet) *program.Value {
	if l.blockSize == 1 {
		return nil
	}
	var cond *program.Value
	l.scopes.in(0, func() {
		at := int64(1)
		for _, d := range append(l.used(own), threadSubAxis{stride: l.blockSize, extent: 1}) {
			if gap := d.stride / at; gap > 1 {
				v := l.exprs.indexDiv(l.tid, l.b.Index(at))
				if d.stride < l.blockSize {
					v = l.exprs.indexMod(v, l.b.Index(gap))
				}
				c := l.b.Lt(v, l.b.Index(1))
				if cond == nil {
					cond = c
				} else {
					cond = l.b.Alu(ir.OpAnd, cond, c)
				}
			}
			at = d.end()
		}
	})
	return cond
}

// mustBeUniform fails where threads that have to meet here may run a loop
// around it different numbers of times.
func (l *threads) mustBeUniform(warp bool) {
	for _, s := range l.scopes.stack {
		for _, i := range s.varies.List() {
			if !warp || l.subAxes[i].stride%plan.WarpSize != 0 {
				fail("plan: threads share a value inside a loop whose length differs among them")
			}
		}
	}
}

// barrier lets all threads of the block meet.
func (l *threads) barrier() {
	if l.blockSize > 1 {
		l.mustBeUniform(false)
		l.b.Barrier()
	}
}

// sharedAlign is the alignment of arrays of which nothing else asks for more: of the widest load.
const sharedAlign = 16

// newShared reserves shared memory.
func (l *threads) newShared(elem ir.DType, count int64) *program.Value {
	return l.newSharedAt(elem, count, sharedAlign)
}

// newSharedAt reserves shared memory from a multiple of some bytes on.
func (l *threads) newSharedAt(elem ir.DType, count int64, align int) *program.Value {
	bytes := (count*int64(elem.Size()) + 15) / 16 * 16
	if l.shared += bytes; l.shared > int64(l.Desc.SharedBytes) {
		fail("plan: %d bytes of shared memory, %s has %d a block", l.shared, l.Desc.Name, l.Desc.SharedBytes)
	}
	return l.memory.array(elem, program.SharedSpace, count, align)
}

// repeats reports that the current place is run more than once by a block, so
// that what is in shared memory may still be read by other threads.
func (l *threads) repeats() bool {
	for _, s := range l.scopes.stack {
		for _, i := range s.binds.List() {
			if l.Roles[i] == plan.Serial {
				return true // a loop that depends on no work unit stands in the outermost scope
			}
		}
	}
	return l.scopes.top() > 1
}

// openCluster takes a work unit's number apart: that of the point that a cluster has, and that
// of the block in it.
func (l *threads) openCluster(unit *program.Value) *program.Value {
	if l.cluster < 2 {
		return unit
	}
	n := l.b.Index(l.cluster)
	l.blockInCluster = l.exprs.indexMod(unit, n)
	return l.exprs.indexDiv(unit, n)
}

// findClusters notes the ranges that the blocks of a cluster share, and counts their reduces.
func (l *threads) findClusters() error {
	var shared analyse.RangeSet
	for i, role := range l.Roles {
		if role == plan.Cluster {
			shared.Add(i)
			l.cluster = l.extent[i]
		}
	}
	l.threads = l.threads.Union(shared)
	if shared.Empty() {
		return nil
	}
	for _, u := range ir.Toposort(l.Sink) {
		reduce := u
		if u.Op == ir.OpProj {
			reduce = u.Src[0]
		}
		if reduce.Op != ir.OpReduce || !shared.Has(l.free.Index.Of(reduce.ReduceRange())) {
			continue
		}
		if u == reduce {
			l.exchanges++
		}
		for _, i := range l.free.Of(u).List() {
			switch {
			case shared.Has(i):
				return fmt.Errorf("kernel: plan: the blocks of a cluster share a sum twice")
			case l.Roles[i] == plan.Serial && analyse.IsTuple(reduce) == (u != reduce):
				return fmt.Errorf("kernel: plan: the blocks of a cluster share a sum inside a loop")
			}
		}
	}
	return nil
}

// receivers is how many blocks of a cluster get the parts that are exchanged now.
func (l *threads) receivers() int64 {
	switch {
	case l.exchanged == 0:
		l.b.Emit(program.Instr{Op: program.ClusterWait})
	case l.exchanges == 1:
		panic("kernel: the blocks of a cluster exchange the parts of a sum twice")
	}
	l.exchanged++
	if l.exchanges == 1 {
		return 1
	}
	return l.cluster
}

// ownSlot numbers the threads of a block that differ in the given sub-axes.
func (l *threads) ownSlot(own analyse.RangeSet) (slot *program.Value, slots int64) {
	slot, slots = l.b.Index(0), 1
	for _, d := range l.used(own) {
		slot = l.b.Add(slot, l.b.Mul(l.threadPart(d), l.b.Index(slots)))
		slots *= d.extent
	}
	return slot, slots
}
