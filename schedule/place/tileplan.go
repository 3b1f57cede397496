package place

import (
	"cmp"
	"slices"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/schedule/expr"
	"tgc/schedule/state"
)

// floatTileReuse is TileReuse of sums of floats on a target with matrix instructions.
const floatTileReuse = 2

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

// newTilePlan makes the ranges of a split.
func newTilePlan(s *expr.Exprs, c *state.Value, splits []axisSplit) *tilePlan {
	plan := &tilePlan{splits: splits, with: make(map[*ir.UOp]*ir.UOp), size: 1}
	for _, r := range c.StoreLoops() {
		at := slices.IndexFunc(splits, func(x axisSplit) bool { return x.r == r })
		if at < 0 {
			plan.outer = append(plan.outer, r)
			continue
		}
		split := splits[at]
		plan.size *= split.size
		n, _ := r.Src[0].Int()
		inner := s.NewRange(s.A.Index(split.size))
		plan.inner = append(plan.inner, inner)
		value := s.A.Mul(inner, s.A.Index(split.lo))
		if n != split.size {
			outer := s.NewRange(s.A.Index(n / split.size))
			plan.outer = append(plan.outer, outer)
			weight := int64(1) // with a high inner sub-axis the low one is outside
			if split.lo == 1 {
				weight = split.size
			}
			value = s.A.Add(s.A.Mul(outer, s.A.Index(weight)), value)
		}
		plan.with[r] = s.Simplify(value)
	}
	return plan
}

// form is what C becomes.
func (plan *tilePlan) form(body *ir.UOp) state.Form {
	return state.Form{Body: body, Loops: append(slices.Clone(plan.outer), plan.inner...)}
}

// tilePlanOf finds the tiles in which c reads p, nil if there are none or they
// do not pay.
func tilePlanOf(s *state.State, c, p *state.Value) *tilePlan {
	f := s.FactsOf(p.Body)
	uses := s.UsesOf(c, p)
	for _, u := range uses {
		if s.Points(u.Closed) > s.Opt.Profile.TileCap {
			s.Record(p, false, "read inside a large reduce", state.Number{Name: "points", Value: s.Points(u.Closed)}, state.Number{Name: "cap", Value: s.Opt.Profile.TileCap})
			return nil
		}
	}
	if holdsTuple(s.Exprs, p) {
		s.Record(p, false, "tiles would repeat what a tuple shares")
		return nil
	}
	if limit := tileReuse(s, p); limit > 0 && f.Weights {
		if reuse := s.WeightReuse(p); reuse > limit {
			s.Record(p, false, "a matrix product", state.Number{Name: "reuse", Value: reuse}, state.Number{Name: "limit", Value: limit})
			return nil
		}
	}
	if n := s.Opt.Profile.MatrixTokens; n > 0 {
		if reuse := s.OperandReuse(p); reuse >= n {
			s.Record(p, false, "a matrix product", state.Number{Name: "reuse", Value: reuse}, state.Number{Name: "limit", Value: n - 1})
			return nil
		}
	}
	if s.Points(c.StoreLoops()) != s.Points(p.Ranges) {
		s.Record(p, false, "reader has other points", state.Number{Name: "points", Value: s.Points(p.Ranges)}, state.Number{Name: "reader", Value: s.Points(c.StoreLoops())})
		return nil // tiles of equal size cannot pair the points
	}
	plan := findTile(s, c, p, uses)
	if plan == nil {
		s.Record(p, false, "no tile", state.Number{Name: "cap", Value: s.Opt.Profile.TileCap})
		return nil
	}
	if plan.acrossColumns(s, c) {
		s.Record(p, false, "a block would make it for single columns", state.Number{Name: "tiles", Value: s.Points(plan.outer)}, state.Number{Name: "size", Value: plan.size})
		return nil
	}
	blocks := s.Points(plan.outer)
	if f.Weights && blocks < s.Opt.Profile.MinBlocks && plan.size*s.Work(p.Body, nil) > s.Opt.Profile.LaunchEdge {
		s.Record(p, false, "too few tiles", state.Number{Name: "tiles", Value: blocks}, state.Number{Name: "least", Value: s.Opt.Profile.MinBlocks}, state.Number{Name: "size", Value: plan.size})
		return nil
	}
	return plan
}

// threadTile is the most points of a tile that a thread of a GPU makes by itself.
const threadTile = 16

// acrossColumns reports a tile that lies across the loop along which c's elements lie side by
// side, and is more than a thread's work: each block of a GPU would have a single column, in which
// nothing is read or written beside anything else.
func (plan *tilePlan) acrossColumns(s *state.State, c *state.Value) bool {
	loops := c.StoreLoops()
	if !s.Opt.Profile.SharedStages || len(loops) < 2 || plan.size <= threadTile {
		return false
	}
	last := loops[len(loops)-1]
	return slices.Contains(plan.outer, last) && s.Points([]*ir.UOp{last}) > threadTile && readsAlong(s, c.Body, last)
}

// tileReuse is how often a weight that a tile is made of may be used. Sums of floats of three uses are
// cheaper by matrix instructions, which take no tiles, than streamed; of two, by about the launch that
// a tile saves. The queries and keys that four sequences rotate took 2.5 to 5 times as long in tiles
// (docs/bench/h200-batches.txt).
func tileReuse(s *state.State, p *state.Value) int64 {
	integers := func(u *ir.UOp) bool { return u.Op == ir.OpReduce && u.DType.IsInt() }
	if s.Opt.Profile.MatrixTokens > 0 && !analyse.Any(p.Body, integers) {
		return min(s.Opt.Profile.TileReuse, floatTileReuse)
	}
	return s.Opt.Profile.TileReuse
}

// findTile is the smallest tile that fits, remembered: a value is tried again whenever one near it
// has changed, and seldom are its readers others then.
func findTile(s *state.State, c, p *state.Value, uses []state.Use) *tilePlan {
	key := state.TileKey{Reader: c.Node, Value: p.Node, ReaderBody: c.Body, ValueBody: p.Body}
	if known, ok := s.TileMemo[key].(*triedTile); ok && slices.Equal(known.loops, c.StoreLoops()) {
		return known.plan
	}
	plan := smallestTile(s, c, p, uses)
	s.TileMemo[key] = &triedTile{loops: slices.Clone(c.StoreLoops()), plan: plan}
	return plan
}

// triedTile is what findTile found for a reader with the given loops, nil for none.
type triedTile struct {
	loops []*ir.UOp
	plan  *tilePlan
}

// smallestTile tries splits, smallest tile first.
func smallestTile(s *state.State, c, p *state.Value, uses []state.Use) *tilePlan {
	rows := recordRows(s, p)
	for _, splits := range candidateSplits(s, c) {
		plan := newTilePlan(s.Exprs, c, splits)
		if plan.size%rows == 0 && fitTile(s.Graph, plan, c, p, uses) && (rows == 1 || plan.step == 1) {
			return plan
		}
	}
	return nil
}

// fitTile checks that all reads fall on one tile per outer point, and fills in
// the tile.
func fitTile(s *state.Graph, plan *tilePlan, c, p *state.Value, uses []state.Use) bool {
	size := plan.size
	plan.axis = -1
	index := make([][]*ir.UOp, len(uses))
	for i, u := range uses {
		index[i] = s.Rename(u.Load.Indices(), plan.with)
		for j, x := range index[i] {
			moves := x != index[0][j] || s.DependsOn(x, plan.inner...) || isDynamic(s.Exprs, []*ir.UOp{x}, u.Closed)
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
		read, ok := splitRead(s.Exprs, index[i][plan.axis], plan.outer, append(slices.Clone(plan.inner), u.Closed...))
		if !ok || i > 0 && read.outer != all[0].outer {
			return false
		}
		all = append(all, read)
	}
	lo, hi, step := all[0].lo, all[0].hi, int64(0)
	for _, r := range all {
		lo, hi = min(lo, r.lo), max(hi, r.hi)
		step = expr.Gcd(expr.Gcd(step, r.step), max(r.lo-all[0].lo, all[0].lo-r.lo))
	}
	step = max(step, 1)
	points := (hi-lo)/step + 1
	if points < size || points > deadArms*size {
		return false
	}
	if points > size { // perhaps only by reads in dead arms
		live, ok := liveBounds(s, plan, c, p, all[0].outer)
		if !ok {
			return false
		}
		lo, hi, step = live.lo, live.hi, max(live.step, 1)
		if (hi-lo)/step+1 != size {
			return false
		}
	}
	plan.step = step
	plan.base = s.Simplify(s.A.Add(all[0].outer, s.A.Index(lo)))
	return tilesPartition(s.Exprs, plan, p)
}

// tilesPartition checks that the tiles hit every point of p exactly once.
func tilesPartition(s *expr.Exprs, plan *tilePlan, p *state.Value) bool {
	z := s.NewRange(s.A.Index(plan.size))
	plan.rest[plan.axis] = s.Simplify(s.A.Add(plan.base, s.A.Mul(z, s.A.Index(plan.step))))
	if !injective(s, plan.rest, append(slices.Clone(plan.outer), z)) {
		return false
	}
	for j, x := range plan.rest {
		b := s.Bounds.Of(x)
		if n, ok := p.Ranges[j].Src[0].Int(); b.Lo < 0 || ok && b.Hi >= n {
			return false
		}
	}
	return expr.Saturate(s.Points(plan.outer), plan.size) == s.Points(p.Ranges)
}

// splitRead parts an index into terms over outer ranges and an offset over
// inner and closed ones.
func splitRead(s *expr.Exprs, x *ir.UOp, outer, inner []*ir.UOp) (tileRead, bool) {
	form := s.Linear.Of(x)
	a := s.A
	base, offset := a.Index(0), a.Index(form.Const)
	step := int64(0)
	for _, t := range form.Terms {
		term := a.Mul(t.Atom, a.Index(t.Coef))
		switch {
		case !s.DependsOn(t.Atom, inner...):
			base = a.Add(base, term)
		case s.DependsOn(t.Atom, outer...) || expr.HasLoad(t.Atom):
			return tileRead{}, false
		default:
			offset = a.Add(offset, term)
			step = expr.Gcd(step, max(t.Coef, -t.Coef))
		}
	}
	b := s.Bounds.Of(s.Simplify(offset))
	if !b.Finite() {
		return tileRead{}, false
	}
	return tileRead{outer: s.Simplify(base), lo: b.Lo, hi: b.Hi, step: step}, true
}

// tileRead is one read of p under a plan: tile axis index = outer + offset.
type tileRead struct {
	outer  *ir.UOp // terms over outer ranges
	lo, hi int64   // bounds of the offset
	step   int64   // divides all offsets' differences
}

// deadArms bounds how much further than the tile reads may seem to reach: a
// rotation reads at most one tile before or after where its arm is dead. Wider
// ones are not worth the enumeration of a tile's points.
const deadArms = 3

// liveBounds finds the offsets that are really read, with the inner ranges
// enumerated: an arm of a WHERE that is dead there does not count.
func liveBounds(s *state.Graph, plan *tilePlan, c, p *state.Value, outer *ir.UOp) (tileRead, bool) {
	body := s.Substitute(c.Body, plan.with)
	var found tileRead
	first := true
	point := make([]*ir.UOp, len(plan.inner))
	var each func(k int) bool
	each = func(k int) bool {
		if k < len(plan.inner) {
			n, _ := plan.inner[k].Src[0].Int()
			for i := range n {
				point[k] = s.A.Index(i)
				if !each(k + 1) {
					return false
				}
			}
			return true
		}
		trial := *c
		trial.Body = s.AtIndex(plan.inner, body, point)
		for _, u := range s.UsesOf(&trial, p) {
			read, ok := splitRead(s.Exprs, u.Load.Indices()[plan.axis], plan.outer, u.Closed)
			if !ok || read.outer != outer {
				return false
			}
			if first {
				found, first = read, false
				continue
			}
			found.step = expr.Gcd(expr.Gcd(found.step, read.step), max(read.lo-found.lo, found.lo-read.lo))
			found.lo, found.hi = min(found.lo, read.lo), max(found.hi, read.hi)
		}
		return true
	}
	return found, each(0) && !first
}

// tileBody is C's body with the tile as a STAGE; ok is false when versions are in
// the way.
func tileBody(s *state.Graph, c, p *state.Value, plan *tilePlan) (body *ir.UOp, ok bool) {
	if c.IndexReads(p) {
		return nil, false
	}
	a := s.A
	z := s.NewRange(a.Index(plan.size))
	index := slices.Clone(plan.rest)
	index[plan.axis] = s.Simplify(a.Add(plan.base, a.Mul(z, a.Index(plan.step))))
	tile := s.CloseStage(a.Make(ir.OpStage, p.Node.DType, ir.StageArg{}, s.Instantiate(p, index), z))

	trial := *c
	trial.Body = s.Substitute(c.Body, plan.with)
	body = s.InlineAt(&trial, p, state.Replacement{Height: func(*state.Value) int { return s.Height(tile) }, With: func(_ *state.Value, load *ir.UOp) *ir.UOp {
		at := s.Simplify(a.Sub(load.Indices()[plan.axis], plan.base))
		at = s.Simplify(a.Div(at, a.Index(plan.step)))
		if b := s.Bounds.Of(at); b.Lo < 0 || b.Hi >= plan.size {
			at = s.Simplify(a.Mod(at, a.Index(plan.size)))
		}
		return a.Load(tile, at)
	}})
	return body, s.MayRead(c, p, body)
}

// applyTile gives C its new body and loops.
func applyTile(s *state.State, c, p *state.Value, plan *tilePlan, body *ir.UOp) {
	if len(plan.splits) > 0 {
		c.Index = s.Rename(c.StoreIndex(), plan.with)
		c.Loops = append(slices.Clone(plan.outer), plan.inner...)
		c.Split = true
	}
	s.SetBody(c, body)
	c.Reasons = append(c.Reasons, s.Pass.Name+" "+p.Label())
}

// axisSplit splits one range of C: the inner part is its low sub-axis (lo is 1), its
// high sub-axis, or the whole range (then there is no outer part).
type axisSplit struct {
	r    *ir.UOp
	lo   int64 // weight of the inner sub-axis in r
	size int64 // extent of the inner sub-axis
}

// candidateSplits lists the splits of C's loops worth trying by tile size: a low
// or high sub-axis or the whole of one range, then whole neighbouring ranges.
func candidateSplits(s *state.State, c *state.Value) [][]axisSplit {
	limit := s.Opt.Profile.TileCap
	var list [][]axisSplit
	var whole []axisSplit
	for _, r := range c.StoreLoops() {
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
			size = expr.Saturate(size, whole[i].size)
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
