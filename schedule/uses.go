package schedule

import (
	"slices"

	"tgc/ir"
)

// use is one read of a value inside a consumer's body.
type use struct {
	load   *ir.UOp
	binder *ir.UOp   // innermost REDUCE or STAGE around it; nil outside all
	values []*ir.UOp // what that binder evaluates where the use stands: of a tuple, the use's component and component 0
	closed []*ir.UOp // ranges closed around it, outermost first
}

// uses lists the reads of values in a body, in preorder; a read that stands in
// several reduces counts once for each.
func (s *scheduler) uses(v *value) []use {
	if list, ok := s.useMemo[v.body]; ok {
		return list
	}
	w := &useWalk{s: s, seen: make(map[useKey]bool)}
	w.visit(v.body, use{})
	s.useMemo[v.body] = w.list
	return w.list
}

// usesOf lists the reads of p in c.
func (s *scheduler) usesOf(c, p *value) []use {
	var out []use
	for _, u := range s.uses(c) {
		if u.load.Src[0] == p.node {
			out = append(out, u)
		}
	}
	return out
}

type useKey struct {
	node, binder *ir.UOp
	component    *ir.UOp
}

type useWalk struct {
	s    *scheduler
	seen map[useKey]bool
	list []use
}

func (w *useWalk) visit(u *ir.UOp, at use) {
	if len(u.Src) == 0 || u.Op == ir.OpRange {
		return
	}
	key := useKey{node: u, binder: at.binder}
	if len(at.values) > 0 {
		key.component = at.values[0]
	}
	if w.seen[key] {
		return
	}
	w.seen[key] = true
	switch u.Op {
	case ir.OpLoad:
		if u.Src[0].Op == ir.OpValue {
			found := at
			found.load = u
			w.list = append(w.list, found)
		}
	case ir.OpReduce:
		inside := use{binder: u, closed: append(slices.Clone(at.closed), u.ReduceRange())}
		values := u.ReduceValues()
		for i, v := range values {
			inside.values = []*ir.UOp{v}
			if i > 0 {
				inside.values = []*ir.UOp{v, values[0]}
			}
			w.visit(v, inside)
		}
		return
	case ir.OpStage:
		inside := use{binder: u, values: u.Src[:1], closed: append(slices.Clone(at.closed), u.Src[1:]...)}
		w.visit(u.Src[0], inside)
		return
	}
	for _, src := range u.Src {
		w.visit(src, at)
	}
}

// scope lists the ranges over which the expression around a use is evaluated.
func (s *scheduler) scope(c *value, u use) []*ir.UOp {
	if u.binder == nil {
		return sorted(c.storeLoops())
	}
	var list []*ir.UOp
	for _, v := range u.values {
		list = union(list, s.free.of(v))
	}
	return list
}

// multiplicity lists the ranges over which each point is recomputed when the
// value is inlined at the use: those of the scope that its index does not use.
// Outside all reduces there are none: the value is computed at its own place in
// the loop nest.
func (s *scheduler) multiplicity(c *value, u use) []*ir.UOp {
	if u.binder == nil {
		return nil
	}
	return without(s.scope(c, u), s.free.of(u.load))
}

// readers of a value, by id.
func (s *scheduler) consumers(p *value) []*value {
	var out []*value
	for _, id := range s.users[p.id] {
		out = append(out, s.values[id])
	}
	return out
}

// indexUses builds the table of readers.
func (s *scheduler) indexUses() {
	s.users = make([][]int, len(s.values))
	s.readMemo = make([]reads, len(s.values))
	for _, v := range s.values {
		if !v.dead {
			s.linkReads(v)
		}
	}
}

func (s *scheduler) linkReads(v *value) {
	s.readMemo[v.id] = s.readsOf(v)
	for _, id := range s.readMemo[v.id].values {
		if i, found := slices.BinarySearch(s.users[id], v.id); !found {
			s.users[id] = slices.Insert(s.users[id], i, v.id)
		}
	}
}

func (s *scheduler) unlinkReads(v *value) {
	for _, id := range s.readMemo[v.id].values {
		if i, found := slices.BinarySearch(s.users[id], v.id); found {
			s.users[id] = slices.Delete(s.users[id], i, i+1)
		}
	}
}

// setBody replaces a value's body and keeps the table of readers; values that
// nobody reads any more die.
func (s *scheduler) setBody(v *value, body *ir.UOp) {
	old := s.readMemo[v.id].values
	s.unlinkReads(v)
	v.body = body
	s.linkReads(v)
	for _, id := range old {
		s.reap(s.values[id])
	}
}

// reap kills a value without readers.
func (s *scheduler) reap(v *value) {
	if v.dead || v.target >= 0 || len(s.users[v.id]) > 0 {
		return
	}
	v.dead = true
	s.unlinkReads(v)
	for _, id := range s.readMemo[v.id].values {
		s.reap(s.values[id])
	}
}
