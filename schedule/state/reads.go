package state

import (
	"slices"

	"tgc/ir"
)

// LiveValues lists the values that will be stored: those that write a user's
// buffer, and what they read, in order of id.
func (s *Graph) LiveValues() []*Value {
	live := make([]bool, len(s.Values))
	var todo []*Value
	mark := func(id int) {
		if !live[id] {
			live[id] = true
			todo = append(todo, s.Values[id])
		}
	}
	for _, v := range s.Values {
		if v.Target >= 0 {
			mark(v.ID)
		}
	}
	for len(todo) > 0 {
		v := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		r := s.ReadsOf(v)
		for _, id := range r.Values {
			mark(id)
		}
		for _, slot := range r.Versions {
			if w := s.Versions[slot].Writer; w >= 0 {
				mark(w)
			}
		}
	}
	var out []*Value
	for _, v := range s.Values {
		v.Dead = !live[v.ID]
		if live[v.ID] {
			out = append(out, v)
		}
	}
	return out
}

// ReadsOf collects what a value reads, in its body and in its store's indices.
func (s *Graph) ReadsOf(v *Value) Reads {
	var r Reads
	var seen ir.Visited
	for _, root := range append([]*ir.UOp{v.Body}, v.Index...) {
		CollectReads(root, &seen, &r)
	}
	slices.Sort(r.Values)
	slices.Sort(r.Versions)
	return r
}

// CollectReads adds what an expression reads, but for the nodes seen.
func CollectReads(u *ir.UOp, seen *ir.Visited, r *Reads) {
	if len(u.Src) == 0 && u.Op != ir.OpValue && u.Op != ir.OpParam || !seen.Add(u) {
		return
	}
	switch u.Op {
	case ir.OpValue:
		r.Values = append(r.Values, u.Arg.(ir.ValueArg).ID)
		return
	case ir.OpParam:
		r.Versions = append(r.Versions, u.Arg.(ir.ParamArg).Slot)
		return
	case ir.OpRange:
		return
	}
	for _, src := range u.Src {
		CollectReads(src, seen, r)
	}
}

// MarkDead finds the values that nothing stored depends on.
func (s *Graph) MarkDead() { s.LiveValues() }
