package algebra

import (
	"slices"

	"tgc/ir"
	"tgc/schedule/expr"
	"tgc/schedule/state"
)

// forward-stores: a read of a version that was just assigned,
// LOAD(B@v+1[i]), becomes WHERE(i in the stored region, stored value,
// LOAD(B@v[i])). Its reader then needs what is stored, not the store: attention
// runs in the launch that writes the new row of its cache. The stored value
// becomes a value of its own that the store and the reader share.
//
// The remaining LOAD is in the false arm of a test for the stored region, so
// it may run before, after or beside the store. It reads a version of its own
// kind (Version.Under): no edge leads from or to the store, but the write of the
// version after it waits.
//
// It costs a test for every element of the cache and pays where the store would
// have a launch of its own, and its readers can make the value for themselves: where
// a row of what is stored folds the points of a product with weights that it is made
// of (the norm of a head), and too few rows are left to be tiles of the product
// (MinBlocks). Otherwise the product stores its own rows. H200, Qwen3 0.6B: 1361 ->
// 1460 tokens a second in exact mode, 1738 -> 1763 in int8.
//
// Where kernels start before the kernel before has ended, it also pays for a store of one
// point, if what its readers read around it fits the registers of a cluster: that was there
// before the step, and they load it while they wait (WriteKernels marks it). H200, int8,
// tokens a second, positions below 128: LLaMA 3.2 1B 2,567 -> 2,618, 32 layers of 960
// 2,727 -> 2,986; in a loop over more rows the tests cost more than the wait (LLaMA,
// position 2,048: 1,995 -> 1,834).

// ForwardStores applies the rule to every assigned version.
func ForwardStores(s *state.State) {
	s.MarkDead()
	s.IndexUses()
	for slot, n := 0, len(s.Versions); slot < n; slot++ {
		if s.Versions[slot].Previous >= 0 {
			forwardVersion(s, slot)
		}
	}
}

// forwardVersion rewrites the readers of a version.
func forwardVersion(s *state.State, slot int) {
	ver := s.Versions[slot]
	w := s.Values[ver.Writer]
	readers := forwardReaders(s.Graph, slot)
	if len(readers) == 0 {
		return
	}
	if readsBytes(s, readers) {
		s.Record(w, false, "readers wait for bytes, which they would round again")
		return
	}
	early := true // what readers read around the store may be loaded before they wait
	for _, c := range readers {
		for _, load := range s.LoadsOf(c.Body, ver.Param) {
			_, inside, ok := storedPoint(s.Exprs, w, load.Indices())
			if !ok {
				s.Record(w, false, "the stored region cannot be inverted")
				return
			}
			early = early && readsEarly(s, c, ver.Param, load, inside)
		}
	}
	if tiles, own := ownLaunch(s, w); !own && !early {
		s.Record(w, false, "stored with the product that it is made of", state.Number{Name: "tiles", Value: tiles}, state.Number{Name: "least", Value: s.Opt.Profile.MinBlocks})
		return
	}
	stored := s.NewValue(w.Body.DType, nil, nil)
	s.SetSignature(stored, w.Ranges, w.Body)
	s.Users, s.ReadMemo = append(s.Users, nil), append(s.ReadMemo, state.Reads{})
	s.LinkReads(stored)
	s.SetBody(w, s.A.Load(stored.Node, w.Ranges...))
	around := versionAround(s.Graph, slot)
	for _, c := range readers {
		with := make(map[*ir.UOp]*ir.UOp)
		for _, load := range s.LoadsOf(c.Body, ver.Param) {
			index, inside, _ := storedPoint(s.Exprs, w, load.Indices())
			value := s.A.Load(stored.Node, index...)
			if inside != nil {
				value = s.A.Where(inside, value, s.A.Load(around, load.Indices()...))
			}
			with[load] = value
		}
		s.SetBody(c, s.Substitute(c.Body, with))
		c.Reasons = append(c.Reasons, s.Pass.Name+" "+w.Label())
	}
	s.Record(w, true, "readers take the value, not the store", state.Number{Name: "readers", Value: int64(len(readers))})
}

// readsBytes reports readers of a store that rounds to bytes: they would fold the groups that the integers share a
// scale in for each element, and nothing is gained by the scales alone.
func readsBytes(s *state.State, readers []*state.Value) bool {
	return slices.ContainsFunc(readers, func(c *state.Value) bool {
		return slices.ContainsFunc(s.ReadMemo[c.ID].Versions, func(slot int) bool {
			ver := s.Versions[slot]
			return ver.Previous >= 0 && expr.IsNarrowing(s.Values[ver.Writer].Body)
		})
	})
}

// readsEarly reports a load around a store that meets one point of one coordinate, where
// what the reader may read of the buffer, from that coordinate on, is small enough for the registers
// of the blocks that share it: of a long cache perhaps the first rows alone.
func readsEarly(s *state.State, reader *state.Value, buffer, load, inside *ir.UOp) bool {
	if inside == nil || inside.Op != ir.OpCmpEq {
		return false
	}
	tested := s.Free.Of(inside)
	indices := load.Indices()
	for axis, x := range indices {
		if slices.ContainsFunc(s.Free.Of(x), func(r *ir.UOp) bool { return slices.Contains(tested, r) }) {
			elems, queries := int64(1), reader.Ranges
			for i, n := range buffer.Src[axis:] {
				elems = expr.Saturate(elems, min(s.Bounds.Of(n).Hi, s.Bounds.Of(indices[axis+i]).Hi+1))
				queries = ir.WithoutRanges(queries, s.Free.Of(indices[axis+i]))
			}
			return elems <= expr.Saturate(s.Opt.Profile.EarlyElems, sharingBlocks(&s.Opt.Profile, s.Points(queries)))
		}
	}
	return false
}

// sharingBlocks is how many blocks may share rows that so many queries read: those of a cluster,
// where each has a multiprocessor of its own.
func sharingBlocks(p *state.Profile, queries int64) int64 {
	blocks := int64(1)
	for 2*blocks <= p.Clusters && expr.Saturate(2*blocks, queries) <= p.Workers {
		blocks *= 2
	}
	return blocks
}

// ownLaunch reports a value whose rows fold points of a product with weights, so many
// that fewer than MinBlocks tiles would be left for a tile epilogue.
func ownLaunch(s *state.State, w *state.Value) (tiles int64, own bool) {
	if len(w.Ranges) == 0 {
		return 0, false
	}
	row := s.Points(w.Ranges[len(w.Ranges)-1:])
	most := make(map[*state.Value]int64) // points folded on the way to a value
	largest, points := int64(1), int64(0)
	var visit func(v *state.Value, folded int64)
	visit = func(v *state.Value, folded int64) {
		if folded <= most[v] {
			return
		}
		most[v] = folded
		if s.FactsOf(v.Body).Weights {
			largest, points = max(largest, folded), max(points, s.Points(v.Ranges))
			return
		}
		for _, u := range s.Uses(v) {
			p, _ := s.IsRead(u.Load)
			visit(p, expr.Saturate(folded, s.Points(u.Closed)))
		}
	}
	visit(w, 1)
	tiles = points / largest
	return tiles, largest > 1 && largest <= row && tiles < s.Opt.Profile.MinBlocks
}

// forwardReaders lists the values that read a version in their bodies only and
// write no version of the same buffer.
func forwardReaders(s *state.Graph, slot int) []*state.Value {
	var out []*state.Value
	for _, c := range s.Values {
		if c.Dead || !slices.Contains(s.ReadMemo[c.ID].Versions, slot) {
			continue
		}
		same := c.Target >= 0 && s.Versions[c.Target].Buffer == s.Versions[slot].Buffer
		for _, x := range c.Index {
			same = same || slices.Contains(ir.Toposort(x), s.Versions[slot].Param)
		}
		if !same {
			out = append(out, c)
		}
	}
	return out
}

// versionAround makes the version that reads outside of a stored region see: the
// one before, or the stored one itself.
func versionAround(s *state.Graph, slot int) *ir.UOp {
	before := s.Versions[s.Versions[slot].Previous]
	around := &state.Version{
		Buffer: before.Buffer, Number: before.Number, Previous: -1, Writer: before.Writer, Under: slot,
		Param: s.A.Make(ir.OpParam, before.Param.DType, ir.ParamArg{Slot: len(s.Versions), Format: before.Param.Arg.(ir.ParamArg).Format}, before.Param.Src...),
	}
	s.Versions = append(s.Versions, around)
	return around.Param
}

// storedPoint inverts a store: the point of w's ranges that writes an index of
// the buffer, and the condition that there is one (nil: always). Coordinates
// are solved one range at a time: r + rest = i, where rest may hold ranges that
// are solved already (the position of a sequence, by batch).
func storedPoint(s *expr.Exprs, w *state.Value, at []*ir.UOp) (point []*ir.UOp, inside *ir.UOp, ok bool) {
	a := s.A
	solved := make(map[*ir.UOp]*ir.UOp, len(w.Ranges))
	both := func(c *ir.UOp) {
		switch c = s.Simplify(c); {
		case c.IsInt(1):
		case inside == nil:
			inside = c
		default:
			inside = a.And(inside, c)
		}
	}
	todo := slices.Clone(w.StoreIndex())
	for left := len(todo); left > 0; {
		before := left
		for k, x := range todo {
			if x == nil {
				continue
			}
			r, rest, solvable := solveFor(s, x, w.Ranges, solved)
			if !solvable {
				continue
			}
			todo[k] = nil
			left--
			rest = s.Substitute(rest, solved)
			if r == nil {
				both(a.Eq(at[k], rest))
				continue
			}
			y := s.Simplify(a.Sub(at[k], rest))
			solved[r] = y
			both(a.Lt(a.Index(-1), y))
			both(a.Lt(y, r.Src[0]))
		}
		if left == before {
			return nil, nil, false
		}
	}
	for _, r := range w.Ranges {
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
func solveFor(s *expr.Exprs, x *ir.UOp, ranges []*ir.UOp, solved map[*ir.UOp]*ir.UOp) (r, rest *ir.UOp, ok bool) {
	for _, f := range s.Free.Of(x) {
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
	rest = s.Simplify(s.A.Sub(x, r))
	return r, rest, !s.DependsOn(rest, r)
}
