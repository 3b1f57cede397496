package schedule

import (
	"fmt"
	"slices"

	"tgc/ir"
)

// liveValues lists the values that will be stored: those that write a user's
// buffer, and what they read, in order of id.
func (s *scheduler) liveValues() []*value {
	live := make([]bool, len(s.values))
	var todo []*value
	mark := func(id int) {
		if !live[id] {
			live[id] = true
			todo = append(todo, s.values[id])
		}
	}
	for _, v := range s.values {
		if v.target >= 0 {
			mark(v.id)
		}
	}
	for len(todo) > 0 {
		v := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		r := s.readsOf(v)
		for _, id := range r.values {
			mark(id)
		}
		for _, slot := range r.versions {
			if w := s.versions[slot].writer; w >= 0 {
				mark(w)
			}
		}
	}
	var out []*value
	for _, v := range s.values {
		v.dead = !live[v.id]
		if live[v.id] {
			out = append(out, v)
		}
	}
	return out
}

// orderLevels drafts the kernels and puts them into launches: those of one
// dependence level (R7), or one by one. The values of an update are one kernel.
func (s *scheduler) orderLevels() {
	live := s.liveValues()
	before := s.edges(live)
	level, err := s.levels(live, before)
	if err != nil {
		s.fail("%w", err)
		return
	}
	if !s.opt.Rules.Has(Par) {
		live = topological(live, before)
	}
	updates := make(map[int]*draft)
	s.launches = nil
	for _, v := range live {
		if k, ok := updates[v.update]; ok && v.update > 0 {
			k.values = append(k.values, v)
			continue
		}
		k := &draft{[]*value{v}}
		updates[v.update] = k
		at := len(s.launches)
		if s.opt.Rules.Has(Par) {
			at = level[v.id]
		}
		for len(s.launches) <= at {
			s.launches = append(s.launches, nil)
		}
		s.launches[at] = append(s.launches[at], k)
	}
}

// reads lists the values and buffer versions that an expression reads, sorted.
type reads struct {
	values   []int
	versions []int
}

// readsOf collects what a value reads, in its body and in its store's indices.
func (s *scheduler) readsOf(v *value) reads {
	var r reads
	var seen ir.Visited
	for _, root := range append([]*ir.UOp{v.body}, v.index...) {
		collectReads(root, &seen, &r)
	}
	slices.Sort(r.values)
	slices.Sort(r.versions)
	return r
}

func collectReads(u *ir.UOp, seen *ir.Visited, r *reads) {
	if len(u.Src) == 0 && u.Op != ir.OpValue && u.Op != ir.OpParam || !seen.Add(u) {
		return
	}
	switch u.Op {
	case ir.OpValue:
		r.values = append(r.values, u.Arg.(ir.ValueArg).ID)
		return
	case ir.OpParam:
		r.versions = append(r.versions, u.Arg.(ir.ParamArg).Slot)
		return
	case ir.OpRange:
		return
	}
	for _, src := range u.Src {
		collectReads(src, seen, r)
	}
}

// edges lists, for every stored value (by id), the values that must run before
// it: writers of what it reads, and readers of the version that it overwrites.
func (s *scheduler) edges(live []*value) [][]int {
	before := make([][]int, len(s.values))
	add := func(v, w int) {
		if v != w && w >= 0 && !s.oneUpdate(v, w) && !slices.Contains(before[v], w) {
			before[v] = append(before[v], w)
		}
	}
	readers := make([][]int, len(s.versions))
	for _, v := range live {
		r := s.readsOf(v)
		for _, id := range r.values {
			add(v.id, id)
		}
		for _, slot := range r.versions {
			add(v.id, s.versions[slot].writer)
			for _, w := range s.stored(s.versions[slot].waits) {
				add(v.id, w)
			}
			if under := s.versions[slot].under; under >= 0 {
				slot = under // the write of that version needs no order
			}
			readers[slot] = append(readers[slot], v.id)
		}
	}
	for _, ver := range s.versions {
		if ver.previous < 0 || s.values[ver.writer].dead {
			continue
		}
		// Writers of earlier versions too: versions are written in order.
		add(ver.writer, s.versions[ver.previous].writer)
		for _, reader := range readers[ver.previous] {
			add(ver.writer, reader)
		}
	}
	s.levelGroups(live, before, func(v *value) int { return v.group })
	s.levelGroups(live, before, func(v *value) int { return v.update })
	for _, list := range before {
		slices.Sort(list)
	}
	return before
}

// oneUpdate reports two values of one update: its kernel computes all values of
// a point before it stores one.
func (s *scheduler) oneUpdate(v, w int) bool {
	return s.values[v].update > 0 && s.values[v].update == s.values[w].update
}

// levelGroups makes the parts of a split reduce (or the stores of an update) wait
// for each other's operands, so that they are of one level.
func (s *scheduler) levelGroups(live []*value, before [][]int, groupOf func(*value) int) {
	groups := make([][]int, s.groups+1)
	for _, v := range live {
		if g := groupOf(v); g > 0 {
			groups[g] = append(groups[g], v.id)
		}
	}
	for _, parts := range groups {
		var all []int
		for _, id := range parts {
			for _, w := range before[id] {
				if !slices.Contains(all, w) {
					all = append(all, w)
				}
			}
		}
		for _, id := range parts {
			before[id] = slices.Clone(all)
		}
	}
}

// levels gives every live value its dependence level, or the error that names
// both sides of a version hazard.
func (s *scheduler) levels(live []*value, before [][]int) ([]int, error) {
	level := make([]int, len(s.values))
	state := make([]byte, len(s.values)) // 0 new, 1 open, 2 done
	type frame struct{ id, next int }
	for _, root := range live {
		if state[root.id] != 0 {
			continue
		}
		stack := []frame{{id: root.id}}
		state[root.id] = 1
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			if top.next == len(before[top.id]) {
				state[top.id] = 2
				stack = stack[:len(stack)-1]
				continue
			}
			w := before[top.id][top.next]
			top.next++
			switch state[w] {
			case 0:
				state[w] = 1
				stack = append(stack, frame{id: w})
			case 1:
				ids := make([]int, len(stack))
				for i, f := range stack {
					ids[i] = f.id
				}
				return nil, s.hazard(ids[slices.Index(ids, w):])
			}
		}
	}
	order := topological(live, before)
	for _, v := range order {
		for _, w := range before[v.id] {
			level[v.id] = max(level[v.id], level[w]+1)
		}
	}
	return level, nil
}

// topological lists values after everything that must run before them, in
// order of id where there is a choice.
func topological(live []*value, before [][]int) []*value {
	byID := make(map[int]*value, len(live))
	for _, v := range live {
		byID[v.id] = v
	}
	done := make(map[int]bool, len(live))
	var order []*value
	var visit func(v *value)
	visit = func(v *value) {
		if done[v.id] {
			return
		}
		done[v.id] = true
		for _, w := range before[v.id] {
			visit(byID[w])
		}
		order = append(order, v)
	}
	for _, v := range live {
		visit(v)
	}
	return order
}

// hazard explains a cycle: a reader of an old version that depends on the write
// that replaces it.
func (s *scheduler) hazard(cycle []int) error {
	for _, id := range cycle {
		v := s.values[id]
		if v.target < 0 {
			continue
		}
		next := s.versions[v.target]
		old := s.versions[next.previous]
		for _, other := range cycle {
			if other == id {
				continue
			}
			if slices.ContainsFunc(s.readsOf(s.values[other]).versions, func(slot int) bool {
				return slot == next.previous || s.versions[slot].under == next.previous
			}) {
				return fmt.Errorf("buffer hazard: %s reads %s but also needs %s, which overwrites it: read it (or copy it) before the assignment",
					s.values[other].label(), old, next)
			}
		}
	}
	return fmt.Errorf("the order of kernels has a cycle through %s", s.values[cycle[0]].label())
}
