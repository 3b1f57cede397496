package plan

import "tgc/ir"

// Threads is the number of threads a block for which a plan asks: those
// that share points, or those that share a reduce, times those along all that it
// depends on.
func Threads(sink *ir.UOp, plans []AxisPlan) int64 {
	free, err := NewFree(sink)
	if err != nil {
		return 1
	}
	at := make(map[int]int64) // threads along axes of stores and reduces
	most, atPoints := int64(1), int64(1)
	for i := range plans {
		p := &plans[i]
		n := p.Threads()
		switch p.Axis.Kind {
		case StageAxis:
			most = max(most, n)
			continue
		case StoreAxis:
			atPoints *= n
		}
		at[free.Index.Of(p.Axis.Range)] = n
	}
	most = max(most, atPoints)
	for _, u := range ir.Toposort(sink) {
		if u.Op != ir.OpReduce {
			continue
		}
		n := max(at[free.Index.Of(u.ReduceRange())], 1)
		for _, i := range free.Of(u).List() {
			n *= max(at[i], 1)
		}
		most = max(most, n)
	}
	return min(most, MaxThreads)
}

// PartsOf is into how many parts of a block's threads points go: as few as take the
// least rounds. Parts divide the threads, which would grow to a common multiple
// otherwise; some may stand idle in the last round, but not half of them in the only one, which
// no split allows.
func PartsOf(threads, points int64) int64 {
	rounds := func(parts int64) int64 { return (points + parts - 1) / parts }
	best := int64(1)
	for n := int64(2); n <= threads; n++ {
		if threads%n == 0 && n < 2*points && rounds(n) < rounds(best) {
			best = n
		}
	}
	return best
}
