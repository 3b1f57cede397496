package kernel

import (
	"fmt"

	"tgc/ir"
	"tgc/kernel/plan"
	"tgc/kernel/shape"
	"tgc/target"
)

// Feasible checks a plan as Legality does, and then the limits that depend on
// the digits: ranges, copies and lanes of every value.
func Feasible(a *ir.Arena, sink *ir.UOp, chosen plan.Plan, desc *target.Desc) error {
	p, err := shape.Apply(a, sink, chosen, desc)
	if err != nil {
		return err
	}
	l, err := newLowerer(p)
	if err != nil {
		return err
	}
	for _, u := range ir.Toposort(p.Sink) {
		free := l.free.Of(u)
		lanes := int64(1)
		for _, i := range free.Meet(l.lanes).List() {
			lanes *= l.extent[i]
		}
		if lanes > plan.MaxLanes && u.Op != ir.OpStore && u.Op != ir.OpSink && u.DType != ir.Idx {
			return fmt.Errorf("kernel: plan: a %s of %d lanes, at most %d are allowed", u.Op, lanes, plan.MaxLanes)
		}
		if u.Op == ir.OpReduce {
			copies := int64(1)
			for _, i := range free.Meet(l.copies).List() {
				copies *= l.extent[i]
			}
			if copies > plan.MaxUnroll {
				return fmt.Errorf("kernel: plan: %d accumulators of one reduce, at most %d are allowed", copies, plan.MaxUnroll)
			}
		}
	}
	return l.checkThreads()
}
