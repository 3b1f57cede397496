package lower

import (
	"fmt"

	"tgc/ir"
	"tgc/kernel/plan"
	"tgc/kernel/shape"
)

// Feasible checks the limits of a shaped kernel that depend on the sub-axes: ranges,
// copies and lanes of every value. A kernel that Lower writes is feasible; the
// reverse does not hold.
func Feasible(k *shape.Kernel) error {
	l, err := newLowering(k)
	if err != nil {
		return err
	}
	for _, u := range ir.Toposort(k.Sink) {
		free := l.free.Of(u)
		lanes, copies := l.points(free.Meet(l.lanes).List()), l.points(free.Meet(l.copies).List())
		if lanes > plan.MaxLanes && u.Op != ir.OpStore && u.Op != ir.OpSink && u.DType != ir.Idx {
			return fmt.Errorf("kernel: plan: a %s of %d lanes, at most %d are allowed", u.Op, lanes, plan.MaxLanes)
		}
		if u.Op == ir.OpReduce && copies > plan.MaxUnroll {
			return fmt.Errorf("kernel: plan: %d accumulators of one reduce, at most %d are allowed", copies, plan.MaxUnroll)
		}
	}
	return l.folds.checkThreads()
}
