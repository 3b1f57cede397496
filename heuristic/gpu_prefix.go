package heuristic

import (
	"fmt"

	"tgc/ir"
	"tgc/kernel/plan"
)

// gpuPrefix gives a thread all running folds of a short row, as copies of the code (see
// tryPrefix): half the terms of a result are those of the one before it. A block for each
// row, which folded it again for every result, took 95 of the 100 us of a running sum of a
// million on an H200. Rows must be many, the more the longer they are: each is one thread.
func gpuPrefix(a *analysis, axes []int) (opts []plan.Opt, why string, record Record, ok bool) {
	if len(axes) != 1 || len(a.stages) > 0 || !a.plainReduce(axes[0]) || !a.constant(axes[0]) || a.size(axes[0]) > prefixPoints {
		return nil, "", Record{}, false
	}
	row := axes[0]
	i, run := a.prefixAxis(row)
	if i < 0 || !a.laneSafe(i) {
		return nil, "", Record{}, false
	}
	stores := a.axesOf(plan.StoreAxis)
	rows := a.points(stores) / run
	if rows*prefixPoints < int64(a.desc.WarpSize)*int64(a.desc.Cost.Workers)*run {
		return nil, "", Record{}, false
	}
	if run < a.size(i) && a.storesAlong(i) && a.size(i)%lanesOf(a.desc) != 0 {
		return nil, "", Record{}, false // each store would be of one element, far from the next thread's
	}
	p := a.plan()
	if a.storesAlong(i) {
		p.split(plan.VECTOR, i, powerOfTwoDivisor(ir.GCD(run, p.size(i)), lanesOf(a.desc)))
	}
	p.split(plan.UPCAST, i, run/max(p.taken[i], 1))
	if p.laneSafe(row) && p.unitStride(row) {
		p.split(plan.VECTOR, row, powerOfTwoDivisor(p.size(row), lanesOf(a.desc)))
	}
	p.split(plan.UNROLL, row, p.left(row))
	p.done[i], p.done[row] = run == p.size(i), true
	threads := powerOfTwo(rows/int64(a.desc.Cost.Workers), int64(a.desc.WarpSize), gpuBlockThreads)
	for k := len(stores) - 1; k >= 0 && threads > 1; k-- {
		if j := stores[k]; !p.done[j] && p.constant(j) {
			n := a.threads(p.left(j), threads)
			p.split(plan.LOCAL, j, n)
			p.done[j] = true
			threads /= n
		}
	}
	p.fma()
	how := fmt.Sprintf("%d terms of %d results unrolled, a thread each row", p.size(row), run)
	return p.opts, how, Record{Axis: a.axes[i].Name, Value: a.size(i), Applied: true, Reason: "prefix", Detail: how}, true
}

// powerOfTwo is the largest power of two up to n, within bounds that are ones.
func powerOfTwo(n, least, most int64) int64 {
	v := least
	for v < most && v*2 <= n {
		v *= 2
	}
	return v
}
