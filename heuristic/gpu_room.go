package heuristic

import (
	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/kernel/plan"
	"tgc/target"
)

// The room of a block. Sub-axes on which some value depends together have places of their
// own in the index of a thread, so that their threads multiply; others share theirs. A
// plan that asks for more threads than a block has is refused as a whole, and one thread
// a point, which is what follows, makes what a block shares for each point again: the sum
// of an outer and an inner axis took 401 KB a thread. So every generator's splits get what
// room is left.

// threadSplits are the threads, and the lanes of warps among them, along axes. Where
// counted, who splits has counted the threads of a block: a plan that is priced for so
// many is refused rather than carried out with fewer.
type threadSplits struct {
	threads, lanes map[int]int64
	counted        bool
}

// together lists the sets of axes on which values depend together.
func (a *analysis) together() []analyse.RangeSet {
	if a.dependent != nil {
		return a.dependent
	}
	seen := make(map[analyse.RangeSet]bool)
	for _, u := range a.order {
		s := a.free.Of(u)
		switch u.Op {
		case ir.OpReduce:
			s = s.With(a.axisOf(u.ReduceRange()))
			for _, v := range u.ReduceValues() {
				s = s.Union(a.free.Of(v))
			}
		case ir.OpStage:
			s = s.Union(a.free.Of(u.Src[0])).Union(setOf(a.stageAxes(u)))
		}
		if !seen[s] {
			seen[s] = true
			a.dependent = append(a.dependent, s)
		}
	}
	return a.dependent
}

// room is how many more threads, or lanes, an axis can have.
func (p *planner) room(kind plan.OptKind, axis int) int64 {
	most, along := int64(p.desc.MaxThreads), p.inBlock.threads
	if kind == plan.WARP {
		most, along = int64(p.desc.WarpSize), p.inBlock.lanes
	}
	return max(most/p.most(along, func(s analyse.RangeSet) bool { return s.Has(axis) }), 1)
}

// most is the largest product of threads along axes that some value has together.
func (p *planner) most(along map[int]int64, counts func(s analyse.RangeSet) bool) int64 {
	most := int64(1)
	for _, s := range lists.Filter(p.together(), counts) {
		n := int64(1)
		for _, i := range s.List() {
			n = satMul(n, max(along[i], 1))
		}
		most = max(most, n)
	}
	return most
}

// threadsTaken is how many threads a block has.
func (p *planner) threadsTaken() int64 {
	return p.most(p.inBlock.threads, func(analyse.RangeSet) bool { return true })
}

// blockWith is how many threads a block has once n more share an axis: what shares them
// divides them, so that rows of 96 beside a stage of 32 sums, a warp each, ask for 3,072.
func (p *planner) blockWith(axis int, n int64) int64 {
	threads := int64(1)
	for _, s := range p.together() {
		m := int64(1)
		for _, i := range s.List() {
			m = satMul(m, max(p.inBlock.threads[i], 1))
			if i == axis {
				m = satMul(m, n)
			}
		}
		threads = satMul(threads/ir.GCD(threads, m), m)
	}
	return threads
}

// fitting is how many of n threads along an axis a block has room for.
func (p *planner) fitting(kind plan.OptKind, axis int, n int64) int64 {
	if p.desc.Kind != target.GPU || kind != plan.LOCAL && kind != plan.GROUP && kind != plan.WARP {
		return n
	}
	if !p.inBlock.counted {
		n = divisor(n, p.room(kind, axis))
		fewer := divisor
		if kind == plan.WARP { // shuffles need a power of two
			fewer = powerOfTwoDivisor
			n = fewer(n, p.room(plan.LOCAL, axis))
		}
		for n > 1 && p.blockWith(axis, n) > int64(p.desc.MaxThreads) {
			n = fewer(n, n-1)
		}
	}
	if n > 1 {
		p.inBlock.threads[axis] = max(p.inBlock.threads[axis], 1) * n
		if kind == plan.WARP {
			p.inBlock.lanes[axis] = max(p.inBlock.lanes[axis], 1) * n
		}
	}
	return n
}
