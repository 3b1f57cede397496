package shape

import (
	"context"
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/kernel/plan"
)

// inlineFactors computes what stages hold of the factors of MMA where a tile reads
// it: the points of a row are then fragments, in registers.
func inlineFactors(st *State, sink *ir.UOp) *ir.UOp {
	plans := st.Axes
	matrix, split := make(map[*ir.UOp]bool), make(map[*ir.UOp]bool)
	for _, p := range plans {
		matrix[p.Axis.Range] = p.Has(plan.Matrix)
		split[p.Axis.Range] = len(p.Segments) > 0
	}
	free, err := plan.NewFree(sink)
	if err != nil {
		return sink
	}
	replace := make(map[*ir.UOp]*ir.UOp)
	for _, u := range ir.Toposort(sink) {
		if u.Op != ir.OpLoad || u.Src[0].Op != ir.OpStage || !within(st, u.Src[0], u.Indices()) {
			continue
		}
		ranges := u.Src[0].Src[1:]
		own := free.SetOf(ranges...)
		ok := !slices.ContainsFunc(ranges, func(z *ir.UOp) bool { return split[z] }) &&
			slices.ContainsFunc(u.Indices(), func(x *ir.UOp) bool { return analyse.Any(x, func(r *ir.UOp) bool { return matrix[r] }) })
		for _, x := range ir.Toposort(u.Src[0].Src[0]) {
			if x.Op == ir.OpReduce || x.Op == ir.OpStage {
				ok = ok && free.Of(x).Meet(own).Empty()
			}
		}
		if ok {
			replace[u] = bodyAt(st, u.Src[0], u.Indices())
		}
	}
	if len(replace) == 0 {
		return sink
	}
	return st.simp.Do(st.Arena.Substitute(sink, replace))
}

// inlineMatrixFactors inlines factors and counts the threads again.
func inlineMatrixFactors(_ context.Context, st *State) error {
	st.Sink = inlineFactors(st, st.Sink)
	left := lists.Map(axesLeft(st.Sink, st.Axes), func(x Axis) plan.AxisPlan { return x.AxisPlan })
	st.Threads = plan.Threads(st.Sink, left)
	return nil
}
