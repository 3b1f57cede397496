package tensor

import (
	"maps"
	"slices"
	"weak"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/target"
)

// A loop that computes step after step on one graph lets go of the tensors of steps before.
// Realize then forgets what nothing can ask for any more: values, nodes and places in lists.
// What can be asked for begins at the tensors that are alive, which weak pointers tell once a
// garbage collection has been: hence Realize looks after one.

// tracked are the tensors of a graph that may be alive.
type tracked struct {
	tensors   []weak.Pointer[Tensor]
	limit     int // of tensors, before dead ones are dropped
	collected weak.Pointer[sentinel]
	free      []int64 // IDs of buffers that are no more
}

// sentinel is garbage from the start; it has no pointers and is too large to share memory.
type sentinel [64]byte

func (l *tracked) add(t *Tensor) {
	if len(l.tensors) >= max(l.limit, 1024) {
		l.tensors = slices.DeleteFunc(l.tensors, func(p weak.Pointer[Tensor]) bool { return p.Value() == nil })
		l.limit = 2 * len(l.tensors)
	}
	l.tensors = append(l.tensors, weak.Make(t))
}

// take is the ID of a buffer that is no more, or the next one.
func (l *tracked) take(next int64) int64 {
	if last := len(l.free) - 1; last >= 0 {
		next, l.free = l.free[last], l.free[:last]
	}
	return next
}

// due reports that there was a garbage collection since the last time.
func (l *tracked) due() bool {
	if l.collected.Value() != nil {
		return false
	}
	l.collected = weak.Make(new(sentinel))
	return true
}

// alive are the tensors that something refers to.
func (l *tracked) alive() (list []*Tensor) {
	for _, p := range l.tensors {
		if t := p.Value(); t != nil && t.node != nil {
			list = append(list, t)
		}
	}
	return list
}

// sweep forgets what nothing can ask for: see survivors.
func (g *Graph) sweep() {
	if len(g.realised) == 0 || !g.tracked.due() {
		return
	}
	alive := g.tracked.alive()
	s := newSurvivors(g, alive)
	g.arena.Renew()
	g.shapes.Forget()
	to := s.again(g.arena)
	for _, t := range alive {
		t.node = to[t.node]
	}
	for i, u := range g.results {
		g.results[i] = to[u]
	}
	maps.DeleteFunc(g.others, func(u *ir.UOp, _ func(*target.Desc) *Tensor) bool { return !s.computed[u] })
	g.others, g.customs = moved(g.others, to), moved(g.customs, to)
	maps.DeleteFunc(g.realised, func(u, _ *ir.UOp) bool { return !s.values[u] || s.replaced[u] != nil })
	g.realised = moved(g.realised, to)
	for u, stored := range g.realised {
		g.realised[u] = g.arena.Again(stored, stored.Src)
	}
	g.forgetValues()
}

// forgetValues drops the values that nothing reads; others may take their IDs.
func (g *Graph) forgetValues() {
	used := make(map[int64]bool)
	for u := range g.arena.All() {
		if arg, ok := u.Arg.(ir.BufferArg); ok && u.Op == ir.OpBuffer {
			used[arg.ID] = true
		}
	}
	for id := range g.values {
		if !used[id] {
			delete(g.values, id)
			g.buffers[id] = BufferInfo{ID: id}
			g.tracked.free = append(g.tracked.free, id)
		}
	}
	slices.Sort(g.tracked.free)
}

// moved is a map of nodes whose nodes are others now, without those that are no more.
func moved[T any](from map[*ir.UOp]T, to map[*ir.UOp]*ir.UOp) map[*ir.UOp]T {
	out := make(map[*ir.UOp]T, len(from))
	for u, value := range from {
		if to[u] != nil {
			out[to[u]] = value
		}
	}
	return out
}

// survivors are the nodes and values that can still be asked for. A computed tensor is a value
// like any other unless derivatives may be asked for by a tensor that it was computed from: then
// what lies between stays, and the values that it starts from.
type survivors struct {
	order    []*ir.UOp           // nodes, sources first
	replaced map[*ir.UOp]*ir.UOp // computed nodes -> the buffers that they are from now on
	values   map[*ir.UOp]bool    // computed nodes that are read before what they were computed from
	computed map[*ir.UOp]bool    // nodes that are not computed yet, and that something may ask for
}

func newSurvivors(g *Graph, alive []*Tensor) *survivors {
	roots := slices.Clone(g.results)
	asked := make(map[*ir.UOp]bool)
	for _, t := range alive {
		roots = append(roots, t.node)
		asked[t.node] = true
	}
	s := &survivors{values: make(map[*ir.UOp]bool), computed: make(map[*ir.UOp]bool)}
	all := ir.Toposort(roots...)
	s.replaced = g.replacements(all, asked)
	walk(roots, func(u *ir.UOp) []*ir.UOp {
		if g.realised[u] != nil {
			s.values[u] = true
			return nil
		}
		s.computed[u] = true
		return u.Src
	})
	stays := make(map[*ir.UOp]bool)
	walk(roots, func(u *ir.UOp) []*ir.UOp {
		stays[u] = true
		if s.replaced[u] != nil {
			return s.replaced[u].Src
		}
		return u.Src
	})
	s.order = slices.DeleteFunc(all, func(u *ir.UOp) bool { return !stays[u] })
	return s
}

// replacements are the computed nodes of a list, sources first, by nothing before which a
// derivative can be asked for.
func (g *Graph) replacements(list []*ir.UOp, asked map[*ir.UOp]bool) map[*ir.UOp]*ir.UOp {
	replaced := make(map[*ir.UOp]*ir.UOp)
	reaches := make(map[*ir.UOp]bool) // a derivative by an asked node goes through this one
	reads := make(map[*ir.UOp]bool)   // a buffer: the others are constants, which steps share
	for _, u := range list {
		reads[u] = u.Op == ir.OpBuffer || slices.ContainsFunc(u.Src, func(x *ir.UOp) bool { return reads[x] })
		before := slices.ContainsFunc(g.derivedFrom(u), func(x *ir.UOp) bool { return reaches[x] })
		if stored := g.realised[u]; stored != nil && !before {
			replaced[u] = stored
		}
		reaches[u] = before || asked[u] && reads[u] && u.DType.IsFloat()
	}
	return replaced
}

// walk visits nodes once each, and what visit returns for one.
func walk(roots []*ir.UOp, visit func(u *ir.UOp) []*ir.UOp) {
	var seen ir.Visited
	stack := slices.Clone(roots)
	for len(stack) > 0 {
		u := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen.Add(u) {
			stack = append(stack, visit(u)...)
		}
	}
}

// again makes the nodes once more, after Renew.
func (s *survivors) again(a *ir.Arena) map[*ir.UOp]*ir.UOp {
	to := make(map[*ir.UOp]*ir.UOp, len(s.order))
	for _, u := range s.order {
		if stored, ok := s.replaced[u]; ok { // its sources are extents
			to[u] = a.Again(stored, stored.Src)
			continue
		}
		to[u] = a.Again(u, lists.Map(u.Src, func(x *ir.UOp) *ir.UOp { return to[x] }))
	}
	return to
}

// derivedFrom are the nodes that the derivative of one goes on to.
func (g *Graph) derivedFrom(u *ir.UOp) []*ir.UOp {
	if c, ok := g.customs[u]; ok {
		var list []*ir.UOp
		for _, in := range c.inputs {
			list = append(list, in.node)
		}
		return list
	}
	if u.Op == ir.OpDetach || !u.DType.IsFloat() {
		return nil
	}
	return u.Src
}
