package shape

import (
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/kernel/plan"
	"tgc/target"
)

// joinSums makes one sum of two over a loop that warps share, where they are added: of weights with a
// scale and a minimum, sum_b d*s + sum_b m*t is sum_b (d*s + m*t). Warps combine what they have of
// a sum in shared memory; a sum within a warp stays open until all are added. It is done where the plan
// allows other rounding (FMA: class A).
func joinSums(st *State, sink *ir.UOp) *ir.UOp {
	if st.Desc.Kind != target.GPU || !st.Options.FMA || st.has(plan.Matrix) {
		return sink
	}
	shared, readers := make(map[*ir.UOp]bool), make(map[*ir.UOp]int)
	for _, p := range st.Axes {
		shared[p.Axis.Range] = p.Has(plan.Group)
	}
	for _, u := range ir.Toposort(sink) {
		for _, s := range u.Src {
			readers[s]++
		}
	}
	return st.Arena.Rebuild(sink, func(u *ir.UOp, src []*ir.UOp) *ir.UOp {
		if u.Op != ir.OpAdd && u.Op != ir.OpSub {
			return nil
		}
		for i, s := range src {
			if readers[u.Src[i]] > 1 || !analyse.IsFloatSum(s) || !shared[s.ReduceRange()] || s.ReduceRange() != src[0].ReduceRange() {
				return nil
			}
		}
		return st.Arena.Reduce(ir.OpAdd, st.Arena.Binary(u.Op, src[0].Src[0], src[1].Src[0]), src[0].ReduceRange())
	})
}
