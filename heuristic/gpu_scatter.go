package heuristic

import (
	"fmt"
	"slices"

	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/ir/program"
	"tgc/kernel/plan"
)

// Scatters of a GPU: a block has some of the points, its threads look for the terms that
// are theirs, and each warp then adds those of its own (kernel/lower/sparse.go); threads of
// a warp run along rows, and where those are short each has points of its own. Each block
// looks at every term, so that it is worth it where points are many: a term less costs the
// block one look for all of its points and elements of a row, instead of one each. Integers
// that threads alone have are added by those that look at them (kernel/lower/sparse.go):
// nothing waits but for loads.
const (
	scatterThreads = 512  // of a block, at most
	scatterRoom    = 1024 // threads of a multiprocessor
	scatterLookOps = 16   // operations of a look
	scatterRound   = 500  // ns until a block has looked at some terms and taken its own
	scatterTake    = 600  // ns a term that counts: its number, its row and the element that it is added to
	scatterUneven  = 2    // terms of the warp that has most, against what warps have on average
	scatterOneHot  = 8    // operations of a term that is compared, selected and added: half of the time threads wait
	scatterLooks   = 32   // terms that a thread looks at in a round
	scatterTurns   = 8    // of those whose loads are in flight together
	scatterWait    = 800  // ns that loads take, and what an atomic operation reads again
	scatterFill    = 20   // ns a point of a thread, which is written before and read after
)

// scatterWay is how blocks and threads share the points of a scatter.
type scatterWay struct {
	row, owners int64 // threads along a row, and along the points
	points      int64 // of a thread
	blocks      int64
	ns          float64
}

func gpuScatter(a *analysis, s *analyse.Scatter, axis int) proposal {
	terms := int64(1)
	for _, r := range s.Loops {
		terms = satMul(terms, a.size(a.axisOf(r)))
	}
	moving := a.movesAcross(s, axis)
	if slices.ContainsFunc(moving.List(), func(i int) bool { return i > axis }) {
		return declined("own-points", "where a term counts depends on the element of its row")
	}
	p := a.plan()
	row := p.scatterSideBySide(axis, moving)
	anyOrder := row == 1 && len(p.opts) == 0 && program.HasAtomic(s.Fold.Arg.(ir.ReduceArg).Op, s.Fold.DType)
	w := p.scatterWay(axis, row, terms, anyOrder)
	oneHot := float64(a.points(a.axesOf(plan.StoreAxis))) * float64(terms) * scatterOneHot * a.opTime()
	if w.ns >= oneHot {
		return declined("few-points", "%d points look at %d terms in %.0f us, scattering takes %.0f us", p.size(axis), terms, oneHot/1e3, w.ns/1e3)
	}
	p.opts = append([]plan.Opt{{Kind: plan.SCATTER, Axis: p.axes[axis].Name}}, p.opts...)
	p.split(plan.LOCAL, axis, w.owners)
	p.split(plan.ROLL, axis, w.points)
	for _, i := range p.axesOf(plan.StoreAxis) {
		if i > axis && p.constant(i) {
			p.roll(i)
		}
	}
	p.startNextLate()
	how := fmt.Sprintf("%d terms looked for by %d threads a block of %d points: %.0f us", terms, w.owners*w.row, w.points*w.owners, w.ns/1e3)
	return p.decidedBy(axis, "one-point", how)
}

// opTime is that of an operation of a kernel whose threads often wait, in ns.
func (a *analysis) opTime() float64 { return 2 * float64(a.desc.Cost.Op) / 1e6 }

// scatterWay is the cheapest: more blocks look at all terms more often, and fewer warps
// have more terms each to take one after the other.
func (p *planner) scatterWay(axis int, row, terms int64, anyOrder bool) (best scatterWay) {
	others := int64(1) // blocks beside those along the points
	for _, i := range p.axesOf(plan.StoreAxis) {
		if i < axis {
			others = satMul(others, p.left(i))
		}
	}
	units, most := int64(p.desc.Cost.Workers), int64(scatterThreads)
	if anyOrder {
		most = scatterRoom
	}
	for owners := int64(1); owners*row <= most && owners < 2*p.size(axis); owners *= 2 {
		threads := max(owners*row, int64(p.desc.WarpSize))
		for points := int64(1); points <= ceil(p.size(axis), owners); points += max(points/2, 1) {
			w := scatterWay{row: row, owners: owners, points: points, blocks: satMul(others, ceil(p.size(axis), owners*points))}
			looks := float64(terms) * float64(ceil(w.blocks, units)*units) * scatterLookOps * p.opTime()
			waves := float64(ceil(w.blocks, units*(scatterRoom/threads)))
			rounds := float64(ceil(terms, threads*scatterLooks)) * scatterRound
			together := max(int64(p.desc.WarpSize)/row, 1) // threads of a warp that have points of their own
			takes := float64(terms) * float64(points*min(together, owners)) / float64(p.size(axis)) * scatterTake * scatterUneven
			if anyOrder {
				rounds, takes = float64(ceil(terms, threads*scatterTurns))*scatterWait, float64(points)*scatterFill
			}
			if w.ns = looks + waves*(rounds+takes); best.ns == 0 || w.ns < best.ns {
				best = w
			}
		}
	}
	return best
}

// movesAcross are the other store axes on which where terms count, or whether, depends:
// threads along those would look for different ones.
func (a *analysis) movesAcross(s *analyse.Scatter, axis int) analyse.RangeSet {
	free := a.free.Of(s.At)
	for _, c := range s.Cond {
		free = free.Union(a.free.Of(c))
	}
	return free.Meet(a.storeSet().Without(axis))
}

// scatterSideBySide puts neighbouring elements of a row side by side, or where points are
// innermost, rows; none along axes with which terms move.
func (p *planner) scatterSideBySide(axis int, moving analyse.RangeSet) (threads int64) {
	stores, threads := p.axesOf(plan.StoreAxis), int64(1)
	at := slices.Index(stores, axis)
	order := slices.Clone(stores[at+1:])
	slices.Reverse(order)
	if len(order) > 0 {
		if last, warp := order[0], int64(p.desc.WarpSize); p.constant(last) && p.laneSafe(last) && p.unitStride(last) && p.storesAlong(last) && p.size(last) > warp {
			p.split(plan.VECTOR, last, powerOfTwoDivisor(p.size(last), powerOfTwo(p.size(last)/warp, 1, lanesOf(p.desc))))
		}
	}
	for k := at - 1; k >= 0; k-- {
		order = append(order, stores[k])
	}
	for _, i := range order {
		if p.constant(i) && p.laneSafe(i) && threads < gpuBlockThreads && !moving.Has(i) {
			n := powerOfTwo(2*p.left(i)-1, 1, gpuBlockThreads/threads)
			p.split(plan.LOCAL, i, n)
			threads *= n
		}
	}
	return threads
}
