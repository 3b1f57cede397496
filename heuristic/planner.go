package heuristic

import (
	"fmt"
	"maps"
	"slices"

	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/kernel/plan"
	"tgc/target"
)

// planner collects Opts and remembers how much of each axis is taken.
type planner struct {
	*analysis
	opts  []plan.Opt
	taken map[int]int64 // points of an axis that Opts have split off
	done  map[int]bool  // axes that no later step may touch

	heldAxes analyse.RangeSet // of stores: those whose points are all copies of a thread, such as the tokens of a batch, or of which a block has one

	inBlock threadSplits // what a block's threads share of each axis
}

func (a *analysis) plan() *planner {
	return &planner{analysis: a, taken: make(map[int]int64), done: make(map[int]bool), inBlock: threadSplits{threads: make(map[int]int64), lanes: make(map[int]int64)}}
}

// clone is a planner that goes on by itself.
func (p *planner) clone() *planner {
	return &planner{p.analysis, slices.Clone(p.opts), maps.Clone(p.taken), maps.Clone(p.done), p.heldAxes, threadSplits{maps.Clone(p.inBlock.threads), maps.Clone(p.inBlock.lanes), p.inBlock.counted}}
}

func (p *planner) add(kind plan.OptKind, axis string, amount int64) {
	p.opts = append(p.opts, plan.Opt{Kind: kind, Axis: axis, Amount: amount})
}

// decidedBy is the plan of a kernel that an axis decided, with how it takes it.
func (p *planner) decidedBy(axis int, reason, how string) proposal {
	return proposal{opts: p.opts, why: how, record: Record{Axis: p.axes[axis].Name, Value: p.size(axis), Applied: true, Reason: reason, Detail: how}}
}

// split takes the low n points of what is left of an axis; threads, as many as a block has
// room for.
func (p *planner) split(kind plan.OptKind, axis int, n int64) {
	if n = p.fitting(kind, axis, n); n > 1 {
		p.add(kind, p.axes[axis].Name, n)
		p.taken[axis] = n * max(p.taken[axis], 1)
	}
}

// leaveSums lets no later step touch the sums of weights.
func (p *planner) leaveSums(weights []*operand) {
	for _, w := range weights {
		p.leave(w.chain)
	}
}

// leave lets no later step touch some axes.
func (p *planner) leave(axes []int) {
	for _, i := range axes {
		p.done[i] = true
	}
}

// leftAlong is the number of points over some axes that no Opt has taken.
func (p *planner) leftAlong(axes []int) int64 {
	n := int64(1)
	for _, i := range axes {
		n = satMul(n, p.left(i))
	}
	return n
}

// left is the number of points of an axis that no Opt has taken, rounded up.
func (p *planner) left(axis int) int64 {
	return ceil(p.size(axis), max(p.taken[axis], 1))
}

// copiesOf is how many copies of what Opts have taken of an axis fit into it.
func (p *planner) copiesOf(axis int, limit int64) int64 {
	return copies(p.left(axis), min(limit, max(p.size(axis)/max(p.taken[axis], 1), 1)))
}

// roll keeps the rest of a store axis inside the work unit.
func (p *planner) roll(axis int) {
	if p.left(axis) > 1 {
		p.add(plan.ROLL, p.axes[axis].Name, 0)
	}
}

// chain vectorises and unrolls the innermost points of a nest of reduces (outer
// before inner): up to so many lanes, then so many copies. In a nest both stop where
// an axis does not divide. It reports what it took.
func (p *planner) chain(axes []int, lanes, copies int64) (gotLanes, gotCopies int64) {
	gotLanes, gotCopies = 1, 1
	if n := p.dot(axes[len(axes)-1]); n > 1 {
		gotLanes, lanes = n, int64(max(p.desc.VectorBytes, dotLanes))
	}
	for k := len(axes) - 1; k >= 0 && gotLanes < lanes; k-- {
		i := axes[k]
		if !p.constant(i) || !p.laneSafe(i) {
			break
		}
		v := powerOfTwoDivisor(p.left(i), lanes/gotLanes)
		if len(axes) == 1 && p.taken[i] <= 1 {
			v = p.lanes(p.size(i), lanes)
		}
		p.split(plan.VECTOR, i, v)
		gotLanes *= v
		if p.left(i) > 1 {
			break
		}
	}
	for k := len(axes) - 1; k >= 0 && gotCopies < copies; k-- {
		i := axes[k]
		if !p.constant(i) {
			break
		}
		v := powerOfTwoDivisor(p.left(i), copies/gotCopies)
		if len(axes) == 1 {
			v = p.copiesOf(i, copies)
		}
		p.split(plan.UNROLL, i, v)
		gotCopies *= v
		if p.left(i) > 1 {
			break
		}
	}
	p.leave(axes)
	return gotLanes, gotCopies
}

// streamSums splits the sums of weights: words, if they may be lanes, else as many lanes and
// copies of k as each has. It says what it did.
func (p *planner) streamSums(weights []*operand, words bool, each func(w *operand) (lanes, copies int64)) (how string) {
	for _, w := range weights {
		if p.done[w.chain[len(w.chain)-1]] {
			p.stageInvariant(w) // a weight's offsets and minima stand in sums of their own
			continue
		}
		if words && p.packs(w) {
			how = "lanes are words of packed bytes"
			continue
		}
		p.stageInvariant(w)
		lanes, copies := each(w)
		lanes, copies = p.chain(w.chain, lanes, copies)
		if how == "" {
			how = fmt.Sprintf("lanes %d of k, %d groups unrolled", lanes, copies)
		}
	}
	return how
}

// besideSums plans what a kernel has besides the sums of weights.
func (p *planner) besideSums(weights []*operand) {
	rows, together := p.rowsOf(weights), int64(maxStageCopies)
	if p.oneStream(weights) {
		together = 1
	}
	p.stageCopies(rows, together)
	p.tileAxes(rows)
	p.lightReduces()
}

// lightReduces vectorises what other reduces a kernel has beside its main one:
// the sum of a norm, the ranks of a top-k. Only along ranges over which all
// reads are contiguous or constant.
func (p *planner) lightReduces() {
	for _, i := range p.axesOf(plan.ReduceAxis) {
		if p.done[i] || !p.constant(i) || !p.laneSafe(i) || p.size(i) < 2*lanesOf(p.desc) || !p.plainReduce(i) || !p.unitStride(i) {
			continue
		}
		p.chain([]int{i}, lanesOf(p.desc), 2)
	}
	for _, stage := range p.stages {
		z := stage.Src[1:]
		if len(z) == 0 {
			continue
		}
		i := p.axisOf(z[len(z)-1])
		if p.done[i] || !p.constant(i) || !p.laneSafe(i) || p.size(i) < lanesOf(p.desc) || !p.unitStride(i) || p.underTuple(stage.Src[0], i) {
			continue
		}
		p.split(plan.VECTOR, i, powerOfTwoDivisor(p.size(i), lanesOf(p.desc)))
		p.done[i] = true
	}
}

// plainReduce reports that only reduces of one component run over an axis.
func (a *analysis) plainReduce(axis int) bool {
	return !slices.ContainsFunc(a.reduces[axis], analyse.IsTuple)
}

// underTuple reports a tuple below root that depends on an axis: its combine
// step would run once per lane anyway.
func (a *analysis) underTuple(root *ir.UOp, axis int) bool {
	return analyse.Any(root, func(u *ir.UOp) bool { return analyse.IsTuple(u) && a.free.Of(u).Has(axis) })
}

// runOf is how many of a thread's points along an axis are one load, of 16 bytes at most, where
// some lie side by side: of a sum, or of results. Word by word each is a line of memory for every
// lane beside it. What is loaded once, not for each term of a sum, is no reason.
func (a *analysis) runOf(axis int, points int64) int64 {
	run, reduces := int64(1), setOf(a.axesOf(plan.ReduceAxis))
	if !a.laneSafe(axis) {
		return run
	}
	for _, u := range a.order {
		if !a.free.Of(u).Meet(reduces).Empty() && a.runsAlong(u, axis) {
			run = max(run, powerOfTwoDivisor(points, int64(a.desc.VectorBytes/max(u.DType.Size(), 4))))
		}
	}
	return run
}

// runsAlong reports a load whose neighbours along an axis lie side by side, all of them.
func (a *analysis) runsAlong(u *ir.UOp, axis int) bool {
	if u.Op != ir.OpLoad || !a.dependsByIndex(u, axis) || a.stride(u, axis) != 1 {
		return false
	}
	index, linear, r := u.Indices(), ir.NewLinearizer(a.arena), a.axes[axis].Range
	return !slices.ContainsFunc(index, func(x *ir.UOp) bool {
		return slices.ContainsFunc(linear.Of(x).Terms, func(t ir.Term) bool { return t.Atom != r && a.free.Of(t.Atom).Has(axis) })
	})
}

// unitStride reports that every load that depends on an axis moves by one
// element along it; on a CPU backwards too, where a shuffle turns what is loaded.
func (a *analysis) unitStride(axis int) bool { return a.readsBeside(axis, a.desc.Kind == target.CPU) }

// readsBeside is unitStride, or also where a load stays at an element for a while.
func (a *analysis) readsBeside(axis int, stays bool) bool {
	return !slices.ContainsFunc(a.order, func(u *ir.UOp) bool { return !a.readBeside(u, axis, stays) })
}

// readBeside is readsBeside of a node; true of one that reads nothing.
func (a *analysis) readBeside(u *ir.UOp, axis int, stays bool) bool {
	switch u.Op {
	case ir.OpLoad:
		if u.Src[0].Op == ir.OpTable || !a.dependsByIndex(u, axis) {
			return true
		}
		n := a.stride(u, axis)
		return n == 1 || n == -1 && a.desc.Kind != target.GPU || stays && a.stays(u, axis)
	case ir.OpField:
		return !a.free.Of(u.Src[1]).Has(axis)
	}
	return true
}

// stays reports a load whose address moves along an axis only where a quotient does, by at
// least two registers of lanes: a lane reads what its neighbour does, or one element further.
func (a *analysis) stays(u *ir.UOp, axis int) bool {
	for _, x := range u.Indices() {
		if !a.free.Of(x).Has(axis) {
			continue
		}
		if x.Op != ir.OpFloorDiv {
			return false
		}
		if n, constant := x.Src[1].Int(); !constant || n < 2*lanesOf(a.desc) {
			return false
		}
	}
	return a.stride(u, axis) == 0
}

// dependsByIndex reports that the address of a load moves along an axis.
func (a *analysis) dependsByIndex(u *ir.UOp, axis int) bool {
	return slices.ContainsFunc(u.Indices(), func(x *ir.UOp) bool { return a.free.Of(x).Has(axis) })
}

// tileAxes puts store axes that the main sums do not depend on inside the work
// unit: the points of a tile (RoPE pairs, a head) share what was summed.
func (p *planner) tileAxes(rows analyse.RangeSet) {
	for _, i := range p.axesOf(plan.StoreAxis) {
		if rows.Has(i) || !p.constant(i) || p.done[i] {
			continue
		}
		p.done[i] = true
		if p.size(i) <= maxTileCopies {
			p.split(plan.UPCAST, i, p.size(i))
			continue
		}
		if p.laneSafe(i) && (p.unitStride(i) || p.laneScore(i) > 0) {
			p.split(plan.VECTOR, i, p.lanes(p.size(i), lanesOf(p.desc)))
		}
		p.roll(i)
	}
}

// maxTileCopies bounds the points of a tile that become copies of the code.
const maxTileCopies = 8

// stageCopies unrolls the ranges of small STAGEs around sums, so that the rows
// of a tile are summed together and stay in registers.
func (p *planner) stageCopies(rows analyse.RangeSet, limit int64) {
	for _, i := range p.axesOf(plan.StageAxis) {
		if rows.Has(i) && p.constant(i) && p.size(i) <= limit && !p.done[i] {
			p.split(plan.UNROLL, i, p.size(i))
		}
		if rows.Has(i) {
			p.done[i] = true
		}
	}
}
