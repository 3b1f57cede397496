package expr

import (
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
)

// PlainRanges reports distinct ranges other than k.
func (s *Exprs) PlainRanges(index []*ir.UOp, k *ir.UOp) bool {
	for i, x := range index {
		if x.Op != ir.OpRange || x == k || slices.Contains(index[:i], x) {
			return false
		}
	}
	return true
}

// SoftmaxTuple is the tuple reduce over one range of a score and its weights.
func (s *Exprs) SoftmaxTuple(values []*ir.UOp, k, c *ir.UOp) *ir.UOp {
	return s.CloseReduce(s.A.Fold(ir.Softmax(c), values, k))
}

// tupleGroup collects the tuples and maxima of one score over one range.
type tupleGroup struct {
	score, k *ir.UOp
	c        *ir.UOp // nil while only maxima are known
	values   []*ir.UOp
	members  []*ir.UOp
}

// MergeTuples makes softmax tuples (and maxima) with one score and one range a
// single node that has all their components.
func (s *Exprs) MergeTuples(roots []*ir.UOp) []*ir.UOp {
	nodes := s.binding(roots)
	projections := make(map[*ir.UOp]*ir.UOp)
	for _, group := range s.tupleGroups(nodes) {
		if group.c == nil || len(group.members) < 2 {
			continue
		}
		tuple := s.SoftmaxTuple(group.values, group.k, group.c) // the range keeps its name
		for _, u := range nodes {
			switch {
			case u.Op == ir.OpReduce && analyse.IsFloatMax(u) && slices.Contains(group.members, u):
				projections[u] = s.A.Proj(tuple, 0)
			case u.Op == ir.OpProj && slices.Contains(group.members, u.Src[0]):
				i := int(u.Arg.(ir.IntArg))
				if i > 0 {
					i = 1 + slices.Index(group.values[1:], u.Src[0].Src[i])
				}
				projections[u] = s.A.Proj(tuple, i)
			}
		}
	}
	if len(projections) == 0 {
		return roots
	}
	return s.Rename(roots, projections)
}

// binding lists the nodes that close a range somewhere below, sources first.
func (s *Exprs) binding(roots []*ir.UOp) []*ir.UOp {
	flat := func(u *ir.UOp) bool { return s.Height(u) == 0 }
	return ir.ToposortWithin(flat, slices.DeleteFunc(slices.Clone(roots), flat)...)
}

func (s *Exprs) tupleGroups(nodes []*ir.UOp) []*tupleGroup {
	var groups []*tupleGroup
	for _, u := range nodes {
		if !s.IsCascade(u) {
			continue
		}
		m := s.A.MonoidOf(u)
		c, softmax := m.Scale, m.Rescales
		at := slices.IndexFunc(groups, func(g *tupleGroup) bool {
			return g.score == u.Src[0] && g.k == u.ReduceRange() && (g.c == nil || !softmax || g.c == c)
		})
		if at < 0 {
			at = len(groups)
			groups = append(groups, &tupleGroup{score: u.Src[0], k: u.ReduceRange(), values: []*ir.UOp{u.Src[0]}})
		}
		g := groups[at]
		g.members = append(g.members, u)
		if !softmax {
			continue
		}
		g.c = c
		for _, v := range u.ReduceValues()[1:] {
			if !slices.Contains(g.values[1:], v) {
				g.values = append(g.values, v)
			}
		}
	}
	return groups
}

// PruneTuples drops the components of separable tuples that nothing projects. A
// tuple merged inside a stage and outside it has parts that only one place
// uses, and outside they would name ranges that nothing there closes. Ranges
// have their final names here: before, both places may be one node.
func (s *Exprs) PruneTuples(roots []*ir.UOp) []*ir.UOp {
	for {
		used := make(map[*ir.UOp][]int)
		nodes := ir.Toposort(roots...)
		for _, u := range nodes {
			if u.Op == ir.OpProj {
				i := int(u.Arg.(ir.IntArg))
				used[u.Src[0]] = lists.Union(used[u.Src[0]], i)
			}
		}
		projections := make(map[*ir.UOp]*ir.UOp)
		for _, u := range nodes {
			if u.Op != ir.OpProj {
				continue
			}
			if p := s.prunedProjection(u, used[u.Src[0]]); p != nil {
				projections[u] = p
			}
		}
		if len(projections) == 0 {
			return roots
		}
		roots = s.Rename(roots, projections)
	}
}

// prunedProjection is a projection of the tuple that has only the used
// components and the maximum; nil when nothing falls away.
func (s *Exprs) prunedProjection(u *ir.UOp, used []int) *ir.UOp {
	tuple := u.Src[0]
	m := s.A.MonoidOf(tuple)
	if !m.Separable {
		return nil
	}
	values := tuple.ReduceValues()
	kept, at := values[:1:1], 0
	for i := 1; i < len(values); i++ {
		if slices.Contains(used, i) {
			kept = append(kept, values[i])
		}
		if i == int(u.Arg.(ir.IntArg)) {
			at = len(kept) - 1
		}
	}
	switch len(kept) {
	case len(values):
		return nil
	case 1:
		return s.A.Reduce(m.Key, values[0], tuple.ReduceRange())
	}
	return s.A.Proj(s.A.Fold(m, kept, tuple.ReduceRange()), at)
}

// IsCascade reports a softmax tuple or a maximum, which can join one.
func (s *Exprs) IsCascade(u *ir.UOp) bool {
	return analyse.IsFloatMax(u) || u.Op == ir.OpReduce && s.A.MonoidOf(u).Rescales
}

// isTuple reports a tuple reduce, or a maximum that can join one.
func isTuple(u *ir.UOp) bool {
	return analyse.IsTuple(u) || analyse.IsFloatMax(u)
}

// TuplesOf lists the outermost reduces of an expression when they are all
// tuples or maxima, else none.
func (s *Exprs) TuplesOf(u *ir.UOp) []*ir.UOp {
	var out []*ir.UOp
	plain := false
	ir.Walk(func(u *ir.UOp) []*ir.UOp {
		switch {
		case isTuple(u):
			out = append(out, u)
			return nil
		case u.Op == ir.OpReduce || u.Op == ir.OpStage:
			plain = true
			return nil
		case s.Height(u) == 0:
			return nil
		}
		return u.Src
	}, u)
	if plain {
		return nil
	}
	return out
}
