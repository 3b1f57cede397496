package kernel

import (
	"fmt"

	"tgc/ir"
	"tgc/target"
)

// Feasible checks a plan as Legality does, and then the limits that depend on
// the digits: ranges, copies and lanes of every value.
func Feasible(a *ir.Arena, sink *ir.UOp, plan Plan, desc *target.Desc) error {
	p, err := apply(a, sink, plan, desc)
	if err != nil {
		return err
	}
	l, err := newLowerer(p)
	if err != nil {
		return err
	}
	for _, u := range ir.Toposort(p.sink) {
		free := l.free.of(u)
		lanes := int64(1)
		for _, i := range free.meet(l.lanes).list() {
			lanes *= l.extent[i]
		}
		if lanes > maxLanes && u.Op != ir.OpStore && u.Op != ir.OpSink && u.DType != ir.Idx {
			return fmt.Errorf("kernel: plan: a %s of %d lanes, at most %d are allowed", u.Op, lanes, maxLanes)
		}
		if u.Op == ir.OpReduce {
			copies := int64(1)
			for _, i := range free.meet(l.copies).list() {
				copies *= l.extent[i]
			}
			if copies > maxCopies {
				return fmt.Errorf("kernel: plan: %d accumulators of one reduce, at most %d are allowed", copies, maxCopies)
			}
		}
	}
	return l.checkThreads()
}
