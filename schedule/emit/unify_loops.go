package emit

import (
	"slices"

	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/schedule/expr"
)

// unify-loops and name-loops: ranges of one kernel get their final names. A kernel's loops are
// its store ranges (ids 0..n-1 in loop order) and one id per loop of a REDUCE
// or STAGE. Reduces of equal extent share a loop when neither contains the
// other and they are inside the same reduce loops.

// renaming is the state of final naming in one kernel.
type renaming struct {
	s      *expr.Exprs
	share  bool
	apart  bool // products of matrices have loops of their own
	next   int
	groups map[string][]*loopGroup
	final  map[*ir.UOp]*ir.UOp // binder -> binder with final ranges
	inside map[*ir.UOp]map[*ir.UOp]bool
}

// loopGroup is one loop: its range and the binders that share it.
type loopGroup struct {
	ranges  []*ir.UOp
	members []*ir.UOp
}

// finalBase separates final names of closed ranges from all others while the
// renaming runs; writing the kernel numbers them anew.
const finalBase = 1 << 28

// nameClosed renames every closed range in the roots.
func nameClosed(s *expr.Exprs, roots []*ir.UOp, share, apart bool) []*ir.UOp {
	n := &renaming{s: s, share: share, apart: apart, next: finalBase, groups: make(map[string][]*loopGroup), final: make(map[*ir.UOp]*ir.UOp), inside: make(map[*ir.UOp]map[*ir.UOp]bool)}
	for {
		ready := n.ready(roots)
		if len(ready) == 0 {
			return roots
		}
		for _, binder := range ready {
			if _, ok := n.final[binder]; !ok {
				n.final[binder] = n.name(binder)
			}
		}
		roots = s.Rename(roots, n.final)
	}
}

// ready lists binders without final names whose free closed ranges are final,
// in preorder. Ranges that a projection hides count: a binder that is named
// keeps its identity in later passes only if none of them is renamed any more.
func (n *renaming) ready(roots []*ir.UOp) []*ir.UOp {
	var out []*ir.UOp
	ir.Walk(func(u *ir.UOp) []*ir.UOp {
		if u.Op == ir.OpRange {
			return nil
		}
		if (u.Op == ir.OpReduce || u.Op == ir.OpStage) && expr.IsClosed(expr.BinderRanges(u)[0]) && !slices.ContainsFunc(n.s.Mentions.Of(u), expr.IsClosed) {
			out = append(out, u)
		}
		return u.Src
	}, roots...)
	return out
}

// name gives a binder its final ranges, shared with a group where it may.
func (n *renaming) name(u *ir.UOp) *ir.UOp {
	ranges := expr.BinderRanges(u)
	group := n.find(u, ranges)
	with := make(map[*ir.UOp]*ir.UOp, len(ranges))
	for i, r := range ranges {
		with[r] = group.ranges[i]
	}
	return n.s.A.With(u, n.s.Rename(u.Src, with))
}

func (n *renaming) find(u *ir.UOp, ranges []*ir.UOp) *loopGroup {
	key := n.key(u, ranges)
	if n.share && u.Op == ir.OpReduce {
		for _, g := range n.groups[key] {
			if g.members[0].Op == ir.OpReduce && !n.circular(g, u) {
				g.members = append(g.members, u)
				return g
			}
		}
	}
	g := &loopGroup{members: []*ir.UOp{u}}
	for _, r := range ranges {
		g.ranges = append(g.ranges, n.s.A.Range(n.next, r.Src[0]))
		n.next++
	}
	n.groups[key] = append(n.groups[key], g)
	return g
}

// key separates loops that cannot be one: other extents, other reduce loops
// around.
func (n *renaming) key(u *ir.UOp, ranges []*ir.UOp) string {
	var b []byte
	for _, r := range n.s.Mentions.Of(u) {
		if id := expr.RangeID(r); id >= finalBase {
			b = append(b, byte(id), byte(id>>8), byte(id>>16))
		}
	}
	if n.apart && n.isProduct(u) {
		b = append(b, 'x')
	}
	h := ranges[0].Src[0].Hash()
	for i := range 8 {
		b = append(b, byte(h>>(8*i)))
	}
	return string(b)
}

// isProduct reports a sum of products of floats that lie in memory as they are, whose factors are each used for rows or
// columns of their own: a tile of results is held in registers, with lanes along columns. A fold of rows, in the same loop, would be
// made of one element after the other, and again for the columns of each tile. One Zen 4 core, weights of attention times
// 501 values of 37 for 2 x 7 x 501 queries, divided by their sum: 7354 us, 4522 apart.
func (n *renaming) isProduct(u *ir.UOp) bool {
	own := func(x, y []*ir.UOp) bool {
		return slices.ContainsFunc(ir.WithoutRanges(x, y), func(r *ir.UOp) bool { return !expr.IsClosed(r) })
	}
	x, y, ok := n.s.FactorRanges(u)
	return ok && own(x, y) && own(y, x) && !analyse.Any(u, func(u *ir.UOp) bool { return u.Op == ir.OpField })
}

// circular reports that with u in group g some loop would have to run both
// before and after that of g: a member contains a reduce of another group that
// (directly or through more groups) contains a member.
func (n *renaming) circular(g *loopGroup, u *ir.UOp) bool {
	joined := append(slices.Clone(g.members), u)
	holds := func(x *ir.UOp, list []*ir.UOp) bool {
		return slices.ContainsFunc(list, func(m *ir.UOp) bool { return n.binders(x)[m] })
	}
	if slices.ContainsFunc(joined, func(m *ir.UOp) bool { return holds(m, joined) }) {
		return true
	}
	seen := map[*loopGroup]bool{g: true}
	todo := [][]*ir.UOp{joined}
	for len(todo) > 0 {
		members := todo[0]
		todo = todo[1:]
		for _, groups := range n.groups {
			for _, h := range groups {
				if seen[h] || !slices.ContainsFunc(members, func(m *ir.UOp) bool { return holds(m, h.members) }) {
					continue
				}
				if slices.ContainsFunc(h.members, func(m *ir.UOp) bool { return holds(m, joined) }) {
					return true
				}
				seen[h] = true
				todo = append(todo, h.members)
			}
		}
	}
	return false
}

// binders is the set of reduces and stages below u, not counting u itself.
func (n *renaming) binders(u *ir.UOp) map[*ir.UOp]bool {
	if set, ok := n.inside[u]; ok {
		return set
	}
	set := make(map[*ir.UOp]bool)
	ir.Walk(func(x *ir.UOp) []*ir.UOp {
		if n.s.Height(x) == 0 { // an index may hold a reduce, too
			return nil
		}
		if x != u && (x.Op == ir.OpReduce || x.Op == ir.OpStage) {
			set[x] = true
		}
		return x.Src
	}, u)
	n.inside[u] = set
	return set
}
