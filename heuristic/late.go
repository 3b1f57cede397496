package heuristic

import (
	"fmt"
	"slices"

	"tgc/internal/lists"
	"tgc/kernel/plan"
	"tgc/target"
)

// Store axes whose extent is known only where a kernel runs: the rows of a cache up to the position, say. Without an Opt
// such an axis is a loop of each work unit. A GPU has units along it (Opt GRID) where the other axes have too few.
const (
	lateUnits   = 4   // for each multiprocessor
	lateThreads = 128 // along an axis that is as long as a variable says
)

// withUnits is a plan with units along store axes of late extents, where the others leave multiprocessors idle.
func (a *analysis) withUnits(opts []plan.Opt) plan.Plan {
	chosen := plan.Plan{Opts: opts}
	late := lists.Filter(a.axesOf(plan.StoreAxis), func(i int) bool { return !a.constant(i) && a.everyStore(i) })
	axes, _, err := plan.Read(a.sink, chosen, a.desc)
	if a.desc.Kind != target.GPU || len(late) == 0 || err != nil {
		return chosen
	}
	units, workers := int64(1), int64(a.desc.Cost.Workers)
	left := make([]int64, len(axes))
	for i, x := range axes {
		left[i] = a.size(i)
		for _, s := range x.Segments {
			left[i] = ceil(left[i], max(s.Size, 1))
		}
		if x.Rest == plan.Grid {
			units = satMul(units, left[i])
		}
	}
	for _, i := range late {
		if n := min(left[i], ceil(lateUnits*workers, units)); n > 1 && units < 2*workers {
			with := plan.Plan{Opts: append(slices.Clone(chosen.Opts), plan.Opt{Kind: plan.GRID, Axis: a.axes[i].Name, Amount: n})}
			if plan.Legality(a.sink, with, a.desc) == nil {
				chosen, units = with, satMul(units, n)
			}
		}
	}
	return chosen
}

// gpuLate plans an elementwise kernel whose neighbours lie along an axis of a late extent: threads side by side.
func gpuLate(a *analysis) proposal {
	i := lists.Last(a.axesOf(plan.StoreAxis), func(i int) bool { return !a.constant(i) && a.everyStore(i) && a.laneScore(i) > 0 }, -1)
	if i < 0 || a.desc.Kind != target.GPU {
		return proposal{}
	}
	p := a.plan()
	n := powerOfTwo(a.size(i), 1, lateThreads)
	p.split(plan.LOCAL, i, n)
	p.done[i] = true
	return p.decidedBy(i, "late", fmt.Sprintf("%d threads along an extent that is known late", n))
}
