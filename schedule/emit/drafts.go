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

// MergeTuples makes one tuple of those over the same scores in a kernel with
// several stores.
func MergeTuples(s *state.State, k *state.Draft, roots []*ir.UOp) []*ir.UOp {
	if len(k.Values) < 2 {
		return roots
	}
	return s.MergeTuples(roots)
}

// AlignChains is for loops that are unified and chains that
// group-contractions makes.
func AlignChains(s *state.State, _ *state.Draft, roots []*ir.UOp) []*ir.UOp {
	if s.Opt.Off.Has(state.UnifyLoops) || s.Opt.Off.Has(state.GroupContractions) {
		return roots
	}
	return alignFlatSums(s.Exprs, roots)
}

// UnifyLoops gives closed ranges their final names; reduces share one where they
// may.
func UnifyLoops(s *state.State, k *state.Draft, roots []*ir.UOp) []*ir.UOp {
	roots = nameClosed(s.Exprs, roots, true, !s.Opt.Profile.SharedStages)
	if s.Opt.Explain {
		recordLoops(s, k.Values[0], roots)
	}
	return roots
}

// NameLoops gives every closed range that has no final name one of its own.
func NameLoops(s *state.State, _ *state.Draft, roots []*ir.UOp) []*ir.UOp {
	return nameClosed(s.Exprs, roots, false, false)
}

// PruneTuples drops the components of tuples that nobody reads.
func PruneTuples(s *state.State, _ *state.Draft, roots []*ir.UOp) []*ir.UOp {
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
