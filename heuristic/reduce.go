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

// reduceCopies is how many vectors of one reduce are in flight: an addition
// takes four cycles and two start in each, but loads bound these loops.
const reduceCopies = 4

// tryReduce takes what is left with a reduce: norms, softmax rows, sums of
// columns, the largest logit.
func tryReduce(a *analysis) proposal {
	if len(a.axesOf(plan.ReduceAxis)) == 0 {
		return declined("no-reduce", "no REDUCE")
	}
	if a.desc.Kind == target.GPU {
		return a.first(gpuPrefix, gpuWindow, gpuGroups, gpuShortRows, gpuNetwork, gpuReduce)
	}
	return a.first(tryPrefix, tryPooled, tryWindow, planReduce)
}

// planReduce runs lanes along columns, or the reduce itself.
func planReduce(a *analysis) proposal {
	p, axes := a.plan(), a.axesOf(plan.ReduceAxis)
	var how, reason string
	if i := p.columnAxis(axes); i >= 0 {
		lanes, copies := p.columns(i, axes)
		how = fmt.Sprintf("lanes %d of %s, along which reads are contiguous, %d copies", lanes, a.axes[i].Name, copies)
		reason = "columns"
	} else if text, ok := p.joinedColumns(axes); ok {
		how, reason = text, "short-rows"
	} else {
		var lanes, copies int64 = 1, 1
		for _, nest := range p.nests(axes) {
			most, tiled := int64(reduceCopies), !p.plainReduce(nest[0])
			if tiled {
				most = int64(p.desc.VectorRegs) / 2
			}
			l, c := p.chain(nest, lanesOf(p.desc), most)
			if tiled && l > 1 {
				p.add(plan.TILE, p.axes[nest[0]].Name, 0)
			}
			if l*c > lanes*copies {
				lanes, copies = l, c
			}
		}
		if i := axes[len(axes)-1]; lanes == 1 && p.shortLanes(i) {
			lanes = p.size(i)
			p.split(plan.VECTOR, i, lanes)
			p.done[i] = true
		}
		how, reason = fmt.Sprintf("lanes %d of the reduce, %d copies", lanes, copies), "rows"
		if n := p.shortRows(axes, lanes, copies); n > 1 {
			how = fmt.Sprintf("lanes %d of the reduce, %d copies of %d rows at once", lanes, copies, n)
		}
		if i := p.resultAxis(); lanes == 1 && i >= 0 {
			lanes = p.lanes(p.size(i), 2*lanesOf(p.desc))
			p.split(plan.VECTOR, i, lanes)
			p.done[i] = true
			how, reason = fmt.Sprintf("lanes %d of %s, which read apart", lanes, a.axes[i].Name), "results"
		}
		if lanes == 1 {
			reason = "serial"
		}
	}
	p.aroundSums()
	p.tileAxes(p.reduceResults())
	p.lightReduces()
	p.fma()
	largest := a.longest(axes)
	return p.decidedBy(largest, reason, how).of("%d ranges of up to %d points", len(axes), a.size(largest))
}

// joinedColumns takes lanes of a long sum and of all of its results that lie side by side, if they are few.
func (p *planner) joinedColumns(axes []int) (how string, ok bool) {
	stores := p.longerStores()
	if len(stores) == 0 || len(axes) != 1 || !p.plainReduce(axes[0]) {
		return "", false
	}
	outer, inner := axes[0], stores[len(stores)-1]
	reads := func(u *ir.UOp) bool {
		return u.Op == ir.OpLoad && p.dependsByIndex(u, outer) && p.dependsByIndex(u, inner)
	}
	if !p.everyStore(inner) || !slices.ContainsFunc(p.order, reads) {
		return "", false
	}
	rows := p.takeJoined(outer, inner)
	if rows == 0 {
		return "", false
	}
	registers := ceil(rows*p.size(inner), lanesOf(p.desc))
	copies := p.copiesOf(outer, max(int64(p.desc.VectorRegs)/(2*registers), 1))
	p.split(plan.UNROLL, outer, min(copies, reduceCopies))
	return fmt.Sprintf("lanes %d of the reduce, in each %d of %s", rows, p.size(inner), p.axes[inner].Name), true
}

// shortRows takes several rows at a time where one has too few vectors: what waits for one fold of lanes goes on with
// the next row's. It says how many. One Zen 4 core, 30000 rows of 35, less their largest and exponential: 970 us one by
// one, 923 with the loop over a row unrolled, 559 four at a time.
func (p *planner) shortRows(axes []int, lanes, copies int64) int64 {
	if lanes < lanesOf(p.desc) || p.longStages() || p.size(p.longest(axes)) > mostVectors*lanesOf(p.desc) {
		return 1
	}
	i := lists.Last(p.longerStores(), p.around(axes[0]).Has, -1)
	if i < 0 || !p.constant(i) || !p.everyStore(i) || p.done[i] {
		return 1
	}
	if len(p.stages) > 0 { // each row has its own
		with := append(slices.Clone(p.opts), plan.Opt{Kind: plan.UPCAST, Axis: p.axes[i].Name, Amount: 2})
		if plan.Legality(p.sink, plan.Plan{Opts: with}, p.desc) != nil {
			return 1
		}
	}
	n := p.copiesOf(i, min(reduceCopies*int64(len(axes))/copies, max(p.size(i)/columnUnits, 1)))
	p.split(plan.UPCAST, i, n)
	return n
}

// mostVectors is the longest row beside which others are taken, in registers. The same core, layer norm of 4096 rows of 768: 451
// us, 924 to 1069 two at a time.
const mostVectors = 16

// longStages reports a stage of more than such a row.
func (a *analysis) longStages() bool {
	return slices.ContainsFunc(a.stages, func(stage *ir.UOp) bool {
		return a.points(lists.Map(stage.Src[1:], a.axisOf)) > mostVectors*lanesOf(a.desc)
	})
}

// aroundSums gives the stores of a kernel whose sums depend on none of their axes the
// lanes of an elementwise one.
func (p *planner) aroundSums() {
	if i := p.laneAxis(); p.oneResult() && i >= 0 && !p.done[i] {
		p.elementLanes(i)
	}
}

// columns reads a run of columns of each row: lanes and copies of them, as long as
// columnUnits remain for the workers, and two rows an iteration. 512 x 4096 f32 on
// one Zen 5 core that reads 43 GB/s: 32 lanes 20 GB/s, 4 copies 29, 8 copies and
// two rows 36.
func (p *planner) columns(i int, axes []int) (lanes, copies int64) {
	lanes = p.lanes(p.size(i), 2*lanesOf(p.desc))
	p.split(plan.VECTOR, i, lanes)
	most := min(int64(p.desc.VectorRegs)/4, max(p.left(i)/columnUnits, 1))
	copies = p.copiesOf(i, most)
	p.split(plan.UPCAST, i, copies)
	p.done[i] = true
	if last := axes[len(axes)-1]; copies > 1 && p.constant(last) && p.plainReduce(last) && p.left(last)%columnRows == 0 {
		p.split(plan.UNROLL, last, columnRows)
		p.done[last] = true
	}
	return lanes, copies
}

const (
	columnUnits = 16 // work units that copies of columns must leave
	columnRows  = 2
)

// nests are the vectorisable reduce axes, each a nest of its own; nested sums
// over digits of one range follow each other. Products of bytes are dots even where they are fewer than lanes.
func (p *planner) nests(axes []int) [][]int {
	var out [][]int
	for _, i := range axes {
		if p.constant(i) && p.laneSafe(i) && (p.plainReduce(i) || p.softmax(i)) && (p.size(i) >= lanesOf(p.desc) || p.dotAxis(i)) && p.unitStride(i) {
			out = append(out, []int{i})
		}
	}
	return out
}

// softmax reports an axis over which softmaxes run, and maybe plain reduces: a tile of
// lanes has one maximum, by which the running sums are rescaled.
func (a *analysis) softmax(axis int) bool {
	others := func(u *ir.UOp) bool { return analyse.IsTuple(u) && !a.arena.MonoidOf(u).Rescales }
	return !a.plainReduce(axis) && !slices.ContainsFunc(a.reduces[axis], others)
}

// shortLanes reports an innermost reduce of fewer points than a register or two
// have lanes: all of them are lanes.
func (p *planner) shortLanes(i int) bool {
	n := p.size(i)
	return n >= 4 && n < 2*lanesOf(p.desc) && p.constant(i) && p.laneSafe(i) && p.plainReduce(i) && p.unitStride(i)
}

// columnAxis is a store axis along which the reads of the reduces are
// contiguous while they are strided along the reduce: -1 if there is none.
func (p *planner) columnAxis(axes []int) int {
	for _, r := range axes {
		if (p.size(r) >= lanesOf(p.desc) || p.desc.Kind == target.GPU) && !p.staged(r) && p.unitStride(r) {
			return -1
		}
	}
	return lists.Last(p.axesOf(plan.StoreAxis), func(i int) bool {
		return p.constant(i) && p.laneSafe(i) && p.size(i) >= lanesOf(p.desc) && p.readsBeside(i, true) && p.everyStore(i) && p.summed(i)
	}, -1)
}

// summed reports an axis on which a reduce depends.
func (a *analysis) summed(axis int) bool {
	return slices.ContainsFunc(a.order, func(u *ir.UOp) bool { return u.Op == ir.OpReduce && a.free.Of(u).Has(axis) })
}

// resultAxis is a store axis of whose neighbours each has reduces of its own, and which can
// have lanes though neighbours read apart; -1 if there is none. Elements are gathered then, but
// what is done with them is done for all lanes.
func (p *planner) resultAxis() int {
	for _, i := range slices.Backward(p.axesOf(plan.StoreAxis)) {
		if p.size(i) > 1 && !p.reduced(i) {
			return -1 // its points share the reduces
		}
		if p.constant(i) && p.laneSafe(i) && p.size(i) >= lanesOf(p.desc) && p.everyStore(i) {
			return i
		}
	}
	return -1
}

// reduced reports an axis on which a reduce depends, and no tuple.
func (a *analysis) reduced(axis int) bool {
	tuple := func(u *ir.UOp) bool { return analyse.IsTuple(u) && a.free.Of(u).Has(axis) }
	return a.summed(axis) && !slices.ContainsFunc(a.order, tuple)
}

// staged reports an axis of reduces that are all inside of stages, before the loops of
// the store: they have lanes of their own.
func (a *analysis) staged(axis int) bool {
	inside := make(map[*ir.UOp]bool)
	for _, s := range a.stages {
		for _, u := range ir.Toposort(s) {
			inside[u] = true
		}
	}
	return len(a.stages) > 0 && !slices.ContainsFunc(a.reduces[axis], func(u *ir.UOp) bool { return !inside[u] })
}

// everyStore reports a store axis that all stores have and at whose points each
// writes one element further.
func (a *analysis) everyStore(axis int) bool {
	return !slices.ContainsFunc(a.sink.Src, func(store *ir.UOp) bool { return !slices.Contains(store.Ranges(), a.axes[axis].Range) })
}

// reduceResults are the axes of the results of all outer reduces.
func (a *analysis) reduceResults() analyse.RangeSet {
	var s analyse.RangeSet
	for axis := range a.reduces {
		s = s.Union(a.around(axis))
	}
	if s.Meet(a.storeSet()).Empty() {
		// Nothing that the stores index is summed: their ranges stay the grid.
		return s.Union(a.storeSet())
	}
	return s
}
