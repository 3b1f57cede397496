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
func gpuPrefix(a *analysis) proposal {
	axes := a.axesOf(plan.ReduceAxis)
	if len(axes) != 1 || len(a.stages) > 0 || !a.plainReduce(axes[0]) || !a.constant(axes[0]) || a.size(axes[0]) > prefixPoints {
		return proposal{}
	}
	row := axes[0]
	i, run := a.prefixAxis(row)
	if i < 0 || !a.laneSafe(i) {
		return proposal{}
	}
	rows := a.points(a.axesOf(plan.StoreAxis)) / run
	if rows*prefixPoints < int64(a.desc.WarpSize)*int64(a.desc.Cost.Workers)*run {
		return proposal{}
	}
	if run < a.size(i) && a.storesAlong(i) && a.size(i)%lanesOf(a.desc) != 0 {
		return proposal{} // each store would be of one element, far from the next thread's
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
	block := powerOfTwo(rows/int64(a.desc.Cost.Workers), int64(a.desc.WarpSize), gpuBlockThreads)
	p.shareOut(1, block, func(j int, threads int64) int64 { return p.threads(p.left(j), block/threads) })
	p.fma()
	how := fmt.Sprintf("%d terms of %d results unrolled, a thread each row", p.size(row), run)
	return p.decidedBy(i, "prefix", how)
}

// powerOfTwo is the largest power of two up to n, within bounds that are ones.
func powerOfTwo(n, least, most int64) int64 {
	v := least
	for v < most && v*2 <= n {
		v *= 2
	}
	return v
}
