package state

import (
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/schedule/expr"
)

// Uses lists the reads of values in a body, in preorder; a read that is in
// several reduces counts once for each.
func (s *Graph) Uses(v *Value) []Use {
	if list, ok := s.useMemo[v.Body]; ok {
		return list
	}
	w := &useWalk{s: s, seen: make(map[useKey]bool)}
	w.visit(v.Body, Use{})
	s.useMemo[v.Body] = w.list
	return w.list
}

// UsesOf lists the reads of p in c.
func (s *Graph) UsesOf(c, p *Value) []Use {
	return lists.Filter(s.Uses(c), func(u Use) bool { return u.Load.Src[0] == p.Node })
}

type useKey struct {
	node, binder *ir.UOp
	component    *ir.UOp
}

type useWalk struct {
	s    *Graph
	seen map[useKey]bool
	list []Use
}

func (w *useWalk) visit(u *ir.UOp, at Use) {
	if len(u.Src) == 0 || u.Op == ir.OpRange {
		return
	}
	key := useKey{node: u, binder: at.Binder}
	if len(at.Values) > 0 {
		key.component = at.Values[0]
	}
	if w.seen[key] {
		return
	}
	w.seen[key] = true
	switch u.Op {
	case ir.OpLoad:
		if u.Src[0].Op == ir.OpValue {
			found := at
			found.Load = u
			w.list = append(w.list, found)
		}
	case ir.OpReduce:
		inside := Use{Binder: u, Closed: append(slices.Clone(at.Closed), u.ReduceRange())}
		values := u.ReduceValues()
		for i, v := range values {
			inside.Values = []*ir.UOp{v}
			if i > 0 {
				inside.Values = []*ir.UOp{v, values[0]}
			}
			w.visit(v, inside)
		}
		return
	case ir.OpStage:
		inside := Use{Binder: u, Values: u.Src[:1], Closed: append(slices.Clone(at.Closed), u.Src[1:]...)}
		w.visit(u.Src[0], inside)
		return
	}
	for _, src := range u.Src {
		w.visit(src, at)
	}
}

// Scope lists the ranges over which the expression around a use is evaluated.
func (s *Graph) Scope(c *Value, u Use) []*ir.UOp {
	if u.Binder == nil {
		return expr.Sorted(c.StoreLoops())
	}
	var list []*ir.UOp
	for _, v := range u.Values {
		list = ir.UnionRanges(list, s.Free.Of(v))
	}
	return list
}

// Multiplicity lists the ranges over which each point is recomputed when the
// value is inlined at the use: those of the scope that its index does not use.
// Outside all reduces there are none: the value is computed at its own place in
// the loop nest.
func (s *Graph) Multiplicity(c *Value, u Use) []*ir.UOp {
	if u.Binder == nil {
		return nil
	}
	return ir.WithoutRanges(s.Scope(c, u), s.Free.Of(u.Load))
}

// Consumers lists the readers of a value, by id.
func (s *Graph) Consumers(p *Value) []*Value {
	return lists.Map(s.Users[p.ID], func(id int) *Value { return s.Values[id] })
}

// IndexUses builds the table of readers.
func (s *Graph) IndexUses() {
	s.Users = make([][]int, len(s.Values))
	s.ReadMemo = make([]Reads, len(s.Values))
	for _, v := range s.Values {
		if !v.Dead {
			s.LinkReads(v)
		}
	}
}

// LinkReads enters a new value into the table of readers.
func (s *Graph) LinkReads(v *Value) {
	s.ReadMemo[v.ID] = s.ReadsOf(v)
	for _, id := range s.ReadMemo[v.ID].Values {
		if i, found := slices.BinarySearch(s.Users[id], v.ID); !found {
			s.Users[id] = slices.Insert(s.Users[id], i, v.ID)
		}
	}
}

func (s *Graph) unlinkReads(v *Value) {
	for _, id := range s.ReadMemo[v.ID].Values {
		if i, found := slices.BinarySearch(s.Users[id], v.ID); found {
			s.Users[id] = slices.Delete(s.Users[id], i, i+1)
		}
	}
}

// SetBody replaces a value's body and keeps the table of readers; values that
// nobody reads any more die.
func (s *Graph) SetBody(v *Value, body *ir.UOp) {
	old := s.ReadMemo[v.ID].Values
	s.unlinkReads(v)
	v.Body = body
	s.LinkReads(v)
	for _, id := range old {
		s.reap(s.Values[id])
	}
}

// reap kills a value without readers.
func (s *Graph) reap(v *Value) {
	if v.Dead || v.Target >= 0 || len(s.Users[v.ID]) > 0 {
		return
	}
	v.Dead = true
	s.unlinkReads(v)
	for _, id := range s.ReadMemo[v.ID].Values {
		s.reap(s.Values[id])
	}
}
