package shape

import (
	"slices"

	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/kernel/plan"
	"tgc/target"
)

// Loops of sums between which nothing is computed,
//
//	sum_a sum_b f(a, b)  ->  sum_c f(c/B, c%B)
//
// as the digits of a block's address are: each loop would start its sums at nothing and add
// them to those around it, for every row and token of a tile. What is read from panels has
// its rows side by side, so that the index of the one loop is all that an address needs.

// joinLoops joins the loops of a kernel that reads panels on a CPU.
func joinLoops(st *State, sink *ir.UOp) *ir.UOp {
	if st.Desc.Kind == target.GPU || !st.hasPanels() {
		return sink
	}
	for {
		outer, inner := st.joinable(sink)
		if outer == nil {
			return sink
		}
		sink = st.joinPair(sink, outer, inner)
	}
}

// hasPanels reports a plan that decodes rows into panels.
func (st *State) hasPanels() bool {
	return slices.ContainsFunc(st.Axes, func(p Axis) bool { return p.Stage && p.Axis.Kind == plan.StoreAxis })
}

// sumsPanels reports a plan whose panels vectors sum, and no tile instructions, of which chains are made (collapse-sums).
func (st *State) sumsPanels() bool {
	return st.hasPanels() && !st.has(plan.Matrix) && !st.has(plan.Tiled)
}

// joinable finds two loops of which each runs in or around the other and nothing else.
func (st *State) joinable(sink *ir.UOp) (outer, inner *ir.UOp) {
	within, around := make(map[*ir.UOp]*ir.UOp), make(map[*ir.UOp]*ir.UOp)
	mixed := make(map[*ir.UOp]bool)
	var loops []*ir.UOp
	for _, u := range ir.Toposort(sink) {
		if u.Op != ir.OpReduce {
			continue
		}
		r, in := u.ReduceRange(), (*ir.UOp)(nil)
		if analyse.IsSum(u) && analyse.IsSum(u.Src[0]) {
			in = u.Src[0].ReduceRange()
		}
		if known, ok := within[r]; ok && known != in {
			mixed[r] = true
		}
		within[r] = in
		loops = append(loops, r)
		if in != nil {
			if known, ok := around[in]; ok && known != r {
				mixed[in] = true
			}
			around[in] = r
		}
	}
	counts := st.directSums(sink)
	for _, r := range loops {
		in := within[r]
		if in != nil && !mixed[r] && !mixed[in] && counts[in] == 0 && st.isLoop(r) && st.isLoop(in) {
			return r, in
		}
	}
	return nil, nil
}

// directSums counts the reduces over each range that stand right inside of no sum.
func (st *State) directSums(sink *ir.UOp) map[*ir.UOp]int {
	nodes := ir.Toposort(sink)
	counts, uses, inSums := make(map[*ir.UOp]int), make(map[*ir.UOp]int), make(map[*ir.UOp]int)
	for _, u := range nodes {
		for k, s := range u.Src {
			if uses[s]++; k == 0 && analyse.IsSum(u) {
				inSums[s]++
			}
		}
	}
	for _, u := range nodes {
		if u.Op == ir.OpReduce && uses[u] != inSums[u] {
			counts[u.ReduceRange()]++
		}
	}
	return counts
}

// isLoop reports a serial range of constant extent.
func (st *State) isLoop(r *ir.UOp) bool {
	_, constant := r.Src[0].Int()
	return constant && st.roles[r] == plan.Serial
}

// joinPair puts two loops into one.
func (st *State) joinPair(sink, outer, inner *ir.UOp) *ir.UOp {
	a := st.Arena
	n, _ := outer.Src[0].Int()
	m, _ := inner.Src[0].Int()
	joined := st.place(st.newRange(a.Index(n*m)), plan.Serial, st.order[outer])
	with := map[*ir.UOp]*ir.UOp{outer: a.Div(joined, a.Index(m)), inner: a.Mod(joined, a.Index(m))}
	return st.simp.Do(a.Rebuild(sink, func(u *ir.UOp, src []*ir.UOp) *ir.UOp {
		switch {
		case u == outer || u == inner:
			return with[u]
		case u.Op == ir.OpReduce && u.ReduceRange() == inner:
			return src[0]
		case u.Op == ir.OpReduce && u.ReduceRange() == outer:
			return a.Reduce(ir.OpAdd, src[0], joined)
		}
		return nil
	}))
}
