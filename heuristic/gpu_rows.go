package heuristic

import (
	"fmt"

	"tgc/kernel/plan"
	"tgc/target"
)

// gpuRowStages plans stores of what a block makes in stages, row after row, without any fold: the
// steps of a sorting network. Threads run along all stages; blocks of short rows have several.
func gpuRowStages(a *analysis) proposal {
	p := a.plan()
	last := a.lastStore(a.axesOf(plan.StoreAxis))
	if a.desc.Kind != target.GPU || len(a.stages) == 0 || last < 0 || !a.constant(last) {
		return proposal{}
	}
	points := int64(1)
	for _, stage := range a.stages {
		own := a.stageAxes(stage)
		if len(own) != 1 || !a.constant(own[0]) || a.free.Of(stage).Has(last) {
			return proposal{}
		}
		points = max(points, a.size(own[0]))
	}
	threads := a.rowThreadsOf(points)
	p.split(plan.LOCAL, last, min(threads, powerOfTwo(2*a.size(last)-1, 1, threads)))
	p.done[last] = true
	p.roll(last)
	for _, z := range a.axesOf(plan.StageAxis) {
		p.split(plan.LOCAL, z, plan.PartsOf(threads, a.size(z)))
		p.split(plan.UNROLL, z, p.left(z))
		p.done[z] = true
	}
	for _, r := range a.axesOf(plan.ReduceAxis) {
		p.split(plan.UNROLL, r, p.size(r))
		p.done[r] = true
	}
	p.fillBlock(threads)
	p.startNextLate()
	how := fmt.Sprintf("%d stages of rows of up to %d points, %d threads a row", len(a.stages), points, threads)
	return p.decidedBy(last, "rows", how).of("%d points", a.points(a.axesOf(plan.StoreAxis)))
}
