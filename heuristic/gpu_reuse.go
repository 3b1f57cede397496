package heuristic

import (
	"fmt"
	"math"
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
	threads := a.threads(p.size(axis), most)
	p.split(plan.LOCAL, axis, threads)
	p.done[axis] = true
	rows := p.shareWindows(axis, window)
	p.fillBlock(threads)
	for _, r := range window {
		if p.plainReduce(r) {
			p.split(plan.VECTOR, r, p.runOf(r, p.size(r)))
		}
	}
	copies := p.windowCopies(window)
	p.fma()
	how := fmt.Sprintf("a thread each along %s, %d results with %d points each unrolled", a.axes[axis].Name, rows, copies)
	return p.decidedBy(axis, "window", how).of("%d ranges of up to %d points", len(axes), a.size(a.longest(axes)))
}

// gpuWindowSide is how many results a block has along the axis along which windows read side by
// side, where another one is that of memory: a block reads and writes two sectors a row.
const gpuWindowSide = 2 * gpuSector

// windowRows are the results of a thread that are tried, one behind the other.
var windowRows = []int64{1, 2, 3, 4, 5, 6, 7, 8}

// shareWindows gives a thread results of several windows that overlap, whose loads it then
// shares: so many that the loads of all threads take the least time. Of the results that are
// left a multiprocessor needs enough warps to issue at its rate.
func (p *planner) shareWindows(lanes int, window []int) int64 {
	best, along, least := int64(1), -1, math.Inf(1)
	for _, i := range p.axesOf(plan.StoreAxis) {
		if i == lanes || p.done[i] || !p.constant(i) || !p.everyStore(i) || !p.allReduceInto(window, i) {
			continue
		}
		for _, n := range windowRows {
			if p.size(i)%n == 0 {
				if t := p.windowTime(i, n, window); t < least {
					best, along, least = n, i, t
				}
			}
		}
	}
	if along >= 0 {
		p.split(plan.UPCAST, along, best)
	}
	return best
}

// loadIssue is how many operations a multiprocessor issues in the time of a load.
const loadIssue = 4

// windowTime is how long a multiprocessor issues what its threads do that have n results along
// an axis each, in operations of a warp.
func (p *planner) windowTime(axis int, n int64, window []int) float64 {
	loads, sums := int64(0), n*p.points(window)
	for _, u := range p.order {
		if !isAccess(u) && u.Op != ir.OpLoad { // stages there are none, tables lie in memory
			continue
		}
		free, each := p.free.Of(u), int64(1)
		shared := -1 // the axis of the window along which its rows are those of the next result
		for _, r := range window {
			if step := p.stride(u, r); free.Has(r) && free.Has(axis) && step != 0 && p.stride(u, axis)%step == 0 && p.stride(u, axis)/step < p.size(r) {
				shared = r
			}
		}
		for _, r := range window {
			if free.Has(r) && r != shared {
				each *= p.size(r)
			}
		}
		switch {
		case shared >= 0:
			each *= (n-1)*(p.stride(u, axis)/p.stride(u, shared)) + p.size(shared)
		case free.Has(axis):
			each *= n
		}
		for _, r := range window {
			if r != shared && p.runsAlong(u, r) {
				each /= p.runOf(r, p.size(r))
			}
		}
		loads += each
	}
	warps := float64(p.points(p.axesOf(plan.StoreAxis))) / float64(n*int64(p.desc.WarpSize)*int64(p.desc.Cost.Workers))
	return max(warps, p.desc.Threads.Busy) * float64(loadIssue*loads+sums)
}

// longWindow reports a reduce of more points than a window has along one axis.
func (p *planner) longWindow(axis int) bool {
	return p.size(axis) > windowPoints || slices.ContainsFunc(p.reduces[axis], analyse.IsTuple)
}
