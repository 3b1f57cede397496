package heuristic

import (
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/ir/program"
	"tgc/kernel/plan"
)

// What a kernel has in front of and besides its main sums: stages that the
// threads of a block fill together, and the reduces inside them.

// aroundRows plans what a kernel has besides its main sums, for a block of so
// many threads: the points of a tile, other reduces, values computed in front.
func (p *planner) aroundRows(rows analyse.RangeSet, threads int64) {
	left := max(threads, gpuBlockThreads)
	for _, i := range slices.Backward(p.axesOf(plan.StoreAxis)) {
		if rows.Has(i) || !p.constant(i) || p.done[i] {
			continue
		}
		p.done[i] = true
		if p.size(i) <= maxStageCopies {
			p.split(plan.UPCAST, i, p.size(i))
			continue
		}
		if p.likeFold(i) {
			left = 1
			continue
		}
		n := p.besideThreads(p.size(i), threads, left)
		p.split(plan.LOCAL, i, n)
		p.roll(i)
		left /= n
	}
	p.sharedReduces(threads, p.groupStages(threads))
	p.sharedStages(threads)
	p.fma()
}

// likeFold gives the threads that fold a row its points, where those are all in flight at once: what is loaded for the fold
// is then stored without another load, and no turn waits for the one before.
func (p *planner) likeFold(i int) bool {
	threads, lanes := p.threadsTaken(), powerOfTwoDivisor(p.size(i), lanesOf(p.desc))
	turns := ceil(p.size(i)/lanes, threads)
	fills := lanes > 1 && p.unitStride(i) && p.storesAlong(i) && p.size(i) >= lanes*threads
	if !fills || len(p.stages) > 0 || threads < int64(p.desc.WarpSize) || turns >= 2*gpuLoads { // as many as inFlight takes
		return false
	}
	p.split(plan.VECTOR, i, lanes)
	p.split(plan.LOCAL, i, threads)
	p.split(plan.UPCAST, i, turns)
	return true
}

// besideThreads is how many of n points a block of so many threads takes at a time. Where a
// divisor of n would make the block a multiple of both, the last take has fewer points.
func (a *analysis) besideThreads(n, threads, limit int64) int64 {
	exact, even := divisor(n, limit), shares(n, limit)
	if even > exact || exact*threads/ir.GCD(exact, threads) > max(exact, threads) {
		return even
	}
	return exact
}

// Elements of a stage that a thread holds as lanes.
const (
	leastHeld = 4
	mostHeld  = 16
)

// groupStages plans stages in whose points groups share a reduce, such as the
// largest of 32 values by which each of them is divided. A thread holds
// neighbouring points and the same elements of the reduce, which threads of a
// group finish by shuffles: the loads of both are one. It returns how many points a
// thread holds, 0 where there is no such stage.
func (p *planner) groupStages(threads int64) (held int64) {
	for _, stage := range p.stages {
		own := p.stageAxes(stage)
		last := own[len(own)-1]
		for _, u := range ir.Toposort(stage.Src[0]) {
			if !p.groupReduce(u, own) {
				continue
			}
			r := p.axisOf(u.ReduceRange())
			groups := own
			if !p.free.Of(u).Has(last) {
				groups = own[:len(own)-1]
			}
			n := p.heldPoints(groups, r, threads)
			if n < leastHeld || p.size(r)/n > int64(p.desc.WarpSize) {
				continue
			}
			held = max(held, n)
			p.hold(plan.WARP, r, n)
			if len(groups) < len(own) {
				p.hold(plan.LOCAL, last, n)
			}
			p.shareGroups(groups, threads/(p.size(r)/n))
		}
	}
	return held
}

// heldPoints is how many neighbouring points a thread holds: as many as leave few
// threads of a block without any.
func (p *planner) heldPoints(groups []int, r int, threads int64) int64 {
	n := powerOfTwoDivisor(p.size(r), mostHeld)
	for ; n > leastHeld; n /= 2 {
		lanes := p.size(r) / n
		if lanes*p.points(groups)*100 >= threads*p.rounds(groups, threads/lanes)*exactWorth {
			break
		}
	}
	return n
}

// rounds is how often parts of a block take the next points of some axes.
func (p *planner) rounds(axes []int, parts int64) int64 {
	rounds := int64(1)
	for _, i := range slices.Backward(axes) {
		n := plan.PartsOf(parts, p.size(i))
		rounds, parts = rounds*ceil(p.size(i), n), parts/n
	}
	return rounds
}

// groupReduce reports a reduce that all points of a stage along its last axis
// share, or that its points are: one over neighbouring elements.
func (p *planner) groupReduce(u *ir.UOp, own []int) bool {
	if u.Op != ir.OpReduce || analyse.IsTuple(u) {
		return false
	}
	r, last := p.axisOf(u.ReduceRange()), own[len(own)-1]
	if slices.ContainsFunc(own, func(i int) bool { return p.done[i] || !p.constant(i) }) {
		return false
	}
	if p.done[r] || !p.constant(r) || p.size(r) != powerOfTwoDivisor(p.size(r), p.size(r)) || !p.laneSafe(r) || !p.unitStride(r) || !p.plainReduce(r) {
		return false
	}
	free, points := p.free.Of(u).Minus(p.heldAxes), setOf(own)
	if free.Has(last) {
		return free == points
	}
	return !free.Empty() && free == points.Without(last) && p.size(last) == p.size(r) && p.laneSafe(last) && p.unitStride(last)
}

// hold gives a thread n neighbouring points of an axis, and the rest to its
// neighbours.
func (p *planner) hold(share plan.OptKind, i int, n int64) {
	p.done[i] = true
	p.split(plan.VECTOR, i, n)
	p.split(share, i, p.left(i))
}

// shareGroups lets so many parts of a block take groups, several each where there
// are more.
func (p *planner) shareGroups(groups []int, parts int64) {
	for _, i := range slices.Backward(groups) {
		p.done[i] = true
		n := plan.PartsOf(parts, p.size(i))
		p.split(plan.LOCAL, i, n)
		p.split(plan.UNROLL, i, p.inFlight(i))
		parts /= n
	}
}

// sharedReduces lets threads share the other reduces of a kernel: the sum of a
// norm, the ranks of a top-k. A thread takes as many neighbouring points as it
// holds in front of the rows, so that both read them at once.
func (p *planner) sharedReduces(threads, held int64) {
	for _, i := range p.axesOf(plan.ReduceAxis) {
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
			parts := threads / gpuSector             // of a block, which would grow if they did not divide it
			if own := p.pointsOfRows(i); warp < gpuSector && threads%gpuSector == 0 && len(own) == 1 && plan.PartsOf(parts, p.size(own[0])) == parts {
				warp = gpuSector
				p.shareGroups(own, parts)
			}
		}
		if p.laneSafe(i) && p.unitStride(i) && p.plainReduce(i) {
			p.split(plan.VECTOR, i, powerOfTwoDivisor(p.size(i), min(max(held, lanesOf(p.desc)), p.size(i)/warp)))
		}
		p.split(plan.WARP, i, shares(p.left(i), warp))
		if p.size(i) >= gpuReduceThreads && p.around(i).Minus(p.heldAxes).Empty() { // one for all threads, outside of all loops
			p.split(plan.GROUP, i, plan.PartsOf(wholeWarps(threads, int64(p.desc.WarpSize)), p.left(i)))
		}
		p.split(plan.UNROLL, i, p.inFlight(i))
	}
}

// pointsOfRows are the axes of a stage whose points each fold a row that lies side by side, forwards or backwards: a thread for each would read a line
// of memory of its own. Some lanes share a row then, and points take turns. None where the stage is planned.
func (p *planner) pointsOfRows(axis int) []int {
	own := p.around(axis).Minus(p.storeSet()).List()
	other := func(i int) bool { return p.axes[i].Kind != plan.StageAxis || p.done[i] || !p.constant(i) }
	apart := func(u *ir.UOp) bool {
		if u.Op != ir.OpLoad || !p.dependsByIndex(u, axis) {
			return false
		}
		n := p.stride(u, axis)
		return n != 1 && n != -1
	}
	if !p.laneSafe(axis) || slices.ContainsFunc(own, other) || slices.ContainsFunc(p.order, apart) {
		return nil
	}
	return own
}

// wholeWarps is how many warps a block has whose rows take so many threads. What shares
// them divides them: the block would grow to a common multiple otherwise.
func wholeWarps(threads, warp int64) int64 { return threads / ir.GCD(threads, warp) }

// stagePointsAround is the number of points of stages, and of sums around it that
// stages are made for, that a reduce is computed for.
func (a *analysis) stagePointsAround(axis int) int64 {
	around := a.around(axis).Minus(a.storeSet()).List()
	return a.points(slices.DeleteFunc(around, func(i int) bool { return !a.constant(i) }))
}

// shortReduce takes the few points of a reduce at once.
func (p *planner) shortReduce(i int) {
	if p.dot(i) > 1 {
		p.split(plan.VECTOR, i, powerOfTwoDivisor(p.left(i), dotLanes))
		p.split(plan.UNROLL, i, p.left(i))
		return
	}
	switch n := p.size(i); {
	case n <= gpuSharedCopies*2 && n == powerOfTwoDivisor(n, n) && p.laneSafe(i) && p.plainReduce(i) && p.unitStride(i):
		p.split(plan.VECTOR, i, n)
	case n <= gpuSharedCopies && p.plainReduce(i):
		p.split(plan.UNROLL, i, n)
	}
}

// sharedStages lets threads fill the stages that no step has planned.
func (p *planner) sharedStages(threads int64) {
	for _, stage := range p.stages {
		left := threads
		for k := len(stage.Src) - 1; k >= 1; k-- {
			i := p.axisOf(stage.Src[k])
			if p.done[i] || !p.constant(i) || p.points(p.stageAxes(stage)) < int64(p.desc.WarpSize) {
				continue
			}
			p.done[i] = true
			if lanes := lanesOf(p.desc); k == len(stage.Src)-1 && p.size(i) >= left*lanes && p.laneSafe(i) && p.unitStride(i) {
				p.split(plan.VECTOR, i, powerOfTwoDivisor(p.size(i), lanes))
			}
			n := plan.PartsOf(left, p.left(i))
			p.split(plan.LOCAL, i, n)
			p.split(plan.UNROLL, i, p.inFlight(i))
			left /= n
		}
	}
}

func (a *analysis) stageAxes(stage *ir.UOp) []int {
	return lists.Map(stage.Src[1:], a.axisOf)
}

// mostRowThreads are those of a block that makes the stages of rows, at most, and rowWords is how many
// points of a stage each has before there are more of them: barriers wait for all warps.
const (
	mostRowThreads = 1024
	rowWords       = 2
)

// rowThreadsOf is how many threads make stages of so many points.
func (a *analysis) rowThreadsOf(points int64) int64 {
	threads := int64(1)
	for threads < mostRowThreads && (2*threads*rowWords <= points || threads < int64(a.desc.WarpSize) && 2*threads <= points) {
		threads *= 2
	}
	return threads
}

// stageChainThreads are the threads for stages that read stages, 1 where there are none: the steps
// of a network beside a fold.
func (a *analysis) stageChainThreads() int64 {
	threads := int64(1)
	for _, stage := range a.stages {
		if n := a.points(a.stageAxes(stage)); analyse.Any(stage.Src[0], func(u *ir.UOp) bool { return u.Op == ir.OpStage }) {
			threads = max(threads, a.rowThreadsOf(n))
		}
	}
	return threads
}

// startNextLate lets the next kernel start only once this one has begun its work, where kernels
// start early: the blocks of the kernel after it, which wait, would leave some multiprocessors more
// blocks of a long kernel than others. H200, us at the start and after the wait: sort of 256 x 256 5.1 and
// 3.3, of 100,000 72 and 49, scatter of 100,000 73 and 55 (docs/bench/library-h200.txt).
func (p *planner) startNextLate() {
	if plan.TRIGGER.On(p.desc) {
		p.add(plan.TRIGGER, "", int64(slices.Index(program.Trigger.Words(), "wait")+1))
	}
}
