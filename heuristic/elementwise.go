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

// elementwiseRegisters of lanes are an elementwise plan of a CPU.
const elementwiseRegisters = 2

// tryElementwise takes kernels without reduces: residuals, activations, decoded
// rows of an embedding.
func tryElementwise(a *analysis) proposal {
	if n := len(a.axesOf(plan.ReduceAxis)); n > 0 {
		return declined("has-reduce", "%d reduce ranges", n)
	}
	if c := gpuRowStages(a); c.record.Applied {
		return c
	}
	p := a.plan()
	if how, ok := p.joinedResults(); ok {
		p.fma()
		p.streamStores()
		return p.decidedBy(p.axesOf(plan.StoreAxis)[0], "short-rows", how).of("%d points", p.points(p.axesOf(plan.StoreAxis)))
	}
	i := a.laneAxis()
	if i < 0 {
		if c := gpuLate(a); c.record.Applied {
			return c
		}
		return declined("no-lane-axis", "no store range of constant extent is contiguous")
	}
	if a.desc.Kind == target.GPU {
		return gpuElementwise(a, i)
	}
	var how string
	var total int64
	if j := a.transposedAxis(i); j >= 0 {
		how, total = p.transposedTile(i, j), p.points(p.axesOf(plan.StoreAxis))
	} else {
		var lanes int64
		rows := p.sameIndices(i)
		lanes, total = p.elementLanes(i)
		how = fmt.Sprintf("lanes %d of %s", lanes, a.axes[i].Name)
		if rows > 1 {
			how += fmt.Sprintf(", %d rows with the same indices", rows)
		}
	}
	p.lightReduces()
	p.fma()
	p.streamStores()
	return p.decidedBy(i, "contiguous", how).of("%d points", total)
}

// gpuNetwork plans the network of a sort of which sums of a few points are a part: offsets of a few chunks.
func gpuNetwork(a *analysis) proposal {
	long := func(i int) bool { return !a.constant(i) || a.size(i) > gpuLoads }
	isStage := func(u *ir.UOp) bool { return u.Op == ir.OpStage }
	chained := slices.ContainsFunc(a.stages, func(stage *ir.UOp) bool { return analyse.Any(stage.Src[0], isStage) })
	if !chained || slices.ContainsFunc(a.axesOf(plan.ReduceAxis), long) {
		return proposal{}
	}
	return gpuRowStages(a)
}

// joinedResults takes lanes of the two innermost store axes of an elementwise kernel, if the inner one is short.
func (p *planner) joinedResults() (how string, ok bool) {
	stores := p.longerStores()
	if p.desc.Kind == target.GPU || len(stores) < 2 {
		return "", false
	}
	outer, inner := stores[len(stores)-2], stores[len(stores)-1]
	if !p.everyStore(outer) || !p.everyStore(inner) {
		return "", false
	}
	rows := p.takeJoined(outer, inner)
	if rows == 0 {
		return "", false
	}
	lanes := rows * p.size(inner)
	p.split(plan.ROLL, outer, run(p.left(outer), max(unitOf(p.points(stores), lanes)/lanes, 1)))
	return fmt.Sprintf("lanes %d of %s, in each %d of %s", rows, p.axes[outer].Name, p.size(inner), p.axes[inner].Name), true
}

// sameIndices takes points of an axis that are read at the same places, which are read or computed for the lanes: each place is found once.
// It says how many. One Zen 4 core, 16 planes sampled at 112 x 112 points with four neighbours each: 530 us, 330 four planes at a time.
func (p *planner) sameIndices(lanes int) int64 {
	j := lists.Last(p.axesOf(plan.StoreAxis), func(j int) bool {
		return j != lanes && p.size(j) > 1 && p.constant(j) && p.laneSafe(j) && p.everyStore(j) &&
			slices.ContainsFunc(p.order, func(u *ir.UOp) bool { return u.Op == ir.OpLoad && p.dependsByIndex(u, j) && p.foundAlong(u, lanes, j) })
	}, -1)
	if j < 0 {
		return 1
	}
	n := p.copiesOf(j, samePlaces)
	p.split(plan.UPCAST, j, n)
	return n
}

// samePlaces is how many points share the places that they are read at.
const samePlaces = 4

// foundAlong reports a load at places that are read from buffers themselves, others for each lane, the same for all points of another axis.
func (a *analysis) foundAlong(u *ir.UOp, lanes, rows int) bool {
	return slices.ContainsFunc(u.Indices(), func(x *ir.UOp) bool {
		read := func(u *ir.UOp) bool { return u.Op == ir.OpLoad && u.Src[0].Op != ir.OpTable }
		return a.free.Of(x).Has(lanes) && !a.free.Of(x).Has(rows) && analyse.Any(x, read)
	})
}

// elementLanes takes lanes of an axis, and work units of as many points as an elementwise
// kernel has.
func (p *planner) elementLanes(i int) (lanes, total int64) {
	lanes = p.lanesBetweenCuts(i, p.lanes(p.size(i), p.lanesHeld()))
	p.split(plan.VECTOR, i, lanes)
	total = p.points(p.axesOf(plan.StoreAxis))
	unit := unitOf(total, lanes)
	if p.refills(i) {
		unit = p.left(i) * lanes
	}
	if p.everyStore(i) {
		p.split(plan.ROLL, i, run(p.left(i), max(unit/lanes, 1)))
	}
	p.done[i] = true
	return lanes, total
}

// lanesBetweenCuts are as many of some lanes as have two quotients of a position at most, and two loads with a choice
// where more would be gathered: the last take of an axis that they do not divide begins anywhere. Where a position has a
// lower digit of a few, lanes are a multiple of them, so that each take has the same digits: its loads are shuffled. One
// Zen 4 core, each column of 1021 x 1023 three times: 4,615 us, 232; products across of 100,000 x 3: 1,091, 37.
func (p *planner) lanesBetweenCuts(i int, lanes int64) int64 {
	register := lanesOf(p.desc)
	for _, n := range p.cuts[p.axes[i].Range] {
		switch {
		case p.size(i)%lanes != 0 && n < lanes && n >= register:
			lanes = n
		case n > 1 && n <= register/2 && lanes%n != 0 && p.size(i) >= n*register:
			lanes = n * register
		}
	}
	return lanes
}

// lanesHeld is the most lanes of an elementwise kernel: half of the registers hold a tile.
func (a *analysis) lanesHeld() int64 {
	most := elementwiseRegisters * lanesOf(a.desc)
	if points, size := a.storedTogether(); points > 1 {
		held := int64(a.desc.VectorRegs*a.desc.VectorBytes/2) / (points * size)
		most = min(most, max(held, int64(a.desc.VectorBytes)/size))
	}
	return most
}

// refills reports stages that every unit along an axis would fill for itself, where other axes have
// units for all workers: a running sum less itself some points before.
func (p *planner) refills(i int) bool {
	return slices.ContainsFunc(p.stages, func(s *ir.UOp) bool { return !p.free.Of(s).Has(i) }) &&
		p.points(p.axesOf(plan.StoreAxis)) >= p.size(i)*int64(p.desc.Cost.Workers)
}

// streamBytes is the size from which a result is stored past the caches: larger
// than any last-level cache share measured on, so that little of it would be found
// there. 64 MB, one Zen 5 core: 52 to 62 GB/s read and written, where a copy does
// 64; 38 to 44 through the caches.
const streamBytes = 48 << 20

// streamStores stores large results past the caches.
func (p *planner) streamStores() {
	seen := make(map[*ir.UOp]bool)
	for _, store := range p.sink.Src {
		param := store.Src[0]
		n := p.points(p.free.Of(store).List())
		if !seen[param] && bytesOf(param, n) >= streamBytes {
			p.add(plan.STREAM, fmt.Sprintf("p%d", param.Arg.(ir.ParamArg).Slot), 0)
		}
		seen[param] = true
	}
}

// laneAxis is the innermost store axis of constant extent along which most
// stores and loads are contiguous, -1 if lanes would help nothing.
func (a *analysis) laneAxis() int {
	best, bestScore := -1, 0
	for _, i := range a.axesOf(plan.StoreAxis) {
		if !a.constant(i) || !a.laneSafe(i) || a.size(i) < 4 && !(a.desc.Kind != target.GPU && a.tileable(i) && a.transposedAxis(i) >= 0) {
			continue
		}
		if score := a.laneScore(i); score >= bestScore && score > 0 {
			best, bestScore = i, score
		}
	}
	return best
}

// laneScore counts accesses that are contiguous along an axis, less those that
// would be gathered; stores count twice. One that does not move at the first
// step (an index divided by a constant) is a short run and counts nothing.
func (a *analysis) laneScore(axis int) int {
	score := 0
	count := func(u *ir.UOp, weight int) {
		if !a.dependsByIndex(u, axis) {
			return
		}
		switch n := a.stride(u, axis); {
		case n == 0:
		case n == 1, n == -1 && u.Op == ir.OpLoad && a.desc.Kind != target.GPU:
			score += weight
		case a.turned(u, axis) >= 0:
		default:
			score -= weight
		}
	}
	for _, u := range a.order {
		switch {
		case u.Op == ir.OpStore:
			count(u, 2)
		case u.Op == ir.OpLoad && u.Src[0].Op != ir.OpTable:
			count(u, 1)
		case u.Op == ir.OpField && a.contiguous(u).Has(axis):
			score++
		}
	}
	return score
}

// lateThreads are those along an axis that is as long as a variable says.
const lateThreads = 128

// gpuLate plans an elementwise kernel whose neighbours lie along an axis of a late extent: threads side by side.
func gpuLate(a *analysis) proposal {
	i := lists.Last(a.axesOf(plan.StoreAxis), func(i int) bool { return !a.constant(i) && a.everyStore(i) && a.laneScore(i) > 0 }, -1)
	if i < 0 || a.desc.Kind != target.GPU {
		return proposal{}
	}
	p := a.plan()
	n := powerOfTwo(a.size(i), 1, lateThreads)
	p.split(plan.LOCAL, i, n)
	return p.decidedBy(i, "late", fmt.Sprintf("%d threads along an extent that is known late", n))
}
