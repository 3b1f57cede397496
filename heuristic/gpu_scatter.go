package heuristic

import (
	"fmt"
	"slices"

	"tgc/ir/analyse"
	"tgc/kernel/plan"
)

// Scatters of a GPU: a block has some of the points, and the lanes of its warps look for
// the terms that are theirs (kernel/lower/sparse.go); its threads run along rows. Each
// block looks at every term, so that it is worth it where points are many: a term less
// costs a lane one look for all points of a block and elements of a row, instead of one
// each. A product with a one-hot matrix took 9.4 ms on an H200 to add 100,000 rows of 64.
const (
	scatterBlocks = 8    // of a multiprocessor: terms that count wait for memory, one after the other
	scatterLook   = 2.5  // ns a term that warps of so many blocks look at: 300 instructions for 256, estimated
	scatterTake   = 1000 // ns a term that counts: its number, its row and the element that it is added to
	scatterUneven = 2    // terms of the block that has most, against what blocks have on average
	scatterOneHot = 8    // operations of a term that is compared, selected and added: half of the time threads wait
)

func gpuScatter(a *analysis, s *analyse.Scatter, axis int) ([]plan.Opt, string, Record) {
	terms := int64(1)
	for _, r := range s.Loops {
		terms = satMul(terms, a.size(a.axisOf(r)))
	}
	if a.movesAcross(s, axis) {
		return declined("own-points", "where a term counts depends on more than its number")
	}
	p := a.plan()
	threads := p.scatterThreads(axis)
	others := int64(1) // blocks beside those along the points
	for _, i := range p.axesOf(plan.StoreAxis) {
		if i < axis {
			others = satMul(others, p.left(i))
		}
	}
	units := int64(a.desc.Cost.Workers)
	parts := min(max(scatterBlocks*units/others, 1), p.size(axis))
	points := max(ceil(p.size(axis), parts), 2) // a loop
	results := float64(a.points(a.axesOf(plan.StoreAxis)))
	rounds := max(float64(others*ceil(p.size(axis), points))/float64(scatterBlocks*units), 1)
	scattered := rounds * (float64(terms)*scatterLook + scatterTake*scatterUneven*float64(terms*points)/float64(p.size(axis)))
	oneHot := results * float64(terms) * scatterOneHot * 2 * float64(a.desc.Cost.Op) / 1e6
	if scattered >= oneHot {
		return declined("few-points", "%d points look at %d terms in %.0f us, scattering takes %.0f us", p.size(axis), terms, oneHot/1e3, scattered/1e3)
	}
	p.opts = append([]plan.Opt{{Kind: plan.SCATTER, Axis: p.axes[axis].Name}}, p.opts...)
	p.split(plan.ROLL, axis, points)
	for _, i := range p.axesOf(plan.StoreAxis) {
		if i > axis && p.constant(i) {
			p.roll(i)
		}
	}
	how := fmt.Sprintf("%d terms looked for by warps, %d points and %d threads a block", terms, points, threads)
	return p.opts, how, Record{Axis: a.axes[axis].Name, Value: a.size(axis), Applied: true, Reason: "one-point", Detail: how}
}

// movesAcross reports that where terms count, or whether, depends on other store axes:
// threads along those would look for different ones.
func (a *analysis) movesAcross(s *analyse.Scatter, axis int) bool {
	free := a.free.Of(s.At)
	for _, c := range s.Cond {
		free = free.Union(a.free.Of(c))
	}
	return !free.Meet(a.storeSet().Without(axis)).Empty()
}

// scatterThreads puts neighbouring elements of a row side by side, or where points are
// innermost, rows.
func (p *planner) scatterThreads(axis int) (threads int64) {
	stores, threads := p.axesOf(plan.StoreAxis), int64(1)
	at := slices.Index(stores, axis)
	order := slices.Clone(stores[at+1:])
	slices.Reverse(order)
	for k := at - 1; k >= 0; k-- {
		order = append(order, stores[k])
	}
	for _, i := range order {
		if p.constant(i) && p.laneSafe(i) && threads < gpuBlockThreads {
			n := powerOfTwo(2*p.size(i)-1, 1, gpuBlockThreads/threads) // blocks are whole warps
			p.split(plan.LOCAL, i, n)
			threads *= n
		}
	}
	return threads
}
