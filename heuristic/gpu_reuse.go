package heuristic

import (
	"fmt"
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/kernel/plan"
)

// Results that read the same. Where all loads of a reduce stand still along a store axis
// or are contiguous along it, threads side by side along it are as well fed as lanes of
// the reduce, and each has a result of its own: nothing is folded. The ranks of a sort,
// running sums, distances. 512 rows of 512 ranks, a block for each rank, took 300 us on an
// H200.

// sideBySide is the store axis along which neighbouring threads have a result each, -1 if
// lanes along the reduce do better.
func (p *planner) sideBySide(axes []int) int {
	if i := p.columnAxis(axes); i >= 0 {
		return i
	}
	return p.reuseAxis(axes)
}

// reuseAxis is a store axis along which what the reduces read stands still or lies side by
// side; -1 if there is none, or too few results for a thread each.
func (p *planner) reuseAxis(axes []int) int {
	if len(p.stages) > 0 || p.points(p.axesOf(plan.StoreAxis)) < gpuBlockThreads*int64(p.desc.Cost.Workers) {
		return -1
	}
	return lists.Last(p.axesOf(plan.StoreAxis), func(i int) bool {
		return p.constant(i) && p.size(i) >= lanesOf(p.desc) && p.laneSafe(i) && p.everyStore(i) && p.allReduceInto(axes, i) && p.fedAlong(i)
	}, -1)
}

// fedAlong reports that all loads of reduces that move along an axis move by one element.
func (a *analysis) fedAlong(axis int) bool {
	return !slices.ContainsFunc(a.order, func(u *ir.UOp) bool {
		return u.Op == ir.OpReduce && slices.ContainsFunc(ofSum(u), func(x *ir.UOp) bool { return !a.readBeside(x, axis, false) })
	})
}

// allReduceInto reports that every reduce has a result for each point of an axis.
func (a *analysis) allReduceInto(axes []int, result int) bool {
	return !slices.ContainsFunc(axes, func(r int) bool { return !a.around(r).Has(result) })
}

// sharedStageAxis is the store axis whose points had better share a block, since each
// block makes stages that take long beside a point's own reduces; -1: there is none.
func (p *planner) sharedStageAxis(axes []int) int {
	i := p.lastStore(p.axesOf(plan.StoreAxis))
	if i < 0 || len(p.stages) == 0 || p.size(i) < int64(p.desc.WarpSize) || !p.everyStore(i) || !p.laneSafe(i) {
		return -1
	}
	inStages, own := int64(0), int64(0)
	for _, stage := range p.stages {
		inStages += p.points(p.stageAxes(stage))
	}
	for _, r := range axes {
		if p.around(r).Has(i) {
			own += p.nestPoints(r)
		} else {
			inStages += satMul(p.size(r), p.stagePointsAround(r))
		}
	}
	if own == 0 || inStages*stageWorth <= own {
		return -1
	}
	return i
}

// stageWorth is how many times as long as its stages a point's own reduces take where a block
// may make the stages for it alone.
const stageWorth = 8

// gpuStageSharers gives each of the points that share stages a thread.
func (p *planner) gpuStageSharers(i int, axes []int) (threads int64) {
	threads = p.threads(p.size(i), gpuReduceThreads)
	p.split(plan.LOCAL, i, threads)
	p.done[i] = true
	for _, r := range axes {
		if p.around(r).Has(i) && p.constant(r) {
			p.done[r] = true
			p.ownReduce(r, true)
		}
	}
	return threads
}

// ownReduce takes a few points of a reduce, or of a thread's part of one, at once; as
// lanes, which are one load, if no other threads have a part.
func (p *planner) ownReduce(r int, whole bool) {
	if whole && p.laneSafe(r) && p.unitStride(r) && p.plainReduce(r) {
		p.split(plan.VECTOR, r, powerOfTwoDivisor(p.size(r), lanesOf(p.desc)))
	}
	p.split(plan.UNROLL, r, p.copiesOf(r, gpuLoads))
}

// gpuWindow plans short reduces whose neighbours read near each other, the window of a pool
// or of a convolution of single channels: a thread makes a result with all loads in flight,
// and its neighbours read the same lines. As a product of rows, whose terms threads share,
// 3 x 3 over 128 planes of 56 x 56 took 29 us on an H200, where 3 us move its bytes.
func gpuWindow(a *analysis) proposal {
	p, axes := a.plan(), a.axesOf(plan.ReduceAxis)
	axis, _ := p.resultLanes()
	if axis < 0 || len(p.stages) > 0 || !a.allReduceInto(axes, axis) {
		return proposal{}
	}
	window, points, known := a.reducesAlong(axis)
	few := a.points(a.axesOf(plan.StoreAxis)) < gpuBlockThreads*int64(a.desc.Cost.Workers)
	if !known || points > longestWindow || few && points > windowCopies || slices.ContainsFunc(window, p.longWindow) {
		return proposal{}
	}
	most := int64(gpuBlockThreads)
	if !p.storesAlong(axis) {
		most = gpuWindowSide
	}
	best := p.shareWindows(axis, window)
	p.split(plan.VECTOR, axis, best.lanes)
	threads := a.threads(p.left(axis), most)
	p.split(plan.LOCAL, axis, threads)
	p.done[axis] = true
	if best.rows > 1 {
		p.split(plan.UPCAST, best.along, best.rows)
	}
	p.fillBlock(threads)
	for _, r := range window {
		if p.plainReduce(r) {
			p.split(plan.VECTOR, r, p.runOf(r, p.size(r)))
		}
	}
	copies := p.windowCopies(window, windowCopies)
	p.fma()
	how := fmt.Sprintf("a thread each along %s, %d results with %d points each unrolled", a.axes[axis].Name, best.rows*best.lanes, copies)
	return p.decidedBy(axis, "window", how).of("%d ranges of up to %d points", len(axes), a.size(a.longest(axes)))
}

// gpuWindowSide is how many results a block has along the axis along which windows read side by
// side, where another one is that of memory: a block reads and writes two sectors a row.
const gpuWindowSide = 2 * gpuSector

// windowRows are the results of a thread that are tried, one behind the other, and
// windowLanes those side by side.
var (
	windowRows  = []int64{1, 2, 3, 4, 5, 6, 7, 8}
	windowLanes = []int64{1, 2, 4}
)

// shared are the results of a thread that share loads: rows along an axis, of so many lanes
// side by side each.
type shared struct {
	along       int
	rows, lanes int64
}

// shareWindows gives a thread results of several windows, whose loads it then shares: rows
// whose windows overlap or read the same, and neighbours that read side by side and share what
// stands still, so many that the loads of all threads take the least time. Of the results that
// are left a multiprocessor needs enough warps to issue at its rate.
func (p *planner) shareWindows(axis int, window []int) shared {
	best, least := shared{-1, 1, 1}, p.windowTime(shared{-1, 1, 1}, axis, window)
	for _, i := range p.axesOf(plan.StoreAxis) {
		if i == axis || p.done[i] || !p.constant(i) || !p.everyStore(i) || !p.allReduceInto(window, i) {
			continue
		}
		for _, rows := range windowRows {
			for _, lanes := range windowLanes {
				if p.size(i)%rows != 0 || lanes > 1 && !p.apartAlong(axis, lanes, window) {
					continue
				}
				s := shared{i, rows, lanes}
				if t := p.windowTime(s, axis, window); t < least {
					best, least = s, t
				}
			}
		}
	}
	return best
}

// apartAlong reports that neighbours along an axis read nothing in common but what stands still
// along it, and whole vectors of so many lanes.
func (p *planner) apartAlong(axis int, lanes int64, window []int) bool {
	return p.size(axis)%lanes == 0 && p.storesAlong(axis) && !slices.ContainsFunc(p.order, func(u *ir.UOp) bool {
		if u.Op != ir.OpLoad || !p.free.Of(u).Has(axis) {
			return false
		}
		return p.stride(u, axis) != 1 || slices.ContainsFunc(window, func(r int) bool { return p.free.Of(u).Has(r) && p.stride(u, r)%lanes != 0 })
	})
}

// loadIssue is how many operations a multiprocessor issues in the time of a load.
const loadIssue = 4

// windowTime is how long a multiprocessor issues what its threads do that share some results,
// in operations of a warp. Neighbours along the axis of the lanes are one load.
func (p *planner) windowTime(s shared, axis int, window []int) float64 {
	loads, sums := int64(0), s.rows*s.lanes*p.points(window)
	for _, u := range p.order {
		if isAccess(u) || u.Op == ir.OpLoad { // stages there are none, tables lie in memory
			loads += p.windowLoads(u, s, window)
		}
	}
	warps := float64(p.points(p.axesOf(plan.StoreAxis))) / float64(s.rows*s.lanes*int64(p.desc.WarpSize)*int64(p.desc.Cost.Workers))
	return max(warps, p.desc.Threads.Busy) * float64(loadIssue*loads+sums)
}

// windowLoads is how often a thread loads, for all of its results.
func (p *planner) windowLoads(u *ir.UOp, s shared, window []int) int64 {
	free, each := p.free.Of(u), int64(1)
	again := -1 // the axis of the window along which its rows are those of the next result
	for _, r := range window {
		if step := p.stride(u, r); s.along >= 0 && free.Has(r) && free.Has(s.along) && step != 0 && p.stride(u, s.along)%step == 0 && p.stride(u, s.along)/step < p.size(r) {
			again = r
		}
	}
	for _, r := range window {
		if free.Has(r) && r != again {
			each *= p.size(r)
		}
	}
	switch {
	case again >= 0:
		each *= (s.rows-1)*(p.stride(u, s.along)/p.stride(u, again)) + p.size(again)
	case s.along >= 0 && free.Has(s.along):
		each *= s.rows
	}
	for _, r := range window {
		if r != again && p.runsAlong(u, r) {
			each /= p.runOf(r, p.size(r))
		}
	}
	return each
}

// longWindow reports a reduce of more points than a window has along one axis.
func (p *planner) longWindow(axis int) bool {
	return p.size(axis) > windowPoints || slices.ContainsFunc(p.reduces[axis], analyse.IsTuple)
}
