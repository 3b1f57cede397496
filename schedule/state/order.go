package state

import (
	"fmt"
	"slices"

	"tgc/internal/lists"
)

// Writers lists the values that write versions.
func (s *Graph) Writers(slots []int) []int {
	var ids []int
	for _, slot := range slots {
		if w := s.Versions[slot].Writer; w >= 0 {
			ids = append(ids, w)
		}
	}
	return ids
}

// stored replaces values that vanished into their readers by what they read.
func (s *Graph) stored(ids []int) []int {
	var out []int
	seen := make(map[int]bool)
	for todo := append([]int(nil), ids...); len(todo) > 0; {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[id] {
			continue
		}
		seen[id] = true
		v := s.Values[id]
		if !v.Dead {
			out = append(out, id)
			continue
		}
		r := s.ReadsOf(v)
		todo = append(append(todo, r.Values...), s.Writers(r.Versions)...)
	}
	return out
}

// Edges lists, for every stored value (by id), the values that must run before
// it: writers of what it reads, and readers of the version that it overwrites.
func (s *Graph) Edges(live []*Value) [][]int {
	before := make([][]int, len(s.Values))
	add := func(v, w int) {
		if v != w && w >= 0 && !s.oneUpdate(v, w) && !slices.Contains(before[v], w) {
			before[v] = append(before[v], w)
		}
	}
	readers := make([][]int, len(s.Versions))
	for _, v := range live {
		r := s.ReadsOf(v)
		for _, id := range r.Values {
			add(v.ID, id)
		}
		for _, slot := range r.Versions {
			add(v.ID, s.Versions[slot].Writer)
			for _, w := range s.stored(s.Versions[slot].Waits) {
				add(v.ID, w)
			}
			if under := s.Versions[slot].Under; under >= 0 {
				slot = under // the write of that version needs no order
			}
			readers[slot] = append(readers[slot], v.ID)
		}
	}
	for _, ver := range s.Versions {
		if ver.Previous < 0 {
			continue
		}
		// Writers of earlier versions too: versions are written in order.
		add(ver.Writer, s.Versions[ver.Previous].Writer)
		for _, reader := range readers[ver.Previous] {
			add(ver.Writer, reader)
		}
	}
	s.levelGroups(live, before, func(v *Value) int { return v.Group })
	s.levelGroups(live, before, func(v *Value) int { return v.Update })
	for _, list := range before {
		slices.Sort(list)
	}
	return before
}

// oneUpdate reports two values of one update: its kernel computes all values of
// a point before it stores one.
func (s *Graph) oneUpdate(v, w int) bool {
	return s.Values[v].Update > 0 && s.Values[v].Update == s.Values[w].Update
}

// levelGroups makes the parts of a split reduce (or the stores of an update) wait
// for each other's operands, so that they are of one level.
func (s *Graph) levelGroups(live []*Value, before [][]int, groupOf func(*Value) int) {
	groups := make([][]int, s.Groups+1)
	for _, v := range live {
		if g := groupOf(v); g > 0 {
			groups[g] = append(groups[g], v.ID)
		}
	}
	for _, parts := range groups {
		var all []int
		for _, id := range parts {
			all = lists.Union(all, before[id]...)
		}
		for _, id := range parts {
			before[id] = slices.Clone(all)
		}
	}
}

// Levels gives every live value its dependence level, or the error that names
// both sides of a version hazard.
func (s *Graph) Levels(live []*Value, before [][]int) ([]int, error) {
	level := make([]int, len(s.Values))
	state := make([]byte, len(s.Values)) // 0 new, 1 open, 2 done
	type frame struct{ id, next int }
	for _, root := range live {
		if state[root.ID] != 0 {
			continue
		}
		stack := []frame{{id: root.ID}}
		state[root.ID] = 1
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
				ids := lists.Map(stack, func(f frame) int { return f.id })
				return nil, s.hazard(ids[slices.Index(ids, w):])
			}
		}
	}
	order := Topological(live, before)
	for _, v := range order {
		for _, w := range before[v.ID] {
			level[v.ID] = max(level[v.ID], level[w]+1)
		}
	}
	return level, nil
}

// Topological lists values after everything that must run before them, in
// order of id where there is a choice.
func Topological(live []*Value, before [][]int) []*Value {
	byID := make(map[int]*Value, len(live))
	for _, v := range live {
		byID[v.ID] = v
	}
	done := make(map[int]bool, len(live))
	var order []*Value
	var visit func(v *Value)
	visit = func(v *Value) {
		if done[v.ID] {
			return
		}
		done[v.ID] = true
		for _, w := range before[v.ID] {
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
func (s *Graph) hazard(cycle []int) error {
	for _, id := range cycle {
		v := s.Values[id]
		if v.Target < 0 {
			continue
		}
		next := s.Versions[v.Target]
		old := s.Versions[next.Previous]
		for _, other := range cycle {
			if other == id {
				continue
			}
			if slices.ContainsFunc(s.ReadsOf(s.Values[other]).Versions, func(slot int) bool {
				return slot == next.Previous || s.Versions[slot].Under == next.Previous
			}) {
				return fmt.Errorf("buffer hazard: %s reads %s but also needs %s, which overwrites it: read it (or copy it) before the assignment",
					s.Values[other].Label(), old, next)
			}
		}
	}
	return fmt.Errorf("the order of kernels has a cycle through %s", s.Values[cycle[0]].Label())
}
