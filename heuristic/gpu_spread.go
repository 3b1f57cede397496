package heuristic

import (
	"slices"

	"tgc/kernel/plan"
)

// Points that share reduces which are short beside them: the rows of a softmax whose sums
// were made in parts, one mean that is taken off everything. They are an elementwise
// kernel, of which each block makes the reduces again. All points of a row as the work of
// its block were 16 blocks for 16 rows of a million.
const (
	spreadWorth  = 16 // points of a block for each that it reduces, at least
	spreadBlocks = 8  // of a multiprocessor: all threads that it can have
)

// manyPoints reports a store axis on which no reduce depends, and so many points along it
// that blocks had better share them.
func (a *analysis) manyPoints(i int) bool {
	if i < 0 || len(a.stages) > 0 || !a.constant(i) || !a.everyStore(i) || !a.laneSafe(i) {
		return false
	}
	if a.size(i) < gpuLoads*gpuBlockThreads*gpuBlocksPerUnit || a.size(i) < spreadWorth*a.reducedPoints() {
		return false
	}
	return !slices.ContainsFunc(a.axesOf(plan.ReduceAxis), func(r int) bool { return a.around(r).Has(i) })
}

// reducedPoints is how many points all reduces have that a block makes once.
func (a *analysis) reducedPoints() int64 {
	n := int64(0)
	for _, r := range a.axesOf(plan.ReduceAxis) {
		n += a.nestPoints(r)
	}
	return n
}

// spread shares the points of an axis among blocks, where they are many: 16 bytes a
// thread, and so many in turn that a block has work and the device blocks.
func (p *planner) spread(i int, threads int64) bool {
	if !p.manyPoints(i) {
		return false
	}
	p.done[i] = true
	if p.unitStride(i) && p.storesAlong(i) {
		p.split(plan.VECTOR, i, powerOfTwoDivisor(p.size(i), lanesOf(p.desc)))
	}
	p.split(plan.LOCAL, i, max(threads, gpuReduceThreads))
	p.split(plan.UPCAST, i, p.copiesOf(i, gpuLoads)) // loads in flight
	each := max(p.taken[i], 1)
	others := p.points(p.axesOf(plan.StoreAxis)) / p.size(i)
	blocks := max(spreadBlocks*int64(p.desc.Cost.Workers)/others, 1)
	if turns := min(max(p.left(i)/blocks, ceil(spreadWorth*p.reducedPoints(), each)), p.left(i)); turns > 1 {
		p.split(plan.ROLL, i, turns)
	}
	return true
}
