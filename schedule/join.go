package schedule

import (
	"slices"

	"tgc/ir"
)

// Multi-store join: values of one dependence level that hold the same tuple or
// stage, after their ranges are renamed, are stored by one kernel, which then
// computes it once. The shared node's ranges must be all loops of one of the
// values and the first loops of the other. Values of one level do not depend on
// each other, and a version's readers and its next writer are never of one
// level.

// joinKernels joins the kernels of every launch.
func (s *scheduler) joinKernels() {
	for i, launch := range s.launches {
		s.launches[i] = s.joinStores(launch)
	}
}

// joinStores joins kernels of one launch. An update stays as it is.
func (s *scheduler) joinStores(launch []*draft) []*draft {
	var joined []*draft
	byAnchor := make(map[*ir.UOp]*draft)
	for _, k := range launch {
		v := k.values[0]
		if v.update > 0 {
			joined = append(joined, k)
			continue
		}
		anchors := s.anchors(v)
		at := slices.IndexFunc(anchors, func(anchor *ir.UOp) bool { return byAnchor[anchor] != nil && s.mayJoin(byAnchor[anchor].values, v) })
		if at >= 0 {
			k = byAnchor[anchors[at]]
			k.values = append(k.values, v)
			s.record(MultiStore, v, true, "same tuple or stage")
		} else {
			joined = append(joined, k)
		}
		for _, anchor := range anchors {
			byAnchor[anchor] = k
		}
	}
	for _, k := range joined {
		s.alignGroup(k.values)
	}
	return joined
}

// alignGroup gives the values of a group the loops of the one that has most, so
// that two with the same loops share all of them.
func (s *scheduler) alignGroup(group []*value) {
	most := group[0]
	for _, v := range group {
		if len(v.storeLoops()) > len(most.storeLoops()) {
			most = v
		}
	}
	for _, v := range group {
		if v != most {
			s.alignLoops(most, v)
		}
	}
}

// anchors lists what a value could share: the score and range of its tuples, its
// stages, over loops renamed by position. Only those count whose ranges are a
// prefix of the loops.
func (s *scheduler) anchors(v *value) []*ir.UOp {
	if s.height(v.body) == 0 {
		return nil
	}
	loops := v.storeLoops()
	with := make(map[*ir.UOp]*ir.UOp, len(loops))
	named := make([]*ir.UOp, len(loops))
	for i, r := range loops {
		named[i] = s.a.Range(anchorBase+i, r.Src[0])
		with[r] = named[i]
	}
	body := s.substitute(v.body, with)
	var out []*ir.UOp
	for _, u := range ir.Toposort(body) {
		node := u
		switch {
		case s.isCascade(u):
			node = s.a.Make(ir.OpSink, ir.Void, nil, u.Src[0], u.ReduceRange())
		case u.Op == ir.OpStage:
		case u.Op == ir.OpReduce && u.Arg.(ir.ReduceArg).Op == ir.OpInvalid:
		default:
			continue
		}
		free := s.free.of(u)
		if s.isCascade(u) {
			free = without(s.free.of(u.Src[0]), binderRanges(u))
		}
		if slices.ContainsFunc(free, isClosed) || len(free) > len(loops) || !slices.Equal(free, sorted(named[:len(free)])) {
			continue
		}
		out = append(out, s.a.Make(ir.OpSink, ir.Void, nil, node, s.a.Index(int64(len(free)))))
	}
	return out
}

// anchorBase numbers the loops of a value by position while values are
// compared; no other range has such an id.
const anchorBase = 1 << 26

// mayJoin checks the loops of a group and a value: one's are the first loops of
// the other, as many as the anchor uses, or both have the same and the anchor
// uses some of them; and no buffer is written twice.
func (s *scheduler) mayJoin(group []*value, v *value) bool {
	short, long := group[0].storeLoops(), v.storeLoops()
	if len(short) > len(long) {
		short, long = long, short
	}
	for i := range short {
		if short[i].Src[0] != long[i].Src[0] {
			return false
		}
	}
	for _, w := range group {
		if w.target >= 0 && v.target >= 0 && s.versions[w.target].buffer == s.versions[v.target].buffer {
			return false
		}
		if s.readsAround(w, v) || s.readsAround(v, w) {
			return false
		}
	}
	shared := s.sharedAnchor(group[0], v)
	return shared == len(short) || shared > 0 && len(short) == len(long)
}

// readsAround reports that v reads around what w stores (R0f).
func (s *scheduler) readsAround(v, w *value) bool {
	return slices.ContainsFunc(s.readsOf(v).versions, func(slot int) bool {
		under := s.versions[slot].under
		return under >= 0 && under == w.target
	})
}

// sharedAnchor is the largest number of loops that a common anchor uses, -1 for
// none.
func (s *scheduler) sharedAnchor(x, y *value) int {
	most := -1
	others := s.anchors(y)
	for _, anchor := range s.anchors(x) {
		if slices.Contains(others, anchor) {
			n, _ := anchor.Src[1].Int()
			most = max(most, int(n))
		}
	}
	return most
}

// alignLoops renames the loops of v to those of another value of its group, where
// both have them.
func (s *scheduler) alignLoops(first, v *value) {
	with := make(map[*ir.UOp]*ir.UOp)
	target := first.storeLoops()
	loops := slices.Clone(v.storeLoops())
	for i := range min(len(loops), len(target)) {
		if loops[i].Src[0] != target[i].Src[0] {
			break // two that share less with each other than with the group's first
		}
		with[loops[i]] = target[i]
		loops[i] = target[i]
	}
	v.index = s.rename(v.storeIndex(), with)
	v.body = s.substitute(v.body, with)
	v.loops = loops
}
