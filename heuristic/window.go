package heuristic

import (
	"fmt"
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/kernel/plan"
	"tgc/target"
)

// Reduces of few points, such as a pooling window: lanes run along the results,
// and the points are copies of the code. One Zen 5 core, maxima of 2 x 2 in
// 64 x 16 x 28 x 28: 70 us against 1,840 one result after the other.
const (
	windowPoints  = 32  // of a reduce
	windowCopies  = 64  // of the points of a nest: 7 x 7 as copies 700 us, 1,300 with a loop
	longestWindow = 256 // of a nest of reduces
	windowStride  = 2   // elements between neighbouring threads' reads, at most
)

// tryWindow takes kernels whose reduces around an element are short. Others,
// which stand in front of a row of elements, do not count.
func tryWindow(a *analysis) proposal {
	p := a.plan()
	axis, lanes := p.resultLanes()
	if axis < 0 {
		return declined("no-lane-axis", "no store range of which neighbours are read near each other")
	}
	window, points, ok := a.reducesAlong(axis)
	if !ok || points > longestWindow || slices.ContainsFunc(window, func(i int) bool { return p.size(i) > windowPoints }) {
		return declined("long-reduce", "%d points", points)
	}
	if len(window) == 0 {
		return declined("rows", "no reduce depends on %s: its points share them", a.axes[axis].Name)
	}
	p.split(plan.VECTOR, axis, lanes)
	p.done[axis] = true
	shared := int64(1)
	if !p.turn(axis, lanes) {
		shared = p.share(p.sharingAxis(axis, window), lanes, window)
	}
	copies := p.windowCopies(window, windowCopies/shared)
	if !p.rollBehindStages() {
		p.rollUnit(axis, lanes)
	}
	p.lightReduces()
	p.fma()
	how := fmt.Sprintf("lanes %d of %s, %d points each unrolled", lanes, a.axes[axis].Name, copies)
	return p.decidedBy(axis, "window", how).of("%d short ranges", len(a.axesOf(plan.ReduceAxis)))
}

// turn takes copies along which results lie side by side, where they do not along their lanes: those of each lane are
// stored together. It reports whether it did.
func (p *planner) turn(axis int, lanes int64) bool {
	if p.desc.Kind == target.GPU || p.storesAlong(axis) {
		return false
	}
	for _, i := range p.axesOf(plan.StoreAxis) {
		if i != axis && p.constant(i) && p.everyStore(i) && p.turnsAlong(i) {
			p.split(plan.UPCAST, i, powerOfTwoDivisor(p.size(i), plan.MaxLanes/lanes))
			p.done[i] = true
			return true
		}
	}
	return false
}

// sharingAxis is a store axis whose points fold the same lanes, each by factors of its own: a short product. -1: there
// is none.
func (p *planner) sharingAxis(lanes int, window []int) int {
	return lists.Last(p.axesOf(plan.StoreAxis), func(j int) bool {
		if j == lanes || p.size(j) <= 1 || !p.constant(j) || !p.everyStore(j) {
			return false
		}
		shared := func(u *ir.UOp) bool {
			free := p.free.Of(u)
			return u.Op == ir.OpLoad && free.Has(lanes) && !free.Has(j) && !free.Meet(setOf(window)).Empty()
		}
		return slices.ContainsFunc(window, func(i int) bool { return p.around(i).Has(j) }) && slices.ContainsFunc(p.order, shared)
	}, -1)
}

// share takes points of an axis that read the same lanes together, as many as registers have sums for: 1 without an axis.
// One Zen 4 core, 32 x 1024 sums of 32 products with two arrays, us: one by one 247, 507 where lanes lie two apart, 2 at a
// time 172 and 306, 8 at a time, with 8 points unrolled, 51 and 60 (4, with 16 points, 43 and 162).
func (p *planner) share(axis int, lanes int64, window []int) int64 {
	if axis < 0 {
		return 1
	}
	sums := int64(0)
	for _, i := range window {
		sums = max(sums, int64(len(p.reduces[i])))
	}
	points := p.copiesOf(axis, int64(p.desc.VectorRegs)/(ceil(lanes, lanesOf(p.desc))*max(sums, 1)))
	p.split(plan.UPCAST, axis, points)
	return points
}

// windowCopies makes copies of the points of a window, of inner ranges first and whole: an
// outer one may remain a loop, as may a part of the innermost one.
func (p *planner) windowCopies(window []int, most int64) int64 {
	first, copies := len(window), int64(1)
	for first > 0 && copies*p.size(window[first-1]) <= most {
		first--
		copies *= p.size(window[first])
	}
	if first == len(window) && most < windowCopies { // results share what a point reads
		copies = divisor(p.size(window[first-1]), most)
		p.split(plan.UNROLL, window[first-1], copies)
	}
	for k, i := range window {
		if k >= first {
			p.split(plan.UNROLL, i, p.left(i))
		}
		p.done[i] = true
	}
	return copies
}

// windowed reports sums too short for lanes, and the axis of results whose neighbours
// read near each other: a window that moves over a plane.
func (a *analysis) windowed(w *operand) (axis int, ok bool) {
	p := a.plan()
	if p.lanesAlongRows(w) || p.chainLanes(w.chain)*2 > lanesOf(p.desc) || p.points(w.chain) > longestWindow {
		return -1, false
	}
	axis, _ = p.resultLanes()
	return axis, axis >= 0
}

// reducesAlong are the axes of the reduces whose results depend on an axis, and
// the most points of any nest of them; ok is false if one is a tuple or has no
// constant extent.
func (a *analysis) reducesAlong(axis int) (axes []int, points int64, ok bool) {
	var set analyse.RangeSet
	points = 1
	nest := make(map[*ir.UOp]int64) // points of the largest nest at or below a node
	for _, u := range a.order {
		n := int64(1)
		for _, x := range u.Src {
			n = max(n, nest[x])
		}
		if u.Op == ir.OpReduce && a.free.Of(u).Has(axis) {
			i := a.axisOf(u.ReduceRange())
			if analyse.IsTuple(u) || !a.constant(i) {
				return nil, 0, false
			}
			set = set.With(i)
			n = satMul(n, a.size(i))
		}
		nest[u] = n
		points = max(points, n)
	}
	return set.List(), points, true
}

// resultLanes is the innermost store axis that can be lanes of a short reduce,
// whole if it fits two registers. Of longer rows registers are full: 28 lanes are three
// loads. One Zen 5 core, 7 x 7 over 96 planes of 56 x 56: 32 lanes 395 us, 28 720.
func (p *planner) resultLanes() (axis int, lanes int64) {
	for _, i := range slices.Backward(p.axesOf(plan.StoreAxis)) {
		if p.size(i) < 4 || !p.constant(i) || !p.laneSafe(i) || !p.everyStore(i) || !p.nearReads(i) {
			continue
		}
		if most := 2 * lanesOf(p.desc); p.size(i) <= most {
			lanes = p.anyLanes(p.size(i), most)
		} else {
			lanes = p.lanes(p.size(i), most)
		}
		if lanes >= 4 {
			return i, lanes
		}
	}
	return -1, 0
}

// nearReads reports that every access moves by little along an axis, or not.
func (a *analysis) nearReads(axis int) bool {
	most := int64(plan.LanesApart)
	if a.desc.Kind == target.GPU {
		most = windowStride
	}
	for _, u := range a.order {
		if isAccess(u) && a.free.Of(u).Has(axis) {
			if n := a.stride(u, axis); n < -most || n > most || !a.dependsByIndex(u, axis) {
				return false
			}
		}
	}
	return true
}

// rollBehindStages keeps the rests of store axes that no STAGE depends on inside
// the work unit, so that what stands in front of a row is computed once for it.
// Enough units must remain.
func (p *planner) rollBehindStages() bool {
	if len(p.stages) == 0 {
		return false
	}
	var units, rest []int
	for _, i := range p.axesOf(plan.StoreAxis) {
		if p.laneSafe(i) && p.constant(i) && p.everyStore(i) {
			rest = append(rest, i)
		} else {
			units = append(units, i)
		}
	}
	if len(rest) == 0 || p.leftAlong(units) < panelUnits {
		return false
	}
	for _, i := range rest {
		p.done[i] = true
		p.roll(i)
	}
	return true
}

// rollUnit keeps inner rests of store axes in a work unit of about the size of
// an elementwise one.
func (p *planner) rollUnit(axis int, lanes int64) {
	stores := p.axesOf(plan.StoreAxis)
	unit := unitOf(p.points(stores), lanes)
	for _, i := range slices.Backward(stores) {
		if lanes < unit && (i == axis || !p.done[i] && p.constant(i)) && p.everyStore(i) {
			n := run(p.left(i), max(unit/lanes, 1))
			p.split(plan.ROLL, i, n)
			lanes *= n
		}
	}
}
