package heuristic

import (
	"tgc/ir"
	"tgc/kernel"
)

// What a kernel has in front of and besides its main sums: stages that the
// threads of a block fill together, and the reduces inside them.

// aroundRows plans what a kernel has besides its main sums, for a block of so
// many threads: the points of a tile, other reduces, values computed in front.
func (p *planner) aroundRows(rows axisSet, threads int64) {
	for _, i := range p.axesOf(kernel.StoreAxis) {
		if rows.has(i) || !p.constant(i) || p.done[i] {
			continue
		}
		p.done[i] = true
		if p.size(i) <= maxStageCopies {
			p.split(kernel.UPCAST, i, p.size(i))
			continue
		}
		p.split(kernel.LOCAL, i, divisor(p.size(i), max(threads, gpuBlockThreads)))
		p.roll(i)
	}
	p.sharedReduces(threads)
	p.sharedStages(threads)
	p.fma()
}

// sharedReduces lets threads share the other reduces of a kernel: the sum of a
// norm, the ranks of a top-k.
func (p *planner) sharedReduces(threads int64) {
	for _, i := range p.axesOf(kernel.ReduceAxis) {
		if p.done[i] || !p.constant(i) {
			continue
		}
		p.done[i] = true
		if p.size(i) < int64(p.desc.WarpSize) || p.size(i) <= gpuDotPoints && p.dotAxis(i) {
			p.shortReduce(i)
			continue
		}
		warp := int64(p.desc.WarpSize)
		if points := p.stagePointsAround(i); points > 1 {
			warp = min(warp, max(threads/points, 1)) // the stage's points have threads, too
		}
		if p.laneSafe(i) && p.unitStride(i) && p.plainReduce(i) {
			p.split(kernel.VECTOR, i, powerOfTwoDivisor(p.size(i)/warp, lanesOf(p.desc)))
		}
		p.split(kernel.WARP, i, powerOfTwoDivisor(p.left(i), warp))
		if p.size(i) >= gpuReduceThreads && p.alone(i) {
			p.split(kernel.GROUP, i, powerOfTwoDivisor(p.left(i), threads/int64(p.desc.WarpSize)))
		}
		p.split(kernel.UNROLL, i, powerOfTwoDivisor(p.left(i), gpuLoads))
	}
}

// stagePointsAround is the number of points of stages that a reduce is computed
// for.
func (a *analysis) stagePointsAround(axis int) int64 {
	var around axisSet
	for _, u := range a.order {
		if u.Op == ir.OpReduce && a.index[u.ReduceRange()] == axis {
			around = around.union(a.free[u])
		}
	}
	n := int64(1)
	for _, i := range around.list() {
		if a.axes[i].Kind == kernel.StageAxis && a.constant(i) {
			n = satMul(n, a.size(i))
		}
	}
	return n
}

// shortReduce takes the few points of a reduce at once.
func (p *planner) shortReduce(i int) {
	if p.dot(i) > 1 {
		p.split(kernel.VECTOR, i, powerOfTwoDivisor(p.left(i), dotLanes))
		p.split(kernel.UNROLL, i, p.left(i))
		return
	}
	switch n := p.size(i); {
	case n <= gpuSharedCopies*2 && n == powerOfTwoDivisor(n, n) && p.laneSafe(i) && p.plainReduce(i) && p.unitStride(i):
		p.split(kernel.VECTOR, i, n)
	case n <= gpuSharedCopies && p.plainReduce(i):
		p.split(kernel.UNROLL, i, n)
	}
}

// alone reports a reduce whose result depends on nothing that is shared out
// among threads or looped over.
func (a *analysis) alone(axis int) bool {
	for _, u := range a.order {
		if u.Op == ir.OpReduce && a.index[u.ReduceRange()] == axis && !a.free[u].empty() {
			return false
		}
	}
	return true
}

// sharedStages lets threads fill the stages that no step has planned.
func (p *planner) sharedStages(threads int64) {
	for _, stage := range p.stages {
		left := threads
		for k := len(stage.Src) - 1; k >= 1; k-- {
			i := p.index[stage.Src[k]]
			if p.done[i] || !p.constant(i) || p.points(p.stageAxes(stage)) < int64(p.desc.WarpSize) {
				continue
			}
			p.done[i] = true
			n := divisor(p.size(i), left)
			p.split(kernel.LOCAL, i, n)
			left /= n
		}
	}
}

func (a *analysis) stageAxes(stage *ir.UOp) []int {
	var out []int
	for _, z := range stage.Src[1:] {
		out = append(out, a.index[z])
	}
	return out
}
