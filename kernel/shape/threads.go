package shape

import (
	"tgc/ir"
	"tgc/kernel/plan"
)

// plannedThreads is the number of threads a block for which a plan asks: those
// that share points, or those that share a reduce, times those along all that it
// depends on.
func plannedThreads(sink *ir.UOp, plans []Axis) int64 {
	free, err := plan.NewFree(sink)
	if err != nil {
		return 1
	}
	count := func(p Axis) int64 {
		n := int64(1)
		for _, seg := range append(p.Segments[:len(p.Segments):len(p.Segments)], p.Top...) {
			if seg.Role.IsThread() {
				n *= seg.Size
			}
		}
		return n
	}
	at := make(map[int]int64) // threads along axes of stores and reduces
	most, atPoints := int64(1), int64(1)
	for _, p := range plans {
		n := count(p)
		switch p.Axis.Kind {
		case plan.StageAxis:
			most = max(most, n)
			continue
		case plan.StoreAxis:
			atPoints *= n
		}
		at[free.Index(p.Axis.Range)] = n
	}
	most = max(most, atPoints)
	for _, u := range ir.Toposort(sink) {
		if u.Op != ir.OpReduce {
			continue
		}
		n := max(at[free.Index(u.ReduceRange())], 1)
		for _, i := range free.Sets.Of(u).List() {
			n *= max(at[i], 1)
		}
		most = max(most, n)
	}
	return min(most, plan.MaxThreads)
}
