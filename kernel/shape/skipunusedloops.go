package shape

import (
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/kernel/plan"
)

// Loops whose results nothing uses. Both arms of a WHERE are computed, so that a sum
// in an arm that is not taken costs as much as one in an arm that is: the product of
// a tile of rows that no token went to, say. A loop whose results stand in arms of
// one condition only runs no pass where that does not hold. The condition must have
// one value for the loop, of work units and outer loops of the store, so that the
// threads of a block agree; it may be loaded.

// armCondition is a condition, or that it does not hold.
type armCondition struct {
	cond *ir.UOp
	not  bool
}

// skipUnusedLoops gives serial ranges of reduces the extent 0 where all results are left
// out. All sub-axes have roles.
func skipUnusedLoops(st *State, sink *ir.UOp) *ir.UOp {
	nodes := ir.Toposort(sink)
	if !slices.ContainsFunc(nodes, func(u *ir.UOp) bool { return u.Op == ir.OpWhere }) {
		return sink
	}
	free, err := plan.NewFree(sink)
	if err != nil {
		return sink // order-ranges reports it
	}
	arms := armConditions(nodes)
	with := make(map[*ir.UOp]*ir.UOp)
	loops := outerLoops(st, nodes)
	for _, r := range nodes { // in the order of the graph, so that new ranges are numbered alike
		reduces := loops[r]
		if len(reduces) == 0 {
			continue
		}
		all, extent, l := arms[reduces[0]], r.Src[0], newLimiter(st, r, reduces, free.FreeSets)
		for _, u := range reduces[1:] {
			all = meetConditions(all, arms[u])
		}
		for _, c := range all {
			if !l.isOutside(c.cond) {
				continue
			}
			if none := st.Arena.Index(0); c.not {
				extent = st.Arena.Where(c.cond, none, extent)
			} else {
				extent = st.Arena.Where(c.cond, extent, none)
			}
		}
		if extent = st.simp.Do(extent); extent != r.Src[0] {
			with[r] = st.newRange(extent)
			st.place(with[r], plan.Serial, st.order[r])
		}
	}
	if len(with) == 0 {
		return sink
	}
	// Operands of sums and comparisons have an order, which other ranges change. Addresses
	// are simplified when they are written: a reduce in one must stay the reduce that it is.
	return st.simp.Do(st.Arena.Substitute(sink, with))
}

// outerLoops lists the reduces over each serial range of which none stands inside
// another serial loop.
func outerLoops(st *State, nodes []*ir.UOp) map[*ir.UOp][]*ir.UOp {
	loops, inside := make(map[*ir.UOp][]*ir.UOp), make(map[*ir.UOp]bool)
	for _, u := range slices.Backward(nodes) {
		serial := u.Op == ir.OpReduce && st.roles[u.ReduceRange()] == plan.Serial
		if serial {
			loops[u.ReduceRange()] = append(loops[u.ReduceRange()], u)
		}
		for _, s := range u.Src {
			inside[s] = inside[s] || inside[u] || serial
		}
	}
	for r, reduces := range loops {
		if slices.ContainsFunc(reduces, func(u *ir.UOp) bool { return inside[u] }) {
			delete(loops, r)
		}
	}
	return loops
}

// armConditions are those without which nothing uses a node's value. nodes are in
// topological order.
func armConditions(nodes []*ir.UOp) map[*ir.UOp][]armCondition {
	arms, used := make(map[*ir.UOp][]armCondition), make(map[*ir.UOp]bool)
	for _, u := range slices.Backward(nodes) {
		for i, s := range u.Src {
			list := arms[u]
			if u.Op == ir.OpWhere && i > 0 {
				list = append(slices.Clone(list), armCondition{u.Src[0], i == 2})
			}
			if used[s] {
				list = meetConditions(arms[s], list)
			}
			arms[s], used[s] = list, true
		}
	}
	return arms
}

func meetConditions(x, y []armCondition) []armCondition {
	return lists.Filter(x, func(c armCondition) bool { return slices.Contains(y, c) })
}
