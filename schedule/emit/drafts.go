package emit

import (
	"tgc/ir"
	"tgc/schedule/state"
)

// EachKernel is a pass that rewrites the expressions of every kernel together.
func EachKernel(rewrite func(s *state.State, k *state.Draft, roots []*ir.UOp) []*ir.UOp) func(*state.State) {
	return func(s *state.State) {
		for _, launch := range s.Launches {
			for _, k := range launch {
				k.SetRoots(rewrite(s, k, k.Roots()))
			}
		}
	}
}

func MergeKernelTuples(s *state.State, k *state.Draft, roots []*ir.UOp) []*ir.UOp {
	if len(k.Values) < 2 {
		return roots
	}
	return s.MergeTuples(roots)
}

// AlignKernelChains is for loops that are unified and chains that split-groups
// makes.
func AlignKernelChains(s *state.State, _ *state.Draft, roots []*ir.UOp) []*ir.UOp {
	if !s.Opt.Rules.Has(state.Unify) || !s.Opt.Rules.Has(state.GroupSplit) {
		return roots
	}
	return alignChains(s.Exprs, roots)
}

func UnifyLoops(s *state.State, k *state.Draft, roots []*ir.UOp) []*ir.UOp {
	roots = nameClosed(s.Exprs, roots, true)
	if s.Opt.Explain {
		recordLoops(s, k.Values[0], roots)
	}
	return roots
}

func NameLoops(s *state.State, _ *state.Draft, roots []*ir.UOp) []*ir.UOp {
	return nameClosed(s.Exprs, roots, false)
}

func PruneKernelTuples(s *state.State, _ *state.Draft, roots []*ir.UOp) []*ir.UOp {
	return s.PruneTuples(roots)
}

// recordLoops tells how many reduces of a kernel share how many loops.
func recordLoops(s *state.State, v *state.Value, roots []*ir.UOp) {
	reduces, loops := int64(0), make(map[*ir.UOp]bool)
	for _, u := range ir.Toposort(roots...) {
		if u.Op == ir.OpReduce {
			reduces++
			loops[u.ReduceRange()] = true
		}
	}
	if n := int64(len(loops)); n < reduces {
		s.Record(v, true, "reduces share loops", state.Number{Name: "reduces", Value: reduces}, state.Number{Name: "loops", Value: n})
	}
}
