package emit

import (
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/schedule/expr"
	"tgc/schedule/state"
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

// FuseUpdates finds groups and rewrites their readers.
func FuseUpdates(s *state.State) {
	live := s.LiveValues()
	before := s.Edges(live)
	members := make(map[int][]*state.Value) // by group
	for _, v := range state.Topological(live, before) {
		sources := updatesRead(s.Graph, v)
		if len(sources) == 0 {
			continue
		}
		group := []*state.Value{}
		for _, w := range append(sources, v) {
			group = lists.Union(group, updateGroup(s.Exprs, members, w)...)
		}
		if why := whyNoUpdate(s, group, before); why != "" {
			s.Record(v, false, why)
			continue
		}
		s.Groups++
		mergeUpdate(s.Graph, group, v, sources)
		for _, m := range group {
			m.Update = s.Groups
		}
		members[s.Groups] = group
		s.Record(v, true, "reads what is stored at its own point", state.Number{Name: "stores", Value: int64(len(group))})
	}
}

// updateGroup is what is stored together with w so far.
func updateGroup(s *expr.Exprs, members map[int][]*state.Value, w *state.Value) []*state.Value {
	if w.Update == 0 {
		return []*state.Value{w}
	}
	return members[w.Update]
}

// isUpdate reports a pointwise value that is stored once a point of its loops.
func isUpdate(s *expr.Exprs, v *state.Value) bool {
	if v.Target < 0 || v.Split || v.StoredWithTile || v.Group > 0 || s.Height(v.Body) > 0 {
		return false
	}
	loops := v.StoreLoops()
	used := 0
	for _, x := range v.StoreIndex() {
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
func updatesRead(s *state.Graph, v *state.Value) []*state.Value {
	var out []*state.Value
	if !isUpdate(s.Exprs, v) {
		return nil
	}
	for _, slot := range s.ReadsOf(v).Versions {
		ver := s.Versions[slot]
		if ver.Writer < 0 || ver.Under >= 0 {
			continue
		}
		w := s.Values[ver.Writer]
		if w == v || !isUpdate(s.Exprs, w) || !equalLoops(v, w) || !readsOwnPoint(s, v, w) {
			continue
		}
		out = lists.Union(out, w)
	}
	return out
}

// readsOwnPoint reports that v reads the buffer that w writes only at the point
// that w writes in the same iteration.
func readsOwnPoint(s *state.Graph, v, w *state.Value) bool {
	index := indexInLoops(s.Exprs, w, v)
	buffer := s.Versions[w.Target].Buffer
	for _, u := range ir.Toposort(v.Body) {
		if u.Op != ir.OpLoad && u.Op != ir.OpField || u.Src[0].Op != ir.OpParam {
			continue
		}
		ver := s.Versions[u.Src[0].Arg.(ir.ParamArg).Slot]
		if ver.Buffer == buffer && (ver.Under >= 0 || u.Op == ir.OpField || !slices.Equal(u.Indices(), index)) {
			return false
		}
	}
	return true
}

// reads reports that v reads a version.
func reads(s *state.Graph, v *state.Value, slot int) bool {
	return slices.Contains(s.ReadsOf(v).Versions, slot)
}

// indexInLoops is where w stores, with its loops renamed to those of v.
func indexInLoops(s *expr.Exprs, w, v *state.Value) []*ir.UOp {
	return s.Rename(w.StoreIndex(), renamedLoops(w, v))
}

func renamedLoops(from, to *state.Value) map[*ir.UOp]*ir.UOp {
	with := make(map[*ir.UOp]*ir.UOp)
	for i, r := range from.StoreLoops() {
		with[r] = to.StoreLoops()[i]
	}
	return with
}

// whyNoUpdate says why values cannot be stored by one kernel, "" if they can:
// each writes a buffer of its own, reads what the others write at its own point
// only, and nothing outside needs one of them and is needed by another.
func whyNoUpdate(s *state.State, group []*state.Value, before [][]int) string {
	ops := int64(0)
	for i, v := range group {
		ops += s.Operations(v.Body)
		for _, w := range group[:i] {
			switch {
			case s.Versions[v.Target].Buffer == s.Versions[w.Target].Buffer:
				return "both write one buffer"
			case !equalLoops(v, w):
				return "loops differ"
			case !readsOwnPoint(s.Graph, v, w) || !readsOwnPoint(s.Graph, w, v):
				return "reads another point"
			case i < len(group)-1 && (reads(s.Graph, v, w.Target) || reads(s.Graph, w, v.Target)):
				return "an earlier reader stands apart"
			}
		}
	}
	if ops > s.Opt.Profile.BodyOps {
		return "the kernel grows too large"
	}
	if needsItself(s.Graph, group, before) {
		return "another kernel stands between"
	}
	return ""
}

// needsItself reports a path from a member of a group through a value outside to
// a member. Groups that exist count as one.
func needsItself(s *state.Graph, group []*state.Value, before [][]int) bool {
	inside := lists.Set(lists.Map(group, func(v *state.Value) int { return v.ID }))
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
			s.Values[id].Update > 0 && slices.ContainsFunc(s.Values, func(v *state.Value) bool {
				return v.Update == s.Values[id].Update && slices.ContainsFunc(before[v.ID], reaches)
			})
	}
	for _, v := range group {
		for _, id := range before[v.ID] {
			if !inside[id] && reaches(id) {
				return true
			}
		}
	}
	return false
}

// mergeUpdate gives a group the loops of its first member, and v what its
// sources store instead of reads of it.
func mergeUpdate(s *state.Graph, group []*state.Value, v *state.Value, sources []*state.Value) {
	for _, m := range group[1:] {
		alignLoops(s.Exprs, group[0], m)
	}
	with := make(map[*ir.UOp]*ir.UOp)
	for _, w := range sources {
		for _, load := range s.LoadsOf(v.Body, s.Versions[w.Target].Param) {
			with[load] = w.Body
		}
	}
	s.SetBody(v, s.Substitute(v.Body, with))
}
