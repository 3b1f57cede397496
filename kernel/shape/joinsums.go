package shape

import (
	"slices"

	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/kernel/plan"
	"tgc/target"
)

// joinSums makes one sum of two over the same loops, where they are added: of weights with a
// scale and a minimum, sum_b d*s + sum_b m*t is sum_b (d*s + m*t). On a GPU, of a loop that warps share: they combine what
// they have of a sum in shared memory; a sum within a warp stays open until all are added. On a CPU, of loops over
// panels: of a tile each sum is a register, and of two only half as many results fit. It is done where the plan
// allows other rounding (FMA: class A).
func joinSums(st *State, sink *ir.UOp) *ir.UOp {
	if !st.Options.FMA || st.has(plan.Matrix) || st.Desc.Kind != target.GPU && !st.sumsPanels() {
		return sink
	}
	j := &sumJoiner{st, make(map[*ir.UOp]bool), make(map[*ir.UOp]int)}
	for _, p := range st.Axes {
		j.joins[p.Axis.Range] = st.Desc.Kind != target.GPU || p.Has(plan.Group)
	}
	for _, u := range ir.Toposort(sink) {
		for _, s := range u.Src {
			j.readers[s]++
		}
	}
	return st.Arena.Rebuild(sink, j.join)
}

// sumJoiner joins sums over some of the loops.
type sumJoiner struct {
	*State
	joins   map[*ir.UOp]bool
	readers map[*ir.UOp]int
}

// join writes a sum or difference of sums as one of sums or differences; src is what became of its operands.
func (j *sumJoiner) join(u *ir.UOp, src []*ir.UOp) *ir.UOp {
	if u.Op != ir.OpAdd && u.Op != ir.OpSub {
		return nil
	}
	var loops []*ir.UOp
	x, y := src[0], src[1]
	for a, b := u.Src[0], u.Src[1]; j.joinable(a) && j.joinable(b) && a.ReduceRange() == b.ReduceRange(); a, b = a.Src[0], b.Src[0] {
		loops = append(loops, x.ReduceRange())
		x, y = x.Src[0], y.Src[0]
	}
	if loops == nil {
		return nil
	}
	return sumOver(j.Arena, j.Arena.Binary(u.Op, x, y), loops)
}

// sumOver is the sum of a body over loops, outer before inner.
func sumOver(a *ir.Arena, body *ir.UOp, loops []*ir.UOp) *ir.UOp {
	for _, r := range slices.Backward(loops) {
		body = a.Reduce(ir.OpAdd, body, r)
	}
	return body
}

// joinable reports a sum that nothing else reads, over a loop that is joined.
func (j *sumJoiner) joinable(u *ir.UOp) bool {
	return analyse.IsFloatSum(u) && j.readers[u] == 1 && j.joins[u.ReduceRange()]
}
