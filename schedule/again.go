package schedule

import "tgc/ir"

// AFTER reads a stored tensor a second time: a version of its own kind, on the
// same memory. Its readers are other expressions than those of the first
// reading, and they wait for the values that AFTER names, so that the second
// computation does not run beside the first.

// addReading registers what an AFTER node reads. Without values to wait for it
// only marks its source.
func (s *scheduler) addReading(u *ir.UOp) {
	if len(u.Src) == 1 {
		return
	}
	slot := len(s.versions)
	v := &version{previous: -1, writer: -1, under: -1, waits: s.valuesBehind(u.Src[1:])}
	if stored, ok := s.valueOf[u.Src[0]]; ok {
		v.buffer, v.writer = stored.node, stored.id
		s.mutable[stored.node] = true
	} else {
		v.under = s.versionOf[u.Src[0]]
		base := s.versions[v.under]
		v.buffer, v.number, v.writer = base.buffer, base.number, base.writer
	}
	v.param = s.a.Make(ir.OpParam, u.DType, ir.ParamArg{Slot: slot}, v.buffer.Src...)
	s.versions = append(s.versions, v)
	s.versionOf[u] = slot
}

// readAgain is an element of an AFTER node.
func (s *scheduler) readAgain(u *ir.UOp, index []*ir.UOp) *ir.UOp {
	if len(u.Src) == 1 {
		return s.at(u.Src[0], index)
	}
	v := s.versions[s.versionOf[u]]
	if v.buffer.Op == ir.OpValue { // values have no axes of extent 1
		index = dropUnits(s.shapes.Of(u), index)
	}
	return s.a.Load(v.param, index...)
}

// valuesBehind lists the values that tensors are, or are computed from.
func (s *scheduler) valuesBehind(tensors []*ir.UOp) []int {
	var r reads
	var seen ir.Visited
	for _, t := range tensors {
		_, index := s.rangesOf(s.shapes.Of(t))
		collectReads(s.at(t, index), &seen, &r)
	}
	return append(r.values, s.writers(r.versions)...)
}

// writers lists the values that write versions.
func (s *scheduler) writers(slots []int) []int {
	var ids []int
	for _, slot := range slots {
		if w := s.versions[slot].writer; w >= 0 {
			ids = append(ids, w)
		}
	}
	return ids
}

// stored replaces values that vanished into their readers by what they read.
func (s *scheduler) stored(ids []int) []int {
	var out []int
	seen := make(map[int]bool)
	for todo := append([]int(nil), ids...); len(todo) > 0; {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[id] {
			continue
		}
		seen[id] = true
		v := s.values[id]
		if !v.dead {
			out = append(out, id)
			continue
		}
		r := s.readsOf(v)
		todo = append(append(todo, r.values...), s.writers(r.versions)...)
	}
	return out
}
