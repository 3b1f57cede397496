package schedule

import (
	"slices"

	"tgc/ir"
)

// Updates: pointwise stores over equal loops, of which some read what others
// store, each at its own point, are one kernel. The step of an optimiser is the
// pattern: the running means of a gradient are stored, and the weight is changed
// by what was stored. The reader takes the stored expression, so that nothing is
// read back, and one pass over the parameter does it all.
//
// A kernel computes all values of a point before it stores any, so a member may
// also read what another overwrites. Members wait for each other's operands and
// are therefore of one dependence level.

// joinUpdates finds groups and rewrites their readers.
func (s *scheduler) joinUpdates() {
	live := s.liveValues()
	before := s.edges(live)
	members := make(map[int][]*value) // by group
	for _, v := range topological(live, before) {
		sources := s.updatesRead(v)
		if len(sources) == 0 {
			continue
		}
		group := []*value{}
		for _, w := range append(sources, v) {
			for _, m := range s.updateGroup(members, w) {
				if !slices.Contains(group, m) {
					group = append(group, m)
				}
			}
		}
		if why := s.whyNoUpdate(group, before); why != "" {
			s.record(Update, v, false, why)
			continue
		}
		s.groups++
		s.mergeUpdate(group, v, sources)
		for _, m := range group {
			m.update = s.groups
		}
		members[s.groups] = group
		s.record(Update, v, true, "reads what is stored at its own point", Number{"stores", int64(len(group))})
	}
}

// absorbOperands moves pointwise temporaries into the update that is their only
// reader: the stores of a point share what they compute, so nothing is computed
// twice.
func (s *scheduler) absorbOperands() {
	for _, p := range s.liveValues() {
		if p.target >= 0 || p.pinned || p.split || p.beside || p.group > 0 || s.height(p.body) > 0 {
			continue
		}
		readers := s.consumers(p)
		if slices.ContainsFunc(readers, func(v *value) bool { return !s.mayAbsorb(p, v, readers[0]) }) {
			continue
		}
		if s.replaceReads(Update, p, s.asBody(p)) {
			s.record(Update, p, true, "all its readers are stored by one kernel")
		}
	}
}

// mayAbsorb reports that v, of the same update as first, reads p at its own
// point only, and that p reads what the update writes there only.
func (s *scheduler) mayAbsorb(p, v, first *value) bool {
	if v.update == 0 || v.update != first.update || !equalLoops(p, v) {
		return false
	}
	for _, load := range s.loadsOf(v.body, p.node) {
		if !slices.Equal(load.Indices(), v.storeLoops()) {
			return false
		}
	}
	return !slices.ContainsFunc(s.values, func(w *value) bool { return w.update == v.update && !s.readsOwnPoint(p, w) })
}

// updateGroup is what is stored together with w so far.
func (s *scheduler) updateGroup(members map[int][]*value, w *value) []*value {
	if w.update == 0 {
		return []*value{w}
	}
	return members[w.update]
}

// isUpdate reports a pointwise value that is stored once a point of its loops.
func (s *scheduler) isUpdate(v *value) bool {
	if v.target < 0 || v.split || v.beside || v.group > 0 || s.height(v.body) > 0 {
		return false
	}
	loops := v.storeLoops()
	used := 0
	for _, x := range v.storeIndex() {
		if used < len(loops) && x == loops[used] {
			used++
		} else if !x.IsInt(0) {
			return false
		}
	}
	return used == len(loops)
}

// updatesRead lists the updates whose stores v, an update too, reads at its own
// point and nowhere else.
func (s *scheduler) updatesRead(v *value) []*value {
	var out []*value
	if !s.isUpdate(v) {
		return nil
	}
	for _, slot := range s.readsOf(v).versions {
		ver := s.versions[slot]
		if ver.writer < 0 || ver.under >= 0 {
			continue
		}
		w := s.values[ver.writer]
		if w == v || !s.isUpdate(w) || !equalLoops(v, w) || !s.readsOwnPoint(v, w) {
			continue
		}
		if !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

// equalLoops reports loops of the same extents in the same order.
func equalLoops(v, w *value) bool {
	return slices.EqualFunc(v.storeLoops(), w.storeLoops(), func(x, y *ir.UOp) bool { return x.Src[0] == y.Src[0] })
}

// readsOwnPoint reports that v reads the buffer that w writes only at the point
// that w writes in the same iteration.
func (s *scheduler) readsOwnPoint(v, w *value) bool {
	index := s.indexInLoops(w, v)
	buffer := s.versions[w.target].buffer
	for _, u := range ir.Toposort(v.body) {
		if u.Op != ir.OpLoad && u.Op != ir.OpField || u.Src[0].Op != ir.OpParam {
			continue
		}
		ver := s.versions[u.Src[0].Arg.(ir.ParamArg).Slot]
		if ver.buffer == buffer && (ver.under >= 0 || u.Op == ir.OpField || !slices.Equal(u.Indices(), index)) {
			return false
		}
	}
	return true
}

// reads reports that v reads a version.
func (s *scheduler) reads(v *value, slot int) bool {
	return slices.Contains(s.readsOf(v).versions, slot)
}

// indexInLoops is where w stores, with its loops renamed to those of v.
func (s *scheduler) indexInLoops(w, v *value) []*ir.UOp {
	return s.rename(w.storeIndex(), renamedLoops(w, v))
}

func renamedLoops(from, to *value) map[*ir.UOp]*ir.UOp {
	with := make(map[*ir.UOp]*ir.UOp)
	for i, r := range from.storeLoops() {
		with[r] = to.storeLoops()[i]
	}
	return with
}

// whyNoUpdate says why values cannot be stored by one kernel, "" if they can:
// each writes a buffer of its own, reads what the others write at its own point
// only, and nothing outside needs one of them and is needed by another.
func (s *scheduler) whyNoUpdate(group []*value, before [][]int) string {
	ops := int64(0)
	for i, v := range group {
		ops += s.operations(v.body)
		for _, w := range group[:i] {
			switch {
			case s.versions[v.target].buffer == s.versions[w.target].buffer:
				return "both write one buffer"
			case !equalLoops(v, w):
				return "loops differ"
			case !s.readsOwnPoint(v, w) || !s.readsOwnPoint(w, v):
				return "reads another point"
			case i < len(group)-1 && (s.reads(v, w.target) || s.reads(w, v.target)):
				return "an earlier reader stands apart"
			}
		}
	}
	if ops > s.opt.Profile.BodyOps {
		return "the kernel grows too large"
	}
	if s.needsItself(group, before) {
		return "another kernel stands between"
	}
	return ""
}

// needsItself reports a path from a member of a group through a value outside to
// a member. Groups that exist count as one.
func (s *scheduler) needsItself(group []*value, before [][]int) bool {
	inside := make(map[int]bool, len(group))
	for _, v := range group {
		inside[v.id] = true
	}
	seen := make(map[int]bool)
	var reaches func(id int) bool
	reaches = func(id int) bool {
		if inside[id] {
			return true
		}
		if seen[id] {
			return false
		}
		seen[id] = true
		return slices.ContainsFunc(before[id], reaches) ||
			s.values[id].update > 0 && slices.ContainsFunc(s.values, func(v *value) bool {
				return v.update == s.values[id].update && slices.ContainsFunc(before[v.id], reaches)
			})
	}
	for _, v := range group {
		for _, id := range before[v.id] {
			if !inside[id] && reaches(id) {
				return true
			}
		}
	}
	return false
}

// mergeUpdate gives a group the loops of its first member, and v what its
// sources store instead of reads of it.
func (s *scheduler) mergeUpdate(group []*value, v *value, sources []*value) {
	for _, m := range group[1:] {
		s.alignLoops(group[0], m)
	}
	with := make(map[*ir.UOp]*ir.UOp)
	for _, w := range sources {
		for _, load := range s.loadsOf(v.body, s.versions[w.target].param) {
			with[load] = w.body
		}
	}
	s.setBody(v, s.substitute(v.body, with))
}
