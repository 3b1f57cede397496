package heuristic

import (
	"fmt"
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/kernel/plan"
	"tgc/packed"
)

// Matvec plans of weights whose rows are interleaved (packed.Records): lanes are rows, so that
// scales are vectors and no sum is folded over lanes.

// Sums that a loop around copies keeps at most, and how many of them for each register are too many to keep anyway: see withoutCarried.
const (
	carriedSums = 24
	carriedMost = 4
)

// recordRow is the axis of rows of weights that are all interleaved, -1 where there is none.
func (a *analysis) recordRow(weights []*operand) int {
	if packed.RecordRows%lanesOf(a.desc) != 0 {
		return -1
	}
	return lists.Last(weights[0].rows, func(row int) bool {
		return a.constant(row) && a.size(row)%packed.RecordRows == 0 && a.laneSafe(row) &&
			!slices.ContainsFunc(weights, func(w *operand) bool {
				return !a.inRecords(w) || !slices.Contains(w.rows, row) || !a.allConstant(w.chain) || a.rowStride(w, row) != 1
			})
	}, -1)
}

// inRecords reports a weight whose rows are interleaved.
func (a *analysis) inRecords(w *operand) bool {
	bits := a.desc.Records
	return bits > 0 && w.rank() == packedRank && w.accesses[0].Op == ir.OpField && packed.InRecords(w.accesses[0], bits)
}

// rowStride is how many rows of a weight one step along an axis moves; 0 where it is unknown.
func (a *analysis) rowStride(w *operand, axis int) int64 {
	for _, u := range w.accesses {
		if u.Op != ir.OpField {
			return 0
		}
		if step, ok := a.step(u.Src[1], axis); !ok || step != 1 {
			return step
		}
	}
	return 1
}

// matvecRecords runs lanes along the rows of records. Floats are words of packed bytes, or where their activations have no room for
// that, those of tiles of tokens that a mixture has sent to its experts for example, point by point.
func (p *planner) matvecRecords(weights []*operand, row int) (how string) {
	lanes := p.recordLanes(weights)
	p.split(plan.VECTOR, row, lanes)
	p.done[row] = true
	for _, w := range weights {
		last := w.chain[len(w.chain)-1]
		switch {
		case p.done[last]:
			p.stageInvariant(w)
		case p.dotAxis(last):
			p.stageInvariant(w)
			p.unrollRecord(w, lanes, packedSteps/int64(len(p.matricesOf(weights))))
		case p.packable(w, plan.WordElements):
			p.add(plan.PACK, p.axes[last].Name, 1)
			p.done[last] = true
		default:
			p.stageInvariant(w)
			p.unrollRecord(w, lanes, packedSteps)
		}
	}
	p.besideSums(weights)
	p.finish(weights)
	return fmt.Sprintf("lanes %d interleaved rows", lanes)
}

// recordLanes are the rows of a record that are lanes: all of them, or those of one register where several uses of them would
// have half of all registers for their sums.
func (p *planner) recordLanes(weights []*operand) int64 {
	uses := int64(1)
	for _, w := range weights {
		uses = max(uses, p.points(w.reuse))
	}
	registers := packed.RecordRows / lanesOf(p.desc)
	if uses > 1 && uses*registers*int64(len(p.matricesOf(weights))) >= int64(p.desc.VectorRegs/2) {
		return lanesOf(p.desc)
	}
	return packed.RecordRows
}

// unrollRecord takes so many points of a record as one iteration: first those that share bytes, which are
// then loaded once and shifted by constants. Matrices that share activations share the iteration: 64 points of
// each of two spilled (instructions of 1,024 weights of gate and up, 64 and 32 points: Q4_K 122 and 71, Q6_K 166
// and 106, of which 29 and none were spills). Where rows take several registers, points that share nothing
// are as many fewer. Zen 4 with AVX2, us of 8192 x 2048, 64 points and 32: Q4_K 1,157 and 915, Q8_0 2,650 and
// 2,030; Q5_K, whose eight bits share a byte, two matrices of 32 and 16 3,780 and 6,390.
func (p *planner) unrollRecord(w *operand, lanes, steps int64) {
	chain := p.sumAxes(w)
	steps /= p.dot(chain[len(chain)-1])
	apart := steps * lanesOf(p.desc) / lanes
	for _, i := range chain {
		if p.sharesBytes(w, i) {
			n := powerOfTwoDivisor(p.left(i), max(steps, 1))
			p.split(plan.UNROLL, i, n)
			steps, apart = steps/n, apart/n
		}
	}
	for _, i := range slices.Backward(chain) {
		if !p.sharesBytes(w, i) {
			n := powerOfTwoDivisor(p.left(i), max(apart, 1))
			p.split(plan.UNROLL, i, n)
			apart /= n
		}
	}
	p.withoutCarried(w, chain, lanes)
	p.leave(chain)
}

// withoutCarried takes all points of a loop whose body is copies where their sums, kept from one iteration to the next, fill the
// registers. us of 1280 x 3584 for eight and four tokens on a Xeon, loops and copies: Q6_K 527 and 315, 284 and 185, with AVX2 1,330 and
// 1,180, 874 and 434; gate and up of Q4_K with 16 sums of AVX2 702 and 1,120, of Q3_K with 128 2,283 and 3,630 (docs/bench/cpu-batches.txt).
func (p *planner) withoutCarried(w *operand, chain []int, lanes int64) {
	copies := p.points(w.reuse) * max(lanes/lanesOf(p.desc), 1)
	outer := copies
	for _, i := range chain {
		ofLoop := func(u *ir.UOp) bool { return analyse.IsSum(u) && p.axisOf(u.ReduceRange()) == i }
		carried := copies * int64(len(lists.Filter(p.order, ofLoop)))
		if copies > outer && carried > carriedSums && carried <= carriedMost*int64(p.desc.VectorRegs) {
			p.split(plan.UNROLL, i, p.left(i))
		}
		copies *= p.size(i) / p.left(i)
	}
}
