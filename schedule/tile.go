package schedule

import (
	"cmp"
	"slices"

	"tgc/ir"
)

// R6, tile epilogue: p is a reduce (a projection, say) that one consumer C
// reads in small tiles: rotary pairs, a head to be normalised. C's ranges are
// split into outer ones and inner digits so that, for fixed outer ranges, all
// reads of p fall on one tile A(outer) + step*z, z in 0..size-1, that no other
// outer point reads. Then C computes the tile itself: p's points are computed
// once, and never stored.
//
// The split changes C's loops, not its signature: readers of C keep their
// indices, and C must not be inlined any more.

// axisSplit takes one range of C apart: inner is its low digit (lo 1), its high
// digit, or the whole range (outer nil).
type axisSplit struct {
	r    *ir.UOp
	lo   int64 // weight of the inner digit in r
	size int64 // values of the inner digit
}

// tilePlan is a split of C under trial, and the tile it gives.
type tilePlan struct {
	splits []axisSplit
	with   map[*ir.UOp]*ir.UOp // range of C -> expression of new ranges
	outer  []*ir.UOp
	inner  []*ir.UOp

	axis int       // of p along which the tile lies
	base *ir.UOp   // index of the tile's first point, over outer
	step int64     // between points of the tile
	size int64     // points of the tile
	rest []*ir.UOp // index of p on the other axes, over outer
}

// tileEpilogue is R6.
func (s *scheduler) tileEpilogue(p *value) bool {
	if p.beside {
		return false
	}
	consumers := s.consumers(p)
	f := s.factsOf(p.body)
	if !f.reduce || len(consumers) > maxTileReaders || slices.ContainsFunc(consumers, func(c *value) bool { return c.split }) {
		return false
	}
	if s.goesIntoPrologue(p, consumers) {
		s.record(TileEpilogue, p, false, "a prologue takes it with its readers")
		return false
	}
	if len(consumers) > 1 {
		return s.tileReaders(p, consumers)
	}
	c := consumers[0]
	plan := s.tilePlanOf(c, p)
	if plan == nil {
		return false
	}
	body, ok := s.tileBody(c, p, plan)
	if !ok {
		return false
	}
	s.applyTile(c, p, plan, body)
	s.record(TileEpilogue, p, true, "tile", Number{"tiles", s.points(plan.outer)}, Number{"size", plan.size})
	return true
}

// readByWeights reports that a reader of v is a product with weights.
func (s *scheduler) readByWeights(v *value) bool {
	return slices.ContainsFunc(s.users[v.id], func(id int) bool { return s.factsOf(s.values[id].body).weights })
}

// goesIntoPrologue reports a light value whose readers are light too and are
// read by products with weights: R6p stages all of them in front of those loops,
// which costs no launch. A normalised row and its quantised form, say.
func (s *scheduler) goesIntoPrologue(p *value, consumers []*value) bool {
	if !s.opt.Rules.Has(StagePrologue) {
		return false
	}
	work := s.work(p.body, p.ranges)
	if light, _, _ := s.isLight(p, p.ranges); !light {
		return false
	}
	for _, c := range consumers {
		light, _, own := s.isLight(c, c.ranges)
		if work += own; !light || !s.readByWeights(c) || work > s.stageWork(s.points(p.ranges)) {
			return false
		}
	}
	for _, u := range s.placedUses(p) {
		if s.repeatedByBlocks(p, u) {
			return false
		}
	}
	return true
}

// tilePlanOf finds the tiles in which c reads p, nil if there are none or they
// do not pay.
func (s *scheduler) tilePlanOf(c, p *value) *tilePlan {
	f := s.factsOf(p.body)
	uses := s.usesOf(c, p)
	for _, u := range uses {
		if s.points(u.closed) > s.opt.Profile.TileCap {
			s.record(TileEpilogue, p, false, "read inside a large reduce", Number{"points", s.points(u.closed)}, Number{"cap", s.opt.Profile.TileCap})
			return nil
		}
	}
	if s.holdsTuple(p) {
		s.record(TileEpilogue, p, false, "tiles would repeat what a tuple shares")
		return nil
	}
	if limit := s.opt.Profile.TileReuse; limit > 0 && f.weights {
		if reuse := s.weightReuse(p); reuse > limit {
			s.record(TileEpilogue, p, false, "a matrix product", Number{"reuse", reuse}, Number{"limit", limit})
			return nil
		}
	}
	if s.points(c.storeLoops()) != s.points(p.ranges) {
		s.record(TileEpilogue, p, false, "reader has other points", Number{"points", s.points(p.ranges)}, Number{"reader", s.points(c.storeLoops())})
		return nil // tiles of equal size cannot pair the points
	}
	plan := s.findTile(c, p, uses)
	if plan == nil {
		s.record(TileEpilogue, p, false, "no tile", Number{"cap", s.opt.Profile.TileCap})
		return nil
	}
	blocks := s.points(plan.outer)
	if f.weights && blocks < s.opt.Profile.MinBlocks {
		s.record(TileEpilogue, p, false, "too few tiles", Number{"tiles", blocks}, Number{"least", s.opt.Profile.MinBlocks}, Number{"size", plan.size})
		return nil
	}
	return plan
}

// weightReuse is how many points of p use the same packed data: those of the
// ranges that no weight's index holds.
func (s *scheduler) weightReuse(p *value) int64 {
	unused := p.ranges
	for _, u := range ir.Toposort(p.body) {
		weight := u.Op == ir.OpField
		if u.Op == ir.OpLoad && u.Src[0].Op == ir.OpParam {
			ver := s.versions[u.Src[0].Arg.(ir.ParamArg).Slot]
			weight = !s.mutable[ver.buffer] && s.isWeight(ver)
		}
		if weight {
			unused = without(unused, s.free.of(u))
		}
	}
	return s.points(unused)
}

// findTile tries splits, smallest tile first.
func (s *scheduler) findTile(c, p *value, uses []use) *tilePlan {
	for _, splits := range s.candidateSplits(c) {
		plan := s.newTilePlan(c, splits)
		if s.fitTile(plan, c, p, uses) {
			return plan
		}
	}
	return nil
}

// candidateSplits lists the splits of C's loops worth trying by tile size: a low
// or high digit or the whole of one range, then whole neighbouring ranges.
func (s *scheduler) candidateSplits(c *value) [][]axisSplit {
	limit := s.opt.Profile.TileCap
	var list [][]axisSplit
	var whole []axisSplit
	for _, r := range c.storeLoops() {
		n, ok := r.Src[0].Int()
		if !ok {
			whole = nil
			continue
		}
		for m := int64(2); m < n; m++ {
			if n%m != 0 {
				continue
			}
			list = append(list, []axisSplit{{r, 1, m}}, []axisSplit{{r, n / m, m}})
		}
		whole = append(whole, axisSplit{r, 1, n})
		size := int64(1)
		for i := len(whole) - 1; i >= 0; i-- {
			size = saturate(size, whole[i].size)
			if size <= limit {
				list = append(list, slices.Clone(whole[i:]))
			}
		}
	}
	size := func(splits []axisSplit) int64 {
		n := int64(1)
		for _, x := range splits {
			n *= x.size
		}
		return n
	}
	list = slices.DeleteFunc(list, func(x []axisSplit) bool { return size(x) > limit })
	slices.SortStableFunc(list, func(x, y []axisSplit) int { return cmp.Compare(size(x), size(y)) })
	return list
}

// newTilePlan makes the ranges of a split.
func (s *scheduler) newTilePlan(c *value, splits []axisSplit) *tilePlan {
	plan := &tilePlan{splits: splits, with: make(map[*ir.UOp]*ir.UOp), size: 1}
	for _, r := range c.storeLoops() {
		at := slices.IndexFunc(splits, func(x axisSplit) bool { return x.r == r })
		if at < 0 {
			plan.outer = append(plan.outer, r)
			continue
		}
		split := splits[at]
		plan.size *= split.size
		n, _ := r.Src[0].Int()
		inner := s.newRange(s.a.Index(split.size))
		plan.inner = append(plan.inner, inner)
		value := s.a.Mul(inner, s.a.Index(split.lo))
		if n != split.size {
			outer := s.newRange(s.a.Index(n / split.size))
			plan.outer = append(plan.outer, outer)
			weight := int64(1) // a high inner digit leaves the low one outside
			if split.lo == 1 {
				weight = split.size
			}
			value = s.a.Add(s.a.Mul(outer, s.a.Index(weight)), value)
		}
		plan.with[r] = s.simplify(value)
	}
	return plan
}

// tileRead is one read of p under a plan: tile axis index = outer + offset.
type tileRead struct {
	outer  *ir.UOp // terms over outer ranges
	lo, hi int64   // bounds of the offset
	step   int64   // divides all offsets' differences
}

// deadArms bounds how much further than the tile reads may seem to reach: a
// rotation reads at most one tile before or behind where its arm is dead. Wider
// ones are not worth the enumeration of a tile's points.
const deadArms = 3

// fitTile checks that all reads fall on one tile per outer point, and fills in
// the tile.
func (s *scheduler) fitTile(plan *tilePlan, c, p *value, uses []use) bool {
	size := plan.size
	plan.axis = -1
	index := make([][]*ir.UOp, len(uses))
	for i, u := range uses {
		index[i] = s.rename(u.load.Indices(), plan.with)
		for j, x := range index[i] {
			moves := x != index[0][j] || s.dependsOn(x, plan.inner...) || s.isDynamic([]*ir.UOp{x}, u.closed)
			if !moves {
				continue
			}
			if plan.axis >= 0 && plan.axis != j {
				return false
			}
			plan.axis = j
		}
	}
	if plan.axis < 0 {
		return false
	}
	plan.rest = slices.Clone(index[0])
	var all []tileRead
	for i, u := range uses {
		read, ok := s.splitRead(index[i][plan.axis], plan.outer, append(slices.Clone(plan.inner), u.closed...))
		if !ok || i > 0 && read.outer != all[0].outer {
			return false
		}
		all = append(all, read)
	}
	lo, hi, step := all[0].lo, all[0].hi, int64(0)
	for _, r := range all {
		lo, hi = min(lo, r.lo), max(hi, r.hi)
		step = gcd(gcd(step, r.step), max(r.lo-all[0].lo, all[0].lo-r.lo))
	}
	step = max(step, 1)
	points := (hi-lo)/step + 1
	if points < size || points > deadArms*size {
		return false
	}
	if points > size { // perhaps only by reads in dead arms
		live, ok := s.liveBounds(plan, c, p, all[0].outer)
		if !ok {
			return false
		}
		lo, hi, step = live.lo, live.hi, max(live.step, 1)
		if (hi-lo)/step+1 != size {
			return false
		}
	}
	plan.step = step
	plan.base = s.simplify(s.a.Add(all[0].outer, s.a.Index(lo)))
	return s.tilesPartition(plan, p)
}

// tilesPartition checks that the tiles hit every point of p exactly once.
func (s *scheduler) tilesPartition(plan *tilePlan, p *value) bool {
	z := s.newRange(s.a.Index(plan.size))
	plan.rest[plan.axis] = s.simplify(s.a.Add(plan.base, s.a.Mul(z, s.a.Index(plan.step))))
	if !s.injective(plan.rest, append(slices.Clone(plan.outer), z)) {
		return false
	}
	for j, x := range plan.rest {
		b := s.bounds.Of(x)
		if n, ok := p.ranges[j].Src[0].Int(); b.Lo < 0 || ok && b.Hi >= n {
			return false
		}
	}
	return saturate(s.points(plan.outer), plan.size) == s.points(p.ranges)
}

// splitRead parts an index into terms over outer ranges and an offset over
// inner and closed ones.
func (s *scheduler) splitRead(x *ir.UOp, outer, inner []*ir.UOp) (tileRead, bool) {
	form := s.linear.Of(x)
	a := s.a
	base, offset := a.Index(0), a.Index(form.Const)
	step := int64(0)
	for _, t := range form.Terms {
		term := a.Mul(t.Atom, a.Index(t.Coef))
		switch {
		case !s.dependsOn(t.Atom, inner...):
			base = a.Add(base, term)
		case s.dependsOn(t.Atom, outer...) || hasLoad(t.Atom):
			return tileRead{}, false
		default:
			offset = a.Add(offset, term)
			step = gcd(step, max(t.Coef, -t.Coef))
		}
	}
	b := s.bounds.Of(s.simplify(offset))
	if !b.Finite() {
		return tileRead{}, false
	}
	return tileRead{outer: s.simplify(base), lo: b.Lo, hi: b.Hi, step: step}, true
}

// liveBounds finds the offsets that are really read, with the inner ranges
// enumerated: an arm of a WHERE that is dead there does not count.
func (s *scheduler) liveBounds(plan *tilePlan, c, p *value, outer *ir.UOp) (tileRead, bool) {
	body := s.substitute(c.body, plan.with)
	var found tileRead
	first := true
	point := make([]*ir.UOp, len(plan.inner))
	var each func(k int) bool
	each = func(k int) bool {
		if k < len(plan.inner) {
			n, _ := plan.inner[k].Src[0].Int()
			for i := range n {
				point[k] = s.a.Index(i)
				if !each(k + 1) {
					return false
				}
			}
			return true
		}
		trial := *c
		trial.body = s.atIndex(plan.inner, body, point)
		for _, u := range s.usesOf(&trial, p) {
			read, ok := s.splitRead(u.load.Indices()[plan.axis], plan.outer, u.closed)
			if !ok || read.outer != outer {
				return false
			}
			if first {
				found, first = read, false
				continue
			}
			found.step = gcd(gcd(found.step, read.step), max(read.lo-found.lo, found.lo-read.lo))
			found.lo, found.hi = min(found.lo, read.lo), max(found.hi, read.hi)
		}
		return true
	}
	return found, each(0) && !first
}

// tileBody is C's body with the tile as a STAGE; ok is false when versions are in
// the way.
func (s *scheduler) tileBody(c, p *value, plan *tilePlan) (body *ir.UOp, ok bool) {
	if c.indexReads(p) {
		return nil, false
	}
	a := s.a
	z := s.newRange(a.Index(plan.size))
	index := slices.Clone(plan.rest)
	index[plan.axis] = s.simplify(a.Add(plan.base, a.Mul(z, a.Index(plan.step))))
	tile := s.closeStage(a.Make(ir.OpStage, p.node.DType, ir.StageArg{}, s.instantiate(p, index), z))

	trial := *c
	trial.body = s.substitute(c.body, plan.with)
	body = s.inlineAt(&trial, p, replacement{height: func(*value) int { return s.height(tile) }, with: func(_ *value, load *ir.UOp) *ir.UOp {
		at := s.simplify(a.Sub(load.Indices()[plan.axis], plan.base))
		at = s.simplify(a.Div(at, a.Index(plan.step)))
		if b := s.bounds.Of(at); b.Lo < 0 || b.Hi >= plan.size {
			at = s.simplify(a.Mod(at, a.Index(plan.size)))
		}
		return a.Load(tile, at)
	}})
	return body, s.mayRead(c, p, body)
}

// applyTile gives C its new body and loops.
func (s *scheduler) applyTile(c, p *value, plan *tilePlan, body *ir.UOp) {
	if len(plan.splits) > 0 {
		c.index = s.rename(c.storeIndex(), plan.with)
		c.loops = append(slices.Clone(plan.outer), plan.inner...)
		c.split = true
	}
	s.setBody(c, body)
	c.reasons = append(c.reasons, TileEpilogue.String()+" "+p.label())
}
