package heuristic

import (
	"slices"

	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/kernel/plan"
	"tgc/target"
)

// Rows of a work unit on a CPU.
const (
	// unitOperation is the time of an operation for all rows of a unit in those on a register of weights: it waits for the one before, of
	// which two begin in each cycle.
	unitOperation = 8
	// unitShare bounds the time of all of those: one part in so many of the rows'.
	unitShare = 16
	// leastUnits are left for workers to share: a worker whose core is taken from it leaves its units to the others.
	leastUnits = 256
)

// rollUnits keeps as many rows in a work unit as make what the unit computes for all of them a small part of it: which matrix of a mixture
// is the token's, from the order of all scores. One Xeon, down of 8 of 16 experts in Q6_K, us of two tokens, with one
// row a unit, 16 and 128: 9,371, 2,542, 2,131 (docs/bench/cpu-experts.txt).
func (p *planner) rollUnits(weights []*operand) {
	row := p.lastStore(p.rowsOf(weights).List())
	if p.desc.Kind != target.CPU || row < 0 || !p.everyStore(row) || p.knobs.BlockSize > 0 {
		return
	}
	operations, _, _ := p.operationsOfRow(weights)
	operations *= float64(max(p.taken[row], 1)) / float64(lanesOf(p.desc))
	if operations <= 0 {
		return
	}
	units := p.leftAlong(p.unitAxes().List())
	rows := int64(min(unitShare*unitOperation*p.unitOperations(row)/operations, float64(units/leastUnits)))
	p.split(plan.ROLL, row, run(p.left(row), max(rows, 1)))
}

// unitOperations counts the operations of a work unit that depend on its coordinates, but not on that along its rows.
func (p *planner) unitOperations(row int) (operations float64) {
	stores, others := p.storeSet(), p.unitAxes().Without(row)
	for _, u := range p.order {
		free := p.free.Of(u)
		if u.Op == ir.OpReduce {
			free = free.Union(p.free.Of(u.ReduceValues()[0]))
		} else if !u.Op.IsElementwise() || u.DType == ir.Idx {
			continue
		}
		if !free.Meet(others).Empty() && !free.Has(row) {
			operations += float64(p.points(free.Minus(stores).List()))
		}
	}
	return operations
}

// unitAxes are the store axes along which work units have different points.
func (p *planner) unitAxes() (axes analyse.RangeSet) {
	for _, i := range p.axesOf(plan.StoreAxis) {
		if whole := (plan.Opt{Kind: plan.ROLL, Axis: p.axes[i].Name}); p.left(i) > 1 && !slices.Contains(p.opts, whole) {
			axes = axes.With(i)
		}
	}
	return axes
}
