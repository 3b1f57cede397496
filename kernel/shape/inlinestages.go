package shape

import (
	"slices"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/ir/program"
	"tgc/kernel/plan"
)

// inlineStages computes a light value where other stages read it, if nothing else
// does: normalised activations, of which groups have their maximum and their
// integers in stages. Threads that hold the same elements of all those stages
// share one computation (the pass eliminate-common-subexpressions), and an array and a barrier less
// stand between the loads and the rows.
func inlineStages(st *State, sink *ir.UOp) *ir.UOp {
	if st.Threads < 2 {
		return sink
	}
	for {
		free, err := plan.NewFree(sink)
		if err != nil {
			return sink
		}
		stage, reads := inlineable(st, free, sink)
		if stage == nil {
			return sink
		}
		replace := make(map[*ir.UOp]*ir.UOp)
		for _, u := range reads {
			replace[u] = bodyAt(st, stage, u.Indices())
		}
		sink = st.Arena.Substitute(sink, replace)
	}
}

// inlineable finds a stage that can go, and the loads of it.
func inlineable(st *State, free *plan.Free, sink *ir.UOp) (*ir.UOp, []*ir.UOp) {
	order := ir.Toposort(sink)
	direct := readsOfStages(analyse.OutsideStages(sink)) // outside of stages
	reads := readsOfStages(order)
	for _, u := range order {
		if u.Op != ir.OpStage || direct[u] != nil || !light(st, free, u) {
			continue
		}
		outside := func(load *ir.UOp) bool { return !within(st, u, load.Indices()) }
		if !slices.ContainsFunc(reads[u], outside) {
			return u, reads[u]
		}
	}
	return nil, nil
}

// readsOfStages lists the reads of each stage among some nodes.
func readsOfStages(nodes []*ir.UOp) map[*ir.UOp][]*ir.UOp {
	reads := make(map[*ir.UOp][]*ir.UOp)
	for _, u := range nodes {
		if u.Op == ir.OpLoad && u.Src[0].Op == ir.OpStage {
			reads[u.Src[0]] = append(reads[u.Src[0]], u)
		}
	}
	return reads
}

// bodyAt is the value of a stage at an index.
func bodyAt(st *State, stage *ir.UOp, index []*ir.UOp) *ir.UOp {
	at := make(map[*ir.UOp]*ir.UOp)
	for k, z := range stage.Src[1:] {
		at[z] = index[k]
	}
	return st.Arena.Substitute(stage.Src[0], at)
}

// within reports an index of a stage that is proven to be in bounds and that uses
// no range which a reduce inside the stage closes.
func within(st *State, stage *ir.UOp, index []*ir.UOp) bool {
	closed := make(map[*ir.UOp]bool)
	for _, u := range ir.Toposort(stage.Src[0]) {
		if u.Op == ir.OpReduce {
			closed[u.ReduceRange()] = true
		}
	}
	for k, x := range index {
		n, constant := stage.Src[1+k].Src[0].Int()
		if !constant || !st.bounds.Of(x).Within(0, n-1) || analyse.Any(x, func(u *ir.UOp) bool { return closed[u] }) {
			return false
		}
	}
	return true
}

// light reports a stage of few operations a point; reduces in it are the same for
// all of its points.
func light(st *State, free *plan.Free, stage *ir.UOp) bool {
	own, operations := free.SetOf(stage.Src[1:]...), 0
	for _, u := range ir.Toposort(stage.Src[0]) {
		mine := !free.Of(u).Meet(own).Empty()
		if mine && (u.Op == ir.OpReduce || u.Op == ir.OpField || u.Op == ir.OpStage) {
			return false
		}
		if mine && u.DType != ir.Idx && u.Op.IsElementwise() {
			operations++
		}
	}
	return operations <= st.Options.Program.Of(program.Inline)
}
