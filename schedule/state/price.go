package state

import (
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/schedule/expr"
)

// The price of a value is the time of its kernel, in scalar operations of one worker:
// every operation as often as the kernel's loops run it, its loads and stores, and the
// launch.
//
// An expression runs in the innermost loop that it depends on, and as often as all
// loops around that one have points: what is inside a reduce runs for every point of
// the reduces around it, whether it depends on them or not. Work units take points of
// the store's loops up to the last one that a reduce or stage depends on; loops behind
// it are inside a unit. What depends on some loops of the units only is made again for
// the others, and what depends on none is made by every worker once, before its units.

// registerTile is how often a product uses what it loads: matrix products are
// computed in tiles of so many rows and columns.
const registerTile = 8

// columnTile is for how many columns a unit makes what all columns of a row need.
const columnTile = 64

// loadOps and storeOps are the costs of loading and storing an element; one of narrowBytes or fewer that no kernel
// has just computed costs narrowLoadOps to load: neighbours are half as many bytes of memory or fewer.
const (
	loadOps       = 2
	storeOps      = 2
	narrowLoadOps = 1
	narrowBytes   = 2
)

// farLoadOps is the cost of loading an element that every block of a GPU loads for itself, from
// the second level of the cache: 4 bytes at some 5.5 TB/s, against 33 multiply-adds of an H200
// in a picosecond.
const farLoadOps = 24

// Price is the price of the kernel that stores body over loops. What a fusion gave is
// priced again as an operand of every later one, so prices are remembered.
func (s *State) Price(body *ir.UOp, loops []*ir.UOp) int64 {
	key := formKey{body, s.A.Make(ir.OpSink, ir.Void, nil, loops...)}
	price, ok := s.priceMemo[key]
	if !ok {
		price = s.price(body, loops)
		s.priceMemo[key] = price
	}
	return price
}

// PriceUntiled is Price where what tuples fold has no tiles: on a GPU a block makes a row of a
// softmax by itself, and loads for itself what the row weighs.
func (s *State) PriceUntiled(body *ir.UOp, loops []*ir.UOp) int64 {
	if !s.Opt.Profile.SharedStages {
		return s.Price(body, loops)
	}
	return s.priceWith(&pricer{untiled: true}, body, loops)
}

func (s *State) price(body *ir.UOp, loops []*ir.UOp) int64 {
	return s.priceWith(&pricer{}, body, loops)
}

func (s *State) priceWith(p *pricer, body *ir.UOp, loops []*ir.UOp) int64 {
	p.State, p.loops, p.roots, p.inner = s, loops, make(map[rootKey]*level), make(map[levelKey]*level)
	p.units, p.tuples, p.loads = p.unitLoops(body), p.stagedLoops(body), loadsOf(body)
	p.scatter, p.point = s.scatterOf(body, loops)
	p.row, p.pointwise = p.rowOf(), p.Height(body) == 0 && len(p.staged) == 0
	p.slow, p.rows = p.slowAfter(body), p.tileLoops(body)
	p.plain = p.beside(body)
	p.visit(body, nil)
	p.shared = sum(p.shared, expr.Saturate(s.Points(loops), storeOps))
	workers := max(s.Opt.Profile.Workers, 1)
	return sum(s.Opt.Profile.Launch, sum(p.front, p.shared/workers))
}

// unitLoops are the loops of the store up to the last that a reduce or stage depends
// on; without any, all.
func (p *pricer) unitLoops(body *ir.UOp) []*ir.UOp {
	last, holds := 0, false
	ir.Walk(func(u *ir.UOp) []*ir.UOp {
		if u.Op == ir.OpReduce || u.Op == ir.OpStage {
			free := p.Free.Of(u.Src[0]) // of a tuple: what all components depend on
			if u.Op == ir.OpStage {
				p.staged = ir.UnionRanges(p.staged, free)
			}
			for i := last; i < len(p.loops); i++ {
				if slices.Contains(free, p.loops[i]) {
					last, holds = i+1, true
				}
			}
			return nil
		}
		return u.Src
	}, body)
	if !holds {
		return p.loops
	}
	return p.loops[:last]
}

// stagedLoops are the loops that stages inside of tuples depend on: all that a tuple folds is
// folded again at each of their points.
func (p *pricer) stagedLoops(body *ir.UOp) (loops []*ir.UOp) {
	for _, tuple := range ir.Toposort(body) {
		if !analyse.IsTuple(tuple) {
			continue
		}
		for _, u := range ir.Toposort(tuple) {
			if u.Op == ir.OpStage {
				loops = ir.UnionRanges(loops, p.Free.Of(u))
			}
		}
	}
	return loops
}

// root is the place outside of all reduces and stages for an operation that depends on
// some ranges.
func (p *pricer) root(op ir.Op, free []*ir.UOp) *level {
	own, others, until := int64(1), int64(1), 0
	for i, r := range p.loops {
		if slices.Contains(free, r) {
			until = i + 1
		}
	}
	for i, r := range p.loops {
		switch n := p.Points(p.loops[i : i+1]); {
		case slices.Contains(free, r), slices.Contains(p.tuples, r), p.Opt.Profile.Lanes > 1 && (i < until || slices.Contains(p.staged, r)):
			own = expr.Saturate(own, n) // an outer loop, or one of units: nothing is kept for its next point
		case i < len(p.units):
			others = expr.Saturate(others, n)
		}
	}
	key := rootKey{times: 1, front: true}
	switch {
	case until == 0:
	case op == ir.OpReduce || op == ir.OpStage:
		tile := p.tileOf(op)
		key = rootKey{times: expr.Saturate(own, (others+tile-1)/tile)}
	default:
		key = rootKey{times: p.Points(p.loops[:until])}
	}
	if op != ir.OpReduce && op != ir.OpStage && slices.Contains(free, p.row) {
		key.slow = p.slow
	}
	if p.roots[key] == nil {
		p.roots[key] = &level{times: key.times, slow: key.slow, front: key.front, reuse: 1}
	}
	return p.roots[key]
}

// tileOf is how many units share a reduce or stage that depends on some of their loops.
func (p *pricer) tileOf(op ir.Op) int64 {
	switch {
	case p.Opt.Profile.SharedStages:
		return p.Opt.Profile.TileCap
	case op == ir.OpStage:
		return 1
	}
	return columnTile
}

// placeOf is the innermost loop of those that an operation depends on, from a place
// inwards of it.
func (p *pricer) placeOf(op ir.Op, free []*ir.UOp, at *level) *level {
	for at != nil && at.loop != nil && !slices.Contains(free, at.loop) {
		at = at.around
	}
	if at == nil || at.loop == nil {
		return p.root(op, free)
	}
	return at
}

// visit counts u and what it is made of.
func (p *pricer) visit(u *ir.UOp, at *level) {
	if len(u.Src) == 0 || u.Op == ir.OpRange || u.DType == ir.Idx && !expr.HasLoad(u) {
		return
	}
	place := p.placeOf(u.Op, p.Free.Of(u), at)
	if !place.done.Add(u) {
		return
	}
	if u.Op == ir.OpReduce {
		if p.scatter != nil && u == p.scatter.Fold {
			p.scatterTerms()
		} else {
			p.reduce(u, at)
		}
		return
	}
	at = place
	switch u.Op {
	case ir.OpStage:
		inside := p.inside(u, at, u.Src[1:], 1, true)
		p.takeStageLanes(u, inside)
		p.add(inside, storeOps)
		p.visit(u.Src[0], inside)
		return
	case ir.OpLoad:
		ops := int64(loadOps)
		_, computed := p.IsRead(u)
		switch {
		case at.far || p.again(at):
			ops = farLoadOps
		case !computed && u.DType.Size() <= narrowBytes:
			ops = narrowLoadOps
		}
		p.count(at, expr.Saturate(at.times, ops*p.gathered(u, at))/at.reuse)
	}
	if u.DType != ir.Idx && !(u.Op == ir.OpCast && expr.IsFreeCast(u)) {
		p.add(at, expr.OperationCost(u.Op))
	}
	for _, src := range u.Src {
		p.visit(src, at)
	}
}

// again reports a load of a fold in a stage of rows which is the same for all of them: every block of a GPU
// folds for its rows what a kernel before could have folded once.
func (p *pricer) again(at *level) bool {
	if !p.Opt.Profile.SharedStages {
		return false
	}
	var fold *ir.UOp
	for ; at != nil && at.loop != nil; at = at.around {
		if at.binder.Op == ir.OpStage {
			rows := lists.Filter(p.units, func(r *ir.UOp) bool { return slices.Contains(p.Free.Of(at.binder), r) })
			return fold != nil && len(rows) > 0 && len(ir.WithoutRanges(rows, p.Free.Of(fold))) == len(rows)
		}
		fold = at.binder
	}
	return false
}

// reduce counts a reduce. The first value of a tuple is computed once for all values
// of the loops that only further ones depend on.
func (p *pricer) reduce(u *ir.UOp, at *level) {
	loop, values := u.ReduceRange(), u.ReduceValues()
	free := p.Free.Of(values[0])
	for _, v := range values {
		free = ir.UnionRanges(free, p.Free.Of(v))
		place, reuse := p.placeOf(u.Op, ir.WithoutRanges(free, []*ir.UOp{loop}), at), int64(1)
		if !p.untiled || !analyse.IsTuple(u) {
			reuse = p.reuse(v, loop, place)
		}
		inside := p.inside(u, place, []*ir.UOp{loop}, reuse, place.staged)
		inside.far = p.untiled && analyse.IsTuple(u)
		p.takeLanes(v, loop, inside)
		if p.plain && p.ofMatrices(u) {
			inside.slow = plainProduct
		}
		p.add(inside, 1+p.combineFunctions(u, v))
		p.visit(v, inside)
		free = p.Free.Of(values[0])
	}
}

// combineFunctions is what a tuple's first value costs each element of a CPU besides: what its
// lanes have folded is rescaled.
func (p *pricer) combineFunctions(u, value *ir.UOp) int64 {
	if p.Opt.Profile.Lanes <= 1 || !analyse.IsTuple(u) || value != u.ReduceValues()[0] {
		return 0
	}
	return expr.CombineFunctions(u)
}

// reuse is how often a register tile of a reduce uses what it loads: a tile has rows
// and columns, so every operand of a product must be the same for some of the units,
// and be read as it lies in memory, without a mask.
func (p *pricer) reuse(value, loop *ir.UOp, at *level) int64 {
	units := expr.Sorted(p.units)
	if p.Points(ir.WithoutRanges(units, p.Free.Of(value))) > 1 {
		return 1 // units share what is folded, not what it is folded of
	}
	if !p.hasTiles(value, at) {
		return 1
	}
	var tiled []*ir.UOp
	if !at.staged {
		tiled = units
	}
	for l := at; l.loop != nil && l.binder.Op == ir.OpReduce; l = l.around {
		if l.binder.Arg.(ir.ReduceArg).Op != ir.OpAdd { // sums of sums are one product
			tiled = ir.UnionRanges(tiled, []*ir.UOp{l.loop})
		}
	}
	least := int64(registerTile)
	for _, u := range ir.Toposort(value) {
		free := p.Free.Of(u)
		switch {
		case !slices.Contains(free, loop):
		case value.Op == ir.OpMul && (u.Op == ir.OpWhere || u.Op == ir.OpLoad && !p.plainlyRead(u, loop)):
			return 1
		case u.Op == ir.OpLoad || u.Op == ir.OpField:
			least = min(least, p.Points(ir.WithoutRanges(tiled, free))*p.neighboursOf(value, u, tiled, loop))
		}
	}
	return least
}

// neighboursOf is how many points of some loops read one element since a load takes their
// quotient: the channels of a group, say. On a GPU each is another thread's, which loads for
// itself, but for those of a running fold in runs as long as what each run folds.
func (p *pricer) neighboursOf(value, load *ir.UOp, loops []*ir.UOp, loop *ir.UOp) int64 {
	run := int64(0) // of any length
	if p.Opt.Profile.Lanes == 1 {
		if run = p.Points([]*ir.UOp{loop}); value.Op != ir.OpWhere || expr.HasLoad(value.Src[0]) || !slices.Contains(p.Free.Of(value.Src[0]), loop) {
			return 1
		}
	}
	places, n := make(map[*ir.UOp]int64), int64(1)
	for _, x := range load.Src {
		for _, u := range ir.Toposort(x) {
			for _, r := range u.Src {
				if !slices.Contains(loops, r) {
					continue
				}
				each := int64(1)
				if c, constant := u.Src[len(u.Src)-1].Int(); u.Op == ir.OpFloorDiv && constant && (run == 0 || run == c) {
					each = c
				}
				if known, met := places[r]; !met || each < known {
					places[r] = each
				}
			}
		}
	}
	for _, each := range places {
		n = expr.Saturate(n, each)
	}
	return n
}

// hasTiles reports a product that has tiles: among sums, and for the scores of a softmax. What
// a maximum or minimum folds is made one by one, unless all its points share a factor that
// differs among units: the weights of a convolution that is pooled at once.
func (p *pricer) hasTiles(value *ir.UOp, at *level) bool {
	var window []*ir.UOp
	for l := at; l != nil && l.loop != nil && l.binder.Op == ir.OpReduce; l = l.around {
		if op := l.binder.Arg.(ir.ReduceArg).Op; op != ir.OpAdd && op != ir.OpInvalid {
			window = ir.UnionRanges(window, []*ir.UOp{l.loop})
		}
	}
	depends := func(u *ir.UOp, on []*ir.UOp) bool {
		return slices.ContainsFunc(on, func(r *ir.UOp) bool { return slices.Contains(p.Free.Of(u), r) })
	}
	return len(window) == 0 || slices.ContainsFunc(ir.Toposort(value), func(u *ir.UOp) bool {
		return (u.Op == ir.OpLoad || u.Op == ir.OpField) && depends(u, p.units) && !depends(u, window)
	})
}

// plainlyRead reports a load along whose loops, those of units and the one that is summed over,
// memory runs forwards, in bounds and without a turn.
func (p *pricer) plainlyRead(load, loop *ir.UOp) bool {
	for i, x := range load.Indices() {
		if expr.HasLoad(x) || p.leaves(x, load.Src[0].Src[i]) {
			return false
		}
		for _, t := range p.Linear.Of(x).Terms {
			if t.Coef < 0 && (t.Atom == loop || t.Atom.Op != ir.OpRange || slices.Contains(p.units, t.Atom)) || p.turns(t.Atom) || p.repeats(t.Atom, loop) {
				return false
			}
		}
	}
	return true
}

// repeats reports a high digit of what is summed over that changes too often for lanes.
func (p *pricer) repeats(x, loop *ir.UOp) bool {
	return x.Op == ir.OpFloorDiv && p.Opt.Profile.Lanes > 1 && slices.Contains(p.Free.Of(x), loop) && !p.isLongRun(x.Src[1], 1)
}

// tolerance is the part of a price that the model may be wrong by: a fusion that saves
// memory and a launch is not given up for less.
const tolerance = 8

// Form is what a value would be stored by.
type Form struct {
	Body  *ir.UOp
	Loops []*ir.UOp
}

// Pays reports that kernels in which the readers of p compute p themselves cost no
// more than those that all of them were made of, and records when not. What a kernel was made of is remembered in each value, so that many
// fusions together cost no more than one may, and a value that is repeated counts as often as
// what it is in. A pointwise value shares nothing with its readers, and what a block of a GPU
// makes, it makes for itself: what fusions before this one saved does not pay for them.
func (s *State) Pays(p *Value, readers []*Value, fused []Form) bool {
	apart, now, together := s.apart(p), s.priceOf(p), int64(0)
	for i, c := range readers {
		apart, now = sum(apart, s.apart(c)), sum(now, s.priceOf(c))
		together = sum(together, s.Price(fused[i].Body, fused[i].Loops))
	}
	if s.IsPointwise(p) || s.Opt.Profile.SharedStages {
		apart = min(apart, now)
	}
	if !s.Cheaper(p, together, apart) {
		return false
	}
	for _, c := range readers {
		c.Apart = sum(c.Apart, p.Apart/int64(len(readers)))
	}
	return true
}

// EdgeShare is what part of a launch it costs that kernels of one launch wait for those of another. Norms made again for batches of
// 6 to 12 cost 0.001 to 0.006 launches, and made those of eight 8 to 17 % faster on an H200, those for prompts of LLaMA 8B 0.5 to 1.9, and made
// 512 tokens 5 % slower (docs/bench/h200-prologues.txt).
const EdgeShare = 8

// BesideShare is the same where a kernel of one block or few stands between two products, as the norm of what a layer adds: those of 1,152 to 3,584
// elements cost 0.13 to 0.41 launches, and made exact steps of one sequence 3 to 6 % faster (docs/bench/h200-keys.txt).
const BesideShare = 2

// paysAgain reports that kernels of some readers in which p is computed again, and which need not wait for it then, cost less
// than a share of a launch more.
func (s *State) paysAgain(p *Value, readers []*Value, fused []Form, share int64) bool {
	now, together := s.Opt.Profile.Launch/share, int64(0)
	for i, c := range readers {
		now, together = sum(now, s.priceOf(c)), sum(together, s.Price(fused[i].Body, fused[i].Loops))
	}
	if together <= now {
		return true
	}
	s.Record(p, false, "dearer to make again", Number{Name: "price", Value: together}, Number{Name: "apart", Value: now})
	return false
}

// PaysShared is Pays for values that will be stored by one kernel, which computes p
// once. Those of the readers that are not among the stored ones vanish.
func (s *State) PaysShared(p *Value, readers, stored []*Value, fused []Form) bool {
	apart, together := s.apart(p), int64(0)
	for _, c := range readers {
		apart = sum(apart, s.apart(c))
	}
	tile := s.priceOf(p) // and at most what the cheapest of them costs
	for _, f := range fused {
		price := s.Price(f.Body, f.Loops)
		together, tile = sum(together, price), min(tile, price)
	}
	if !s.Cheaper(p, together-int64(len(stored)-1)*tile, apart) {
		return false
	}
	for i, c := range stored {
		c.Apart = s.Price(fused[i].Body, fused[i].Loops)
	}
	return true
}

// Cheaper compares the price of fused kernels with that of those apart.
func (s *State) Cheaper(p *Value, together, apart int64) bool {
	if s.insists || together <= sum(apart, apart/tolerance) {
		return true
	}
	s.Record(p, false, "dearer than apart", Number{Name: "price", Value: together}, Number{Name: "apart", Value: apart})
	return false
}

// ForgetPrices starts anew: values are made of themselves.
func (s *State) ForgetPrices() {
	for _, v := range s.Values {
		v.Apart = 0
	}
}

// priceOf is the price of the kernel that a value is now.
func (s *State) priceOf(v *Value) int64 { return s.Price(v.Body, v.StoreLoops()) }

// apart is the price of the kernels that a value was made of.
func (s *State) apart(v *Value) int64 {
	if v.Apart == 0 {
		v.Apart = s.priceOf(v)
	}
	return v.Apart
}
