package shape

import (
	"tgc/ir"
	"tgc/kernel/plan"
)

// readPlan distributes the Opts over the axes.
func readPlan(st *State) error {
	plans, options, err := plan.Read(st.Sink, st.Plan, st.Desc)
	if err != nil {
		return err
	}
	st.Options = options
	for _, p := range plans {
		st.Axes = append(st.Axes, Axis{AxisPlan: p})
		st.next = max(st.next, p.Axis.Range.Arg.(ir.RangeArg).ID+1)
	}
	if err := checkTiles(st.Arena, st.Sink, st.Axes); err != nil {
		return err
	}
	if st.has(plan.Matrix) {
		markFragments(st.Axes)
	}
	st.Threads = plan.Threads(st.Sink, plans)
	return nil
}
