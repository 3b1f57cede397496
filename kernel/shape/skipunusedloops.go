package shape

import (
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/kernel/plan"
)

// Loops whose results nothing uses. Both arms of a WHERE are computed, so that a sum
// in an arm that is not taken costs as much as one in an arm that is: the product of
// a tile of rows that no token went to, say. A loop whose results stand in arms of
// one condition only runs no pass where that does not hold, nor does one that fills an array for such. The condition must have
// one value for the loop, of work units and outer loops of the store, so that the
// threads of a block agree, or one for each of its copies; it may be loaded.

// armCondition is a condition, or that it does not hold.
type armCondition struct {
	cond *ir.UOp
	not  bool
}

// skipUnusedLoops gives serial ranges of reduces and stages the extent 0 where all results are left
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
			if used := l.usedByAny(c); used != nil {
				extent = st.Arena.Where(used, extent, st.Arena.Index(0))
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

// mostCopies bounds the copies of a loop whose conditions are asked before it.
const mostCopies = 16

// usedByAny is whether any copy that the loop serves uses its results; nil where that is not known
// before the loop. What depends on copies of a store holds for some of them: of a tile's rows those past
// the last one of a group are left out, and a loop for such rows alone runs no pass.
func (l *limiter) usedByAny(c armCondition) *ir.UOp {
	a, copies, each := l.Arena, int64(1), []*ir.UOp{c.cond}
	for _, r := range analyse.RangesIn(c.cond) {
		n, constant := r.Src[0].Int()
		if l.roles[r] != plan.Unroll || !constant {
			continue
		}
		if copies *= n; copies > mostCopies {
			return nil
		}
		var next []*ir.UOp
		for _, cond := range each {
			for k := range n {
				next = append(next, a.Substitute(cond, map[*ir.UOp]*ir.UOp{r: a.Index(k)}))
			}
		}
		each = next
	}
	var used *ir.UOp
	for _, cond := range each {
		if !l.isOutside(cond) {
			return nil
		}
		if c.not {
			cond = a.Unary(ir.OpNot, cond)
		}
		if used == nil {
			used = cond
		} else {
			used = a.Binary(ir.OpOr, used, cond)
		}
	}
	return used
}

// outerLoops lists the reduces over each serial range of which none stands inside
// another serial loop, and stages that such a loop fills.
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
	bare := make(map[*ir.UOp]bool) // arrays that copies read, whether they are used or not
	for _, u := range nodes {
		if u.Op == ir.OpLoad && !inside[u] {
			bare[u.Src[0]] = true
		}
	}
	for _, u := range nodes {
		if r := fillLoop(st, u); r != nil && !bare[u] {
			loops[r] = append(loops[r], u)
		}
	}
	return loops
}

// fillLoop is the outermost loop that fills an array of one thread: what nothing reads need not be there.
func fillLoop(st *State, u *ir.UOp) *ir.UOp {
	if u.Op != ir.OpStage || st.Threads > 1 {
		return nil
	}
	serial := func(r *ir.UOp) bool { return st.roles[r] == plan.Serial }
	if i := slices.IndexFunc(u.Src[1:], serial); i >= 0 {
		return u.Src[1+i]
	}
	return nil
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
