package place

import (
	"slices"

	"tgc/ir"
	"tgc/schedule/expr"
	"tgc/schedule/state"
)

// fuse-tile-epilogues with several readers: 8-bit outputs stored with their scale.
// One reader C has every point of p, h[32g+j]/d[g]; others fold each tile to one
// point, d[g] = MAX(|h[32g+j]|; j), and C may read them. Their bodies replace C's
// reads of them, C is split, and every other reader that is still needed reads the
// same tile STAGE(h[32g+z]; z) over its own loops. A second reader of every point
// (the low digits of 16-bit outputs, next to the high ones) is split as C is. Then
// all hold one stage and are stored by one kernel (join-stores): p is computed once,
// and is never stored.

// maxTileReaders bounds the readers of a tile.
const maxTileReaders = 4

// tiledReader is a reader, with the bodies of other readers in place of its reads
// of them where it is split, its tile and its body over it.
type tiledReader struct {
	c     *state.Value
	whole *state.Value
	plan  *tilePlan
	body  *ir.UOp
}

// tileReaders is the rule for a value with several readers.
func tileReaders(s *state.State, p *state.Value, consumers []*state.Value) bool {
	for _, c := range consumers {
		if !readsAll(s.Exprs, c, p) {
			continue
		}
		list := tileAround(s, c, p, consumers)
		if list == nil {
			continue
		}
		stored, fused := make([]*state.Value, len(list)), make([]state.Form, len(list))
		for i, r := range list {
			stored[i], fused[i] = r.c, r.plan.form(r.body)
		}
		if !s.PaysShared(p, consumers, stored, fused) {
			return false
		}
		for _, r := range list {
			applyTile(s, r.c, p, r.plan, r.body)
			r.c.StoredWithTile = len(list) > 1
		}
		s.Record(p, true, "tile of several readers", state.Number{Name: "tiles", Value: s.Points(list[0].plan.outer)},
			state.Number{Name: "size", Value: list[0].plan.size}, state.Number{Name: "readers", Value: int64(len(consumers))})
		return true
	}
	s.Record(p, false, "readers share no tile", state.Number{Name: "readers", Value: int64(len(consumers))})
	return false
}

// tileAround plans the tile of reader c and those of the other readers that
// remain, nil when they are not the same.
func tileAround(s *state.State, c, p *state.Value, consumers []*state.Value) []tiledReader {
	if !mayShareTile(s, c, p, consumers) {
		return nil
	}
	first, ok := splitReader(s, c, p, consumers)
	if !ok {
		return nil
	}
	list := []tiledReader{first}
	for _, r := range consumers {
		if r == c || readOnlyBy(s.Graph, r, c) {
			continue
		}
		other := tiledReader{c: r, whole: r}
		if readsAll(s.Exprs, r, p) {
			if other, ok = splitReader(s, r, p, consumers); !ok || !folds(s.Graph, other.whole, p) || !equalTiles(s.Exprs, other.plan, first.plan) {
				return nil
			}
		} else if other.plan = sameTile(s.Graph, r, p, first.plan); other.plan == nil {
			return nil
		}
		list = append(list, other)
	}
	for i, r := range list {
		if list[i].body, ok = tileBody(s.Graph, r.whole, p, r.plan); !ok {
			return nil
		}
	}
	if len(list) > 1 && !oneLevel(s.Graph, list) {
		s.Record(p, false, "readers are not of one level")
		return nil
	}
	return list
}

// splitReader is a reader that has every point of p, with its tile.
func splitReader(s *state.State, c, p *state.Value, consumers []*state.Value) (r tiledReader, ok bool) {
	whole, ok := withReaders(s.Graph, c, consumers)
	if !ok {
		return r, false
	}
	plan := tilePlanOf(s, whole, p)
	return tiledReader{c: c, whole: whole, plan: plan}, plan != nil
}

// folds reports a reader that folds points of p: one that reads each by itself
// needs no tile.
func folds(s *state.Graph, r, p *state.Value) bool {
	return slices.ContainsFunc(s.UsesOf(r, p), func(u state.Use) bool { return len(u.Closed) > 0 })
}

// readsAll reports a reader with as many points as p.
func readsAll(s *expr.Exprs, r, p *state.Value) bool {
	return s.Points(r.StoreLoops()) == s.Points(p.Ranges)
}

// readOnlyBy reports that r vanishes once its body is in c.
func readOnlyBy(s *state.Graph, r, c *state.Value) bool {
	return r.Target < 0 && !slices.ContainsFunc(s.Users[r.ID], func(id int) bool { return id != c.ID })
}

// mayShareTile is the quick answer for most values with several readers: the
// other ones must have every point, too, or a point for each tile of at most
// TileCap points, and read no more at once.
func mayShareTile(s *state.State, c, p *state.Value, consumers []*state.Value) bool {
	limit, points := s.Opt.Profile.TileCap, s.Points(p.Ranges)
	for _, r := range consumers {
		for _, u := range s.UsesOf(r, p) {
			if s.Points(u.Closed) > limit {
				return false
			}
		}
		if r == c || readOnlyBy(s.Graph, r, c) || readsAll(s.Exprs, r, p) {
			continue
		}
		if tiles := s.Points(r.StoreLoops()); tiles >= points || expr.Saturate(tiles, limit) < points {
			return false
		}
	}
	return true
}

// withReaders is c with the bodies of the other readers in place of its reads
// of them.
func withReaders(s *state.Graph, c *state.Value, consumers []*state.Value) (*state.Value, bool) {
	trial := *c
	for range consumers { // one may read another
		for _, r := range consumers {
			if r == c || len(s.UsesOf(&trial, r)) == 0 {
				continue
			}
			if r.Pinned || r.Target >= 0 || r.Split || trial.IndexReads(r) {
				return nil, false
			}
			body := s.InlineAt(&trial, r, s.AsBody(r))
			if !s.MayRead(c, r, body) {
				return nil, false
			}
			trial.Body = body
		}
	}
	return &trial, true
}

// sameTile finds the tile of a reader whose loops are the outer loops of a plan,
// by position, and which reads the same points of p; nil for none.
func sameTile(s *state.Graph, r, p *state.Value, like *tilePlan) *tilePlan {
	if len(r.StoreLoops()) != len(like.outer) {
		return nil
	}
	plan := newTilePlan(s.Exprs, r, nil)
	plan.size = like.size
	if !fitTile(s, plan, r, p, s.UsesOf(r, p)) || !equalTiles(s.Exprs, plan, like) {
		return nil
	}
	return plan
}

// equalTiles reports that two plans read the same points of p at equal outer
// points, by position.
func equalTiles(s *expr.Exprs, plan, like *tilePlan) bool {
	if len(plan.outer) != len(like.outer) || plan.size != like.size || plan.step != like.step || plan.axis != like.axis {
		return false
	}
	with := make(map[*ir.UOp]*ir.UOp, len(like.outer))
	for i, x := range like.outer {
		if x.Src[0] != plan.outer[i].Src[0] {
			return false
		}
		with[x] = plan.outer[i]
	}
	if s.Simplify(s.Substitute(like.base, with)) != plan.base {
		return false
	}
	for j, x := range like.rest {
		if j != like.axis && s.Simplify(s.Substitute(x, with)) != plan.rest[j] {
			return false
		}
	}
	return true
}

// oneLevel reports that all readers wait for the same kernels, so that they can
// be stores of one: they read the same values and versions, and what they
// overwrite has no other reader.
func oneLevel(s *state.Graph, list []tiledReader) bool {
	var first state.Reads
	for i, r := range list {
		trial := state.Value{Body: r.body, Index: r.c.Index}
		found := s.ReadsOf(&trial)
		found.Versions = slices.DeleteFunc(found.Versions, func(slot int) bool { return s.Versions[slot].Writer < 0 })
		if i == 0 {
			first = found
		}
		if !slices.Equal(found.Values, first.Values) || !slices.Equal(found.Versions, first.Versions) {
			return false
		}
		if r.c.Target < 0 {
			continue
		}
		previous := s.Versions[r.c.Target].Previous
		for _, v := range s.Values {
			if !v.Dead && v != r.c && slices.Contains(s.ReadMemo[v.ID].Versions, previous) {
				return false
			}
		}
	}
	return true
}
