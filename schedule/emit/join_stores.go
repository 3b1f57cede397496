package emit

import (
	"slices"

	"tgc/ir"
	"tgc/schedule/expr"
	"tgc/schedule/state"
)

// Multi-store join: values of one dependence level that hold the same tuple, stage or
// number of which they are terms, after their ranges are renamed, are stored by one kernel, which then
// computes it once. The shared node's ranges must be all loops of one of the
// values and the first loops of the other. Values of one level do not depend on
// each other, and a version's next writer is of a later level than its readers and its
// own writer: what is joined never writes one buffer twice.

// JoinStores joins the kernels of every launch.
func JoinStores(s *state.State) {
	for i, launch := range s.Launches {
		s.Launches[i] = joinLaunch(s, launch)
	}
}

// joinLaunch joins kernels of one launch. An update stays as it is.
func joinLaunch(s *state.State, launch []*state.Draft) []*state.Draft {
	var joined []*state.Draft
	byAnchor := make(map[*ir.UOp]*state.Draft)
	for _, k := range launch {
		v := k.Values[0]
		if v.Update > 0 {
			joined = append(joined, k)
			continue
		}
		anchors := anchors(s.Exprs, v)
		at := slices.IndexFunc(anchors, func(anchor *ir.UOp) bool {
			return byAnchor[anchor] != nil && mayJoin(s.Graph, byAnchor[anchor].Values, v)
		})
		if at >= 0 {
			k = byAnchor[anchors[at]]
			k.Values = append(k.Values, v)
			s.Record(v, true, "same tuple or stage")
		} else {
			joined = append(joined, k)
		}
		for _, anchor := range anchors {
			byAnchor[anchor] = k
		}
	}
	for _, k := range joined {
		alignGroup(s.Exprs, k.Values)
	}
	return joined
}

// alignGroup gives the values of a group the loops of the one that has most, so
// that two with the same loops share all of them.
func alignGroup(s *expr.Exprs, group []*state.Value) {
	most := group[0]
	for _, v := range group {
		if len(v.StoreLoops()) > len(most.StoreLoops()) {
			most = v
		}
	}
	for _, v := range group {
		if v != most {
			alignLoops(s, most, v)
		}
	}
}

// anchors lists what a value could share: the score and range of its tuples, its
// stages, what terms of BF16 are taken of, over loops renamed by position. Only those count
// whose ranges are a prefix of the loops.
func anchors(s *expr.Exprs, v *state.Value) []*ir.UOp {
	if s.Height(v.Body) == 0 && v.Node.DType != ir.BF16 {
		return nil
	}
	loops := v.StoreLoops()
	with := make(map[*ir.UOp]*ir.UOp, len(loops))
	named := make([]*ir.UOp, len(loops))
	for i, r := range loops {
		named[i] = s.A.Range(expr.AnchorBase+i, r.Src[0])
		with[r] = named[i]
	}
	body := s.Substitute(v.Body, with)
	var out []*ir.UOp
	for _, u := range ir.Toposort(body) {
		node := u
		switch {
		case s.IsCascade(u):
			node = s.A.Make(ir.OpSink, ir.Void, nil, u.Src[0], u.ReduceRange())
		case u.Op == ir.OpStage:
		case u.Op == ir.OpCast && u.DType == ir.BF16 && v.Node.DType == ir.BF16:
			node = u.Src[0]
		case u.Op == ir.OpReduce && u.Arg.(ir.ReduceArg).Op == ir.OpInvalid:
		default:
			continue
		}
		free := s.Free.Of(u)
		if s.IsCascade(u) {
			free = ir.WithoutRanges(s.Free.Of(u.Src[0]), expr.BinderRanges(u))
		}
		if slices.ContainsFunc(free, expr.IsClosed) || len(free) > len(loops) || !slices.Equal(free, expr.Sorted(named[:len(free)])) {
			continue
		}
		out = append(out, s.A.Make(ir.OpSink, ir.Void, nil, node, s.A.Index(int64(len(free)))))
	}
	return out
}

// mayJoin checks the loops of a group's first value and of another: the anchor uses
// all loops of one of them, which then are the first ones of the other, or both have
// the same, the anchor uses some of them, and neither has a tile that the other has not.
func mayJoin(s *state.Graph, group []*state.Value, v *state.Value) bool {
	for _, w := range group {
		if readsAround(s, w, v) || readsAround(s, v, w) {
			return false
		}
	}
	shared := sharedAnchor(s.Exprs, group[0], v)
	least := min(len(group[0].StoreLoops()), len(v.StoreLoops()))
	return shared == least || shared > 0 && equalLoops(group[0], v) && !tilesApart(s.Exprs, group[0], v, shared)
}

// tilesApart reports a stage of one of two values that depends on more loops than what they share, but not on all: a head of keys, of
// which rotations read pairs. Its points want to be rows of one work unit, and those of the other value, along the same loop, rows of several.
func tilesApart(s *expr.Exprs, x, y *state.Value, shared int) bool {
	return slices.ContainsFunc(slices.Concat(anchors(s, x), anchors(s, y)), func(anchor *ir.UOp) bool {
		n, _ := anchor.Src[1].Int()
		return anchor.Src[0].Op == ir.OpStage && int(n) > shared && int(n) < len(x.StoreLoops())
	})
}

// readsAround reports that v reads around what w stores (forward-stores). In one
// kernel with the store, the buffer would be one that is written: no load of it could
// move.
func readsAround(s *state.Graph, v, w *state.Value) bool {
	return slices.ContainsFunc(s.ReadsOf(v).Versions, func(slot int) bool {
		under := s.Versions[slot].Under
		return under >= 0 && under == w.Target
	})
}

// sharedAnchor is the largest number of loops that a common anchor uses, -1 for
// none.
func sharedAnchor(s *expr.Exprs, x, y *state.Value) int {
	most := -1
	others := anchors(s, y)
	for _, anchor := range anchors(s, x) {
		if slices.Contains(others, anchor) {
			n, _ := anchor.Src[1].Int()
			most = max(most, int(n))
		}
	}
	return most
}

// alignLoops renames the loops of v to those of another value of its group, where
// both have them.
func alignLoops(s *expr.Exprs, first, v *state.Value) {
	with := make(map[*ir.UOp]*ir.UOp)
	target := first.StoreLoops()
	loops := slices.Clone(v.StoreLoops())
	for i := range min(len(loops), len(target)) {
		if loops[i].Src[0] != target[i].Src[0] {
			break // two that share less with each other than with the group's first
		}
		with[loops[i]] = target[i]
		loops[i] = target[i]
	}
	v.Index = s.Rename(v.StoreIndex(), with)
	v.Body = s.Substitute(v.Body, with)
	v.Loops = loops
}

// equalLoops reports loops of the same extents in the same order.
func equalLoops(v, w *state.Value) bool {
	return slices.EqualFunc(v.StoreLoops(), w.StoreLoops(), func(x, y *ir.UOp) bool { return x.Src[0] == y.Src[0] })
}
