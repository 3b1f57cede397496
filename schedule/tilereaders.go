package schedule

import (
	"slices"

	"tgc/ir"
)

// R6 with several readers: 8-bit outputs stored with their scale. One reader C
// has every point of p, h[32g+j]/d[g]; others fold the same tiles to a point
// each, d[g] = MAX(|h[32g+j]|; j), and C may read them. Their bodies go into C
// for its reads of them, C is split, and every other reader that is still needed
// reads the same tile STAGE(h[32g+z]; z) over its own loops. A second reader of
// every point (the low digits of 16-bit outputs beside the high ones) is split as
// C is. Then all hold one stage and are stores of one kernel (join): p is computed
// once, and is never stored.

// maxTileReaders bounds the readers of a tile.
const maxTileReaders = 4

// tiledReader is a reader, with the bodies of other readers in place of its reads
// of them where it is split, its tile and its body over it.
type tiledReader struct {
	c     *value
	whole *value
	plan  *tilePlan
	body  *ir.UOp
}

// tileReaders is R6 for a value with several readers.
func (s *scheduler) tileReaders(p *value, consumers []*value) bool {
	for _, c := range consumers {
		if !s.readsAll(c, p) {
			continue
		}
		list := s.tileAround(c, p, consumers)
		if list == nil {
			continue
		}
		for _, r := range list {
			s.applyTile(r.c, p, r.plan, r.body)
			r.c.beside = len(list) > 1
		}
		s.record(TileEpilogue, p, true, "tile of several readers", Number{"tiles", s.points(list[0].plan.outer)},
			Number{"size", list[0].plan.size}, Number{"readers", int64(len(consumers))})
		return true
	}
	s.record(TileEpilogue, p, false, "readers share no tile", Number{"readers", int64(len(consumers))})
	return false
}

// tileAround plans the tile of reader c and those of the other readers that
// remain, nil when they are not the same.
func (s *scheduler) tileAround(c, p *value, consumers []*value) []tiledReader {
	if !s.mayShareTile(c, p, consumers) {
		return nil
	}
	first, ok := s.splitReader(c, p, consumers)
	if !ok {
		return nil
	}
	list := []tiledReader{first}
	for _, r := range consumers {
		if r == c || s.readOnlyBy(r, c) {
			continue
		}
		other := tiledReader{c: r, whole: r}
		if s.readsAll(r, p) {
			if other, ok = s.splitReader(r, p, consumers); !ok || !s.folds(other.whole, p) || !s.equalTiles(other.plan, first.plan) {
				return nil
			}
		} else if other.plan = s.sameTile(r, p, first.plan); other.plan == nil {
			return nil
		}
		list = append(list, other)
	}
	for i, r := range list {
		if list[i].body, ok = s.tileBody(r.whole, p, r.plan); !ok {
			return nil
		}
	}
	if len(list) > 1 && !s.oneLevel(list) {
		s.record(TileEpilogue, p, false, "readers are not of one level")
		return nil
	}
	return list
}

// splitReader is a reader that has every point of p, with its tile.
func (s *scheduler) splitReader(c, p *value, consumers []*value) (r tiledReader, ok bool) {
	whole, ok := s.withReaders(c, consumers)
	if !ok {
		return r, false
	}
	plan := s.tilePlanOf(whole, p)
	return tiledReader{c: c, whole: whole, plan: plan}, plan != nil
}

// folds reports a reader that folds points of p: one that reads each by itself
// needs no tile.
func (s *scheduler) folds(r, p *value) bool {
	return slices.ContainsFunc(s.usesOf(r, p), func(u use) bool { return len(u.closed) > 0 })
}

// readsAll reports a reader with as many points as p.
func (s *scheduler) readsAll(r, p *value) bool {
	return s.points(r.storeLoops()) == s.points(p.ranges)
}

// readOnlyBy reports that r vanishes once its body stands in c.
func (s *scheduler) readOnlyBy(r, c *value) bool {
	return r.target < 0 && !slices.ContainsFunc(s.users[r.id], func(id int) bool { return id != c.id })
}

// mayShareTile is the quick answer for most values with several readers: the
// other ones must have every point, too, or a point for each tile of at most
// TileCap points, and read no more at once.
func (s *scheduler) mayShareTile(c, p *value, consumers []*value) bool {
	limit, points := s.opt.Profile.TileCap, s.points(p.ranges)
	for _, r := range consumers {
		for _, u := range s.usesOf(r, p) {
			if s.points(u.closed) > limit {
				return false
			}
		}
		if r == c || s.readOnlyBy(r, c) || s.readsAll(r, p) {
			continue
		}
		if tiles := s.points(r.storeLoops()); tiles >= points || saturate(tiles, limit) < points {
			return false
		}
	}
	return true
}

// withReaders is c with the bodies of the other readers in place of its reads
// of them.
func (s *scheduler) withReaders(c *value, consumers []*value) (*value, bool) {
	trial := *c
	for range consumers { // one may read another
		for _, r := range consumers {
			if r == c || len(s.usesOf(&trial, r)) == 0 {
				continue
			}
			if r.pinned || r.target >= 0 || r.split || trial.indexReads(r) {
				return nil, false
			}
			body := s.inlineAt(&trial, r, s.asBody(r))
			if !s.mayRead(c, r, body) {
				return nil, false
			}
			trial.body = body
		}
	}
	return &trial, true
}

// sameTile finds the tile of a reader whose loops are the outer loops of a plan,
// by position, and which reads the same points of p; nil for none.
func (s *scheduler) sameTile(r, p *value, like *tilePlan) *tilePlan {
	if len(r.storeLoops()) != len(like.outer) {
		return nil
	}
	plan := s.newTilePlan(r, nil)
	plan.size = like.size
	if !s.fitTile(plan, r, p, s.usesOf(r, p)) || !s.equalTiles(plan, like) {
		return nil
	}
	return plan
}

// equalTiles reports that two plans read the same points of p at equal outer
// points, by position.
func (s *scheduler) equalTiles(plan, like *tilePlan) bool {
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
	if s.simplify(s.substitute(like.base, with)) != plan.base {
		return false
	}
	for j, x := range like.rest {
		if j != like.axis && s.simplify(s.substitute(x, with)) != plan.rest[j] {
			return false
		}
	}
	return true
}

// oneLevel reports that all readers wait for the same kernels, so that they can
// be stores of one: they read the same values and versions, and what they
// overwrite has no other reader.
func (s *scheduler) oneLevel(list []tiledReader) bool {
	var first reads
	for i, r := range list {
		trial := value{body: r.body, index: r.c.index}
		found := s.readsOf(&trial)
		found.versions = slices.DeleteFunc(found.versions, func(slot int) bool { return s.versions[slot].writer < 0 })
		if i == 0 {
			first = found
		}
		if !slices.Equal(found.values, first.values) || !slices.Equal(found.versions, first.versions) {
			return false
		}
		if r.c.target < 0 {
			continue
		}
		previous := s.versions[r.c.target].previous
		for _, v := range s.values {
			if !v.dead && v != r.c && slices.Contains(s.readMemo[v.id].versions, previous) {
				return false
			}
		}
	}
	return true
}
