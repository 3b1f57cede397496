package schedule

import (
	"slices"

	"tgc/ir"
)

// R0f, read forwarding: a read of a version that was just assigned,
// LOAD(B@v+1[i]), becomes WHERE(i in the stored region, stored value,
// LOAD(B@v[i])). Its reader then needs what is stored, not the store: attention
// runs in the launch that writes the new row of its cache. The stored value
// becomes a value of its own that the store and the reader share.
//
// The remaining LOAD stands in the false arm of a test for the stored region, so
// it may run before, after or beside the store. It reads a version of its own
// kind (version.under): no edge leads from or to the store, but the write of the
// version after it waits.
//
// It costs a test for every element of the cache and pays where the store would
// have a launch of its own, and its readers can make the value for themselves: where
// a row of what is stored folds the points of a product with weights that it is made
// of (the norm of a head), and too few rows are left to be tiles of the product
// (MinBlocks). Otherwise the product stores its own rows. H200, Qwen3 0.6B: 1361 ->
// 1460 tokens a second in exact mode, 1738 -> 1763 in int8.

// forwardReads applies R0f to every assigned version.
func (s *scheduler) forwardReads() {
	s.markDead()
	s.indexUses()
	for slot, n := 0, len(s.versions); slot < n; slot++ {
		if s.versions[slot].previous >= 0 {
			s.forwardVersion(slot)
		}
	}
}

// forwardVersion rewrites the readers of a version.
func (s *scheduler) forwardVersion(slot int) {
	ver := s.versions[slot]
	w := s.values[ver.writer]
	readers := s.forwardReaders(slot)
	if w.dead || len(readers) == 0 {
		return
	}
	if tiles, own := s.ownLaunch(w); !own {
		s.record(Forward, w, false, "stored with the product that it is made of", Number{"tiles", tiles}, Number{"least", s.opt.Profile.MinBlocks})
		return
	}
	for _, c := range readers {
		for _, load := range s.loadsOf(c.body, ver.param) {
			if _, _, ok := s.storedPoint(w, load.Indices()); !ok {
				s.record(Forward, w, false, "the stored region cannot be inverted")
				return
			}
		}
	}
	stored := s.newValue(w.body.DType, nil, nil)
	s.setSignature(stored, w.ranges, w.body)
	s.users, s.readMemo = append(s.users, nil), append(s.readMemo, reads{})
	s.linkReads(stored)
	s.setBody(w, s.a.Load(stored.node, w.ranges...))
	around := s.versionAround(slot)
	for _, c := range readers {
		with := make(map[*ir.UOp]*ir.UOp)
		for _, load := range s.loadsOf(c.body, ver.param) {
			index, inside, _ := s.storedPoint(w, load.Indices())
			value := s.a.Load(stored.node, index...)
			if inside != nil {
				value = s.a.Where(inside, value, s.a.Load(around, load.Indices()...))
			}
			with[load] = value
		}
		s.setBody(c, s.substitute(c.body, with))
		c.reasons = append(c.reasons, Forward.String()+" "+w.label())
	}
	s.record(Forward, w, true, "readers take the value, not the store", Number{"readers", int64(len(readers))})
}

// ownLaunch reports a value whose rows fold points of a product with weights, so many
// that fewer than MinBlocks tiles would be left for a tile epilogue (R6).
func (s *scheduler) ownLaunch(w *value) (tiles int64, own bool) {
	if len(w.ranges) == 0 {
		return 0, false
	}
	row := s.points(w.ranges[len(w.ranges)-1:])
	most := make(map[*value]int64) // points folded on the way to a value
	largest, points := int64(1), int64(0)
	var visit func(v *value, folded int64)
	visit = func(v *value, folded int64) {
		if folded <= most[v] {
			return
		}
		most[v] = folded
		if s.factsOf(v.body).weights {
			largest, points = max(largest, folded), max(points, s.points(v.ranges))
			return
		}
		for _, u := range s.uses(v) {
			p, _ := s.isRead(u.load)
			visit(p, saturate(folded, s.points(u.closed)))
		}
	}
	visit(w, 1)
	tiles = points / largest
	return tiles, largest > 1 && largest <= row && tiles < s.opt.Profile.MinBlocks
}

// forwardReaders lists the values that read a version in their bodies only and
// write no version of the same buffer.
func (s *scheduler) forwardReaders(slot int) []*value {
	var out []*value
	for _, c := range s.values {
		if c.dead || !slices.Contains(s.readMemo[c.id].versions, slot) {
			continue
		}
		same := c.target >= 0 && s.versions[c.target].buffer == s.versions[slot].buffer
		for _, x := range c.index {
			same = same || slices.Contains(ir.Toposort(x), s.versions[slot].param)
		}
		if !same {
			out = append(out, c)
		}
	}
	return out
}

// loadsOf lists the reads of a param in an expression.
func (s *scheduler) loadsOf(body, param *ir.UOp) []*ir.UOp {
	var out []*ir.UOp
	for _, u := range ir.Toposort(body) {
		if u.Op == ir.OpLoad && u.Src[0] == param {
			out = append(out, u)
		}
	}
	return out
}

// versionAround makes the version that reads outside of a stored region see: the
// one before, or the stored one itself.
func (s *scheduler) versionAround(slot int) *ir.UOp {
	before := s.versions[s.versions[slot].previous]
	around := &version{
		buffer: before.buffer, number: before.number, previous: -1, writer: before.writer, under: slot,
		param: s.a.Make(ir.OpParam, before.param.DType, ir.ParamArg{Slot: len(s.versions), Format: before.param.Arg.(ir.ParamArg).Format}, before.param.Src...),
	}
	s.versions = append(s.versions, around)
	return around.param
}

// storedPoint inverts a store: the point of w's ranges that writes an index of
// the buffer, and the condition that there is one (nil: always). Coordinates
// are solved one range at a time: r + rest = i, where rest may hold ranges that
// are solved already (the position of a sequence, by batch).
func (s *scheduler) storedPoint(w *value, at []*ir.UOp) (point []*ir.UOp, inside *ir.UOp, ok bool) {
	a := s.a
	solved := make(map[*ir.UOp]*ir.UOp, len(w.ranges))
	both := func(c *ir.UOp) {
		switch c = s.simplify(c); {
		case c.IsInt(1):
		case inside == nil:
			inside = c
		default:
			inside = a.And(inside, c)
		}
	}
	todo := slices.Clone(w.storeIndex())
	for left := len(todo); left > 0; {
		before := left
		for k, x := range todo {
			if x == nil {
				continue
			}
			r, rest, solvable := s.solveFor(x, w.ranges, solved)
			if !solvable {
				continue
			}
			todo[k] = nil
			left--
			rest = s.substitute(rest, solved)
			if r == nil {
				both(a.Eq(at[k], rest))
				continue
			}
			y := s.simplify(a.Sub(at[k], rest))
			solved[r] = y
			both(a.Lt(a.Index(-1), y))
			both(a.Lt(y, r.Src[0]))
		}
		if left == before {
			return nil, nil, false
		}
	}
	for _, r := range w.ranges {
		y, found := solved[r]
		if !found {
			return nil, nil, false
		}
		point = append(point, y)
	}
	return point, inside, true
}

// solveFor views a coordinate as r + rest, where r is the one range that is not
// solved yet (nil: there is none) and rest does not depend on it.
func (s *scheduler) solveFor(x *ir.UOp, ranges []*ir.UOp, solved map[*ir.UOp]*ir.UOp) (r, rest *ir.UOp, ok bool) {
	for _, f := range s.free.of(x) {
		if solved[f] != nil || !slices.Contains(ranges, f) {
			continue
		}
		if r != nil {
			return nil, nil, false
		}
		r = f
	}
	if r == nil {
		return nil, x, true
	}
	rest = s.simplify(s.a.Sub(x, r))
	return r, rest, !s.dependsOn(rest, r)
}
