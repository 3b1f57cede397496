package lower

import (
	"math/big"
	"math/bits"
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/ir/program"
	"tgc/kernel/plan"
)

// reducer writes the loops of reduces.
type reducer struct {
	*lowering
	reduces  map[int][]*ir.UOp    // by range, outer first
	below    map[*ir.UOp]*big.Int // bits: the reduces inside of each, by number
	number   map[*ir.UOp]int      // of reduces, from 1 on
	loopSums int                  // accumulated in the innermost loop being opened
}

// term is a summand of a sum: x, or the product x*y that may be contracted
// with the addition, or the dot of x and y over lanes. pend are the lanes still
// to be summed.
type term struct {
	x, y  val // y.v nil: no product
	isMul bool
	dot   int // 1 + the innermost lane sub-axis of x and y, if they are summed over it
	pend  analyse.RangeSet
}

// lowerReduce emits a plain REDUCE (tuples are read through PROJ).
func (l *reducer) lowerReduce(u *ir.UOp, at coords) val {
	arg := u.Arg.(ir.ReduceArg)
	if arg.Op == ir.OpInvalid {
		fail("a tuple reduce is read without PROJ")
	}
	i := l.free.Index.Of(u.ReduceRange())
	if l.Roles[i] == plan.Serial || l.Roles[i] == plan.Grid {
		return l.serialReduce(u, at)
	}
	if l.Roles[i] == plan.Tiled {
		return l.tiles.sum(u, at)
	}
	if m := l.mma.sums[u]; m != nil {
		return l.mma.matrixSum(u, m, at)
	}
	if l.block.threads.Has(i) && (arg.Op != ir.OpAdd || !l.folds.pends(i)) {
		return l.folds.threadReduce(u, i, at)
	}
	if arg.Op == ir.OpAdd {
		return l.sum(l.terms(u, at, analyse.RangeSet{}))
	}
	return l.unrolledReduce(u, arg.Op, at)
}

// unrolledReduce folds copies in pairs, and what is left lane by lane. Copies that are the
// identity are left out, so that folds which have the first copies in common have pairs in
// common.
func (l *reducer) unrolledReduce(u *ir.UOp, op ir.Op, at coords) val {
	var over analyse.RangeSet
	identity := l.Arena.ReduceIdentity(u, 0)
	parts := withoutAny(l.partsOf(u, op, at, &over), func(x val) bool { return l.isConst(x, identity) })
	if over.Empty() {
		return l.foldPairs(op, u.DType, parts)
	}
	for k, x := range parts {
		subAxes := unionSubAxes(x.subAxes, over.List())
		parts[k] = val{v: l.exprs.expand(x, subAxes), subAxes: subAxes, depth: l.scopes.top()}
	}
	return l.exprs.foldLanes(op, l.foldPairs(op, u.DType, parts), over)
}

// foldPairs folds pairs, pairs of pairs and so on.
func (l *reducer) foldPairs(op ir.Op, dtype ir.DType, list []val) val {
	if len(list) == 1 {
		return list[0]
	}
	half := 1 << (bits.Len(uint(len(list)-1)) - 1) // the largest power of two below
	return l.exprs.alu(op, dtype, l.foldPairs(op, dtype, list[:half]), l.foldPairs(op, dtype, list[half:]))
}

// withoutAny is a list without what is left out; of a list that all is left out of, all.
func withoutAny[T any](list []T, leaveOut func(T) bool) []T {
	if rest := slices.DeleteFunc(slices.Clone(list), leaveOut); len(rest) > 0 {
		return rest
	}
	return list
}

// terms flattens a sum over copies and lanes into its summands.
func (l *reducer) terms(u *ir.UOp, at coords, pend analyse.RangeSet) []term {
	if u.Op == ir.OpReduce && u.Arg.(ir.ReduceArg).Op == ir.OpAdd {
		i := l.free.Index.Of(u.ReduceRange())
		if l.Dots.Has(i) {
			if t, ok := l.wide.dotTerm(u.Src[0], i, at.with(i, laneCoord), pend); ok {
				return []term{t}
			}
		}
		switch role := l.Roles[i]; {
		case l.mma.sums[u] != nil:
		case role.IsThread() && l.folds.pends(i):
			pend.Add(i)
			return l.terms(u.Src[0], at, pend)
		case role == plan.Lane && l.block.onGPU():
			return l.laneTerms(l.terms(u.Src[0], at.with(i, laneCoord), pend), i)
		case role == plan.Lane:
			pend.Add(i)
			return l.terms(u.Src[0], at.with(i, laneCoord), pend)
		case role == plan.Unroll && l.wide.copiesAsLanes(u, at):
			pend.Add(i)
			return l.terms(u.Src[0], at.with(i, laneCoord), pend)
		case role == plan.Unroll:
			var out []term
			for c := range int32(l.extent[i]) {
				out = append(out, l.terms(u.Src[0], at.with(i, c), pend)...)
			}
			return out
		}
	}
	if u.Op == ir.OpMul && u.DType.IsFloat() {
		target := l.exprs.laneSubAxes(u, at)
		x, y := l.wide.operands(u, at, target)
		x, y = l.exprs.factors(x, y, u)
		x, y = l.apartFrom(x, pend), l.apartFrom(y, pend)
		return []term{{x: x, y: y, isMul: true, pend: pend.Union(x.pend).Union(y.pend)}}
	}
	if u.Op == ir.OpSub && u.Src[0].Op == ir.OpMul && u.Src[1].Op == ir.OpMul && (l.besideTile(u) || l.Options.FMA && (!l.block.onGPU() || l.Tile != nil)) {
		list := l.terms(u.Src[0], at, pend)
		for _, t := range l.terms(u.Src[1], at, pend) {
			negated := &t.x // the factor of rows, once for all columns
			if len(t.y.subAxes) > len(t.x.subAxes) {
				negated = &t.y
			}
			*negated = l.exprs.aluOver(ir.OpNeg, negated.elem(), negated.subAxes, *negated)
			list = append(list, t)
		}
		return list
	}
	x := l.apartFrom(l.exprs.lower(u, at), pend)
	return []term{{x: x, pend: pend.Union(x.pend)}}
}

// besideTile reports a difference of what a tile instruction of a CPU sums and something else (shape:
// collapse-sums): each is a multiply-add.
func (l *reducer) besideTile(u *ir.UOp) bool {
	return analyse.Any(u, func(x *ir.UOp) bool {
		return x.Op == ir.OpReduce && l.Roles[l.free.Index.Of(x.ReduceRange())] == plan.Tiled
	})
}

// apartFrom settles a value that is open over threads which an outer open sum
// counts too: each thread would be counted twice.
func (l *reducer) apartFrom(x val, pend analyse.RangeSet) val {
	if x.pend.Meet(l.exprs.sharing(pend)).Empty() {
		return x
	}
	return l.exprs.settle(x)
}

// sumPoint is a copy of what a sum adds up.
type sumPoint struct {
	node *ir.UOp
	at   coords
	pend analyse.RangeSet
}

// pointsOf lists the copies of the summand of nested sums over copies and, on a CPU, lanes.
func (l *reducer) pointsOf(u *ir.UOp, at coords, pend analyse.RangeSet, list []sumPoint) []sumPoint {
	if analyse.IsSum(u) {
		i := l.free.Index.Of(u.ReduceRange())
		switch {
		case l.Dots.Has(i), l.mma.sums[u] != nil:
		case l.Roles[i] == plan.Lane && !l.block.onGPU(), l.Roles[i] == plan.Unroll && l.wide.copiesAsLanes(u, at):
			pend.Add(i)
			return l.pointsOf(u.Src[0], at.with(i, laneCoord), pend, list)
		case l.Roles[i] == plan.Unroll:
			for c := range int32(l.extent[i]) {
				list = l.pointsOf(u.Src[0], at.with(i, c), pend, list)
			}
			return list
		}
	}
	return append(list, sumPoint{u, at, pend})
}

// laneTerms takes the lanes of a sub-axis as terms of their own.
func (l *reducer) laneTerms(terms []term, i int) []term {
	var out []term
	for _, t := range terms {
		if !slices.Contains(l.termSubAxes(t), i) {
			subAxes := unionSubAxes(l.termSubAxes(t), []int{i})
			t = term{x: val{v: l.termValue(t, subAxes).v, subAxes: subAxes, depth: l.scopes.top()}, pend: t.pend}
		}
		for lane := range int(l.extent[i]) {
			part := term{x: l.tuples.pickLane(t.x, i, lane), isMul: t.isMul, pend: t.pend}
			if t.isMul || t.dot > 0 {
				part.y = l.tuples.pickLane(t.y, i, lane)
				part.dot = t.dot
			}
			out = append(out, part)
		}
	}
	return out
}

// alignTerms brings terms to one set of pending lanes and returns it with the
// common sub-axes.
func (l *reducer) alignTerms(terms []term) (subAxes []int, pend analyse.RangeSet) {
	pend = terms[0].pend
	for _, t := range terms[1:] {
		pend = pend.Meet(t.pend)
	}
	for k := range terms {
		t := &terms[k]
		if extra := t.pend.Minus(pend); !extra.Empty() {
			x := l.termValue(*t, unionSubAxes(l.termSubAxes(*t), t.pend.Meet(l.lanes).List()))
			x.pend = t.pend
			*t = term{x: l.exprs.foldLanes(ir.OpAdd, x, extra), pend: pend}
		}
		subAxes = unionSubAxes(subAxes, l.termSubAxes(*t))
	}
	return unionSubAxes(subAxes, pend.Meet(l.lanes).List()), pend
}

func (l *reducer) termSubAxes(t term) []int {
	if t.dot > 0 {
		return dotSubAxes(t)
	}
	if t.isMul {
		return unionSubAxes(t.x.subAxes, t.y.subAxes)
	}
	return t.x.subAxes
}

// termValue is the value of one term over sub-axes.
func (l *reducer) termValue(t term, subAxes []int) val {
	if t.dot > 0 {
		zero := l.b.Zero(program.Vector(ir.I32, l.exprs.laneCount(subAxes)))
		return val{v: l.wide.dotWith(zero, t, subAxes), subAxes: subAxes, depth: l.scopes.top()}
	}
	if t.isMul {
		return l.exprs.aluOver(ir.OpMul, t.x.elem(), subAxes, t.x, t.y)
	}
	return val{v: l.exprs.expand(t.x, subAxes), subAxes: subAxes, depth: l.scopes.top()}
}

func (x val) elem() ir.DType { return x.v.Type.Elem }

// sum adds up terms without an accumulator. Those that are known to be 0 are left out, so
// that sums which have the first terms in common have their first additions in common.
func (l *reducer) sum(terms []term) val {
	terms = withoutAny(terms, l.isZero)
	subAxes, pend := l.alignTerms(terms)
	accs := make([]val, l.sumChains(terms, subAxes))
	for k, t := range terms {
		if acc := &accs[k%len(accs)]; k < len(accs) {
			*acc = l.termValue(t, subAxes)
		} else {
			*acc = l.accumulate(*acc, t, subAxes)
		}
	}
	acc := accs[0]
	for _, x := range accs[1:] {
		acc = val{v: l.b.Alu(ir.OpAdd, acc.v, x.v), subAxes: subAxes, depth: l.scopes.top()}
	}
	acc.pend = pend
	return acc
}

// A sum of products without a loop of its own, of longSum terms or more, goes round over
// longSumChains accumulators, fewer where many sums take turns: so many additions in a row take longer than all else of the
// body. One Zen 5 core, 32 terms for 16 rows of Q4_0 (2 x 8192 x 2048), GB/s: 25 in one chain,
// 26 in two, 34 in four.
const (
	longSum       = 32
	longSumChains = 4
)

// sumChains is the number of accumulators of a sum of vectors without a loop of its own.
func (l *reducer) sumChains(terms []term, subAxes []int) int {
	if len(terms) < longSum || l.block.onGPU() || !l.Options.FMA || l.exprs.laneCount(subAxes) == 1 || !terms[0].isMul {
		return 1
	}
	return max(min(longSumChains, 4*longSumChains/max(l.loopSums, 1)), 1)
}

// isZero reports a term that is the constant 0.
func (l *reducer) isZero(t term) bool {
	if t.isMul || t.dot > 0 || !t.pend.Empty() {
		return false
	}
	return l.isConst(t.x, l.Arena.Const(t.x.elem(), 0))
}

// isConst reports the value of a constant.
func (l *reducer) isConst(x val, c *ir.UOp) bool {
	if f, float := c.Float(); float {
		known, ok := l.exprs.floats[x.v]
		return ok && known == f
	}
	n, _ := c.Int()
	known, ok := l.b.KnownInt(x.v)
	return ok && known == n
}

// accumulate adds a term to an accumulator over the same sub-axes.
func (l *reducer) accumulate(acc val, t term, subAxes []int) val {
	if t.dot > 0 {
		return val{v: l.wide.dotWith(acc.v, t, subAxes), subAxes: subAxes, depth: l.scopes.top()}
	}
	if t.isMul && l.Options.FMA {
		v := l.b.Fma(l.exprs.expand(t.x, subAxes), l.exprs.expand(t.y, subAxes), acc.v)
		return val{v: v, subAxes: subAxes, depth: l.scopes.top()}
	}
	x := l.termValue(t, subAxes)
	return val{v: l.b.Alu(ir.OpAdd, acc.v, x.v), subAxes: subAxes, depth: l.scopes.top()}
}

// serialReduce opens the loop of a REDUCE and carries, in the same loop, every
// other reduce over the same RANGE that belongs to the same place: sharing is
// legal between reduces that do not need each other.
func (l *reducer) serialReduce(u *ir.UOp, at coords) val {
	return l.looped(u, -1, u, at)
}

// looped runs the loop of a reduce, for component comp of a tuple, and gives what it has
// left for a node.
func (l *reducer) looped(reduce *ir.UOp, comp int, u *ir.UOp, at coords) val {
	l.runLoop(l.free.Index.Of(reduce.ReduceRange()), reduce, comp)
	v, ok := l.scopes.stack[l.scopes.top()].memo[l.scopes.key(u, at)]
	if !ok {
		fail("a reduce has no result at its coordinates")
	}
	return v
}

// member is a reduce that takes part in a loop; comps are the components of a
// tuple that are computed there.
type member struct {
	node  *ir.UOp
	comps []int
}

// carry is one accumulator of an open loop.
type carry struct {
	next   *program.Value
	finish func(result *program.Value)
}

// runLoop emits the loop over range i for the wanted reduce (component comp of
// a tuple) and leaves the results in the memo of the current scope.
func (l *reducer) runLoop(i int, want *ir.UOp, comp int) {
	members, others := l.sharedMembers(i, want, comp)
	var carries []carry
	outer, left := l.loopSums, l.others
	l.loopSums, l.others = 0, append(slices.Clip(left), others...)
	for _, m := range members {
		l.loopSums += len(l.combos(l.free.Of(m.node)))
	}
	results := l.scopes.loop(i, func(open *program.Loop) []*program.Value {
		if sums := l.matrixMembers(members); len(sums) > 0 {
			carries = l.mma.tileMembers(open, sums, l.scopes.stack[l.scopes.top()-1])
		}
		var sums []*ir.UOp
		for _, m := range members {
			if l.isMatrixMember(m) {
				continue
			}
			if m.comps == nil && !l.block.onGPU() && analyse.IsSum(m.node) {
				sums = append(sums, m.node)
				continue
			}
			if m.comps == nil {
				carries = append(carries, l.plainMember(open, m.node)...)
			} else {
				carries = append(carries, l.tuples.tupleMember(open, m)...)
			}
		}
		carries = append(carries, l.runningSums(open, sums)...)
		next := make([]*program.Value, len(carries))
		for k, c := range carries {
			next[k] = c.next
		}
		return next
	})
	l.loopSums, l.others = outer, left
	for k, c := range carries {
		c.finish(results[k])
	}
}

// sharedMembers picks the reduces that run in one loop with want. others are the weights of those that have loops of their own.
func (l *reducer) sharedMembers(i int, want *ir.UOp, comp int) (members []member, others []*ir.UOp) {
	d := l.scopes.top()
	room := &loopRoom{decoding: l.decodingOf(want), chosen: &l.Options.Program}
	for _, u := range l.reduces[i] {
		m, ok := l.memberAt(u, d)
		needs := func(o member) bool { return l.contains(u, o.node) || l.contains(o.node, u) }
		switch {
		case u == want && comp >= 0:
			m.comps = l.tuples.closure(u, append(m.comps, comp))
		case u == want:
		case !ok || needs(member{node: want}) || slices.ContainsFunc(members, needs):
			room.leaves(l.decodingOf(u))
			continue
		case !room.takes(l.decodingOf(u)):
			continue
		}
		members = append(members, m)
	}
	return members, room.others
}

// decodingOf is what a sum on a CPU that decodes weights keeps in registers.
func (l *reducer) decodingOf(u *ir.UOp) decoding {
	if l.block.onGPU() || !analyse.IsSum(u) {
		return decoding{}
	}
	lanes := l.points(l.free.Of(u.Src[0]).Meet(l.lanes).List())
	registers := max(int(lanes)*u.DType.Size()/l.Desc.VectorBytes, 1)
	return decodingOf(u, len(l.combos(l.free.Of(u)))*registers)
}

// memberAt reports a reduce whose place is the scope at depth d and which has
// no result there yet.
func (l *reducer) memberAt(u *ir.UOp, d int) (member, bool) {
	m := member{node: u}
	arg := u.Arg.(ir.ReduceArg)
	if arg.Op == ir.OpInvalid {
		for c := range arg.N {
			node := l.Arena.Proj(u, c)
			if depth, ok := l.scopes.depthOf(l.free.Of(node)); ok && depth == d && !l.hasResult(node, d) {
				m.comps = append(m.comps, c)
			}
		}
		if len(m.comps) == 0 {
			return m, false
		}
		m.comps = l.tuples.closure(u, m.comps)
		return m, true
	}
	depth, ok := l.scopes.depthOf(l.free.Of(u))
	return m, ok && depth == d && !l.hasResult(u, d)
}

// hasResult looks for a node's first result in a scope.
func (l *reducer) hasResult(u *ir.UOp, d int) bool {
	_, ok := l.scopes.stack[d].memo[l.scopes.key(u, l.combos(l.free.Of(u))[0])]
	return ok
}

// combos enumerates the copies among free ranges; lanes stay lanes.
func (l *reducer) combos(free analyse.RangeSet) []coords {
	return l.copiesAlong([]coords{l.scopes.startCoords()}, free.Meet(l.copies).List(), "accumulators of one reduce")
}

// copiesAlong are points at all copies along some ranges; what names them.
func (l *reducer) copiesAlong(points []coords, ranges []int, what string) []coords {
	for _, i := range ranges {
		var next []coords
		for _, p := range points {
			for c := range int32(l.extent[i]) {
				next = append(next, p.with(i, c))
			}
		}
		if len(next) > plan.MaxUnroll {
			fail("plan: %d %s, at most %d are allowed", len(next), what, plan.MaxUnroll)
		}
		points = next
	}
	return points
}

// isMatrixMember reports a sum around matrix instructions.
func (l *reducer) isMatrixMember(m member) bool {
	return m.comps == nil && m.node.Arg.(ir.ReduceArg).Op == ir.OpAdd && l.mma.holdsMatrix(m.node)
}

func (l *reducer) matrixMembers(members []member) []*ir.UOp {
	var out []*ir.UOp
	for _, m := range members {
		if l.isMatrixMember(m) {
			out = append(out, m.node)
		}
	}
	return out
}

// plainMember accumulates a plain reduce in an open loop, one accumulator for
// each copy.
func (l *reducer) plainMember(open *program.Loop, u *ir.UOp) []carry {
	op := u.Arg.(ir.ReduceArg).Op
	outside := l.scopes.stack[:l.scopes.top()]
	d := len(outside) - 1
	var carries []carry
	for _, at := range l.combos(l.free.Of(u)) {
		key := l.scopes.key(u, at)
		if op == ir.OpAdd {
			carries = append(carries, l.sumMember(open, u, at, outside[d], key)...)
			continue
		}
		carries = append(carries, l.foldMember(open, u, at, outside[d], key)...)
	}
	return carries
}

// splat is a constant scalar in every lane.
func (l *reducer) splat(c *program.Value, lanes int) *program.Value {
	t := program.Vector(c.Type.Elem, lanes)
	if f, ok := l.exprs.floats[c]; ok {
		return l.b.Float(t, f)
	}
	n, _ := l.b.KnownInt(c)
	return l.b.Int(t, n)
}

// sumMember accumulates one sum. With several terms an iteration and
// contraction allowed, terms go round over several accumulators, so that the
// latency of one addition does not bound the loop.
func (l *reducer) sumMember(open *program.Loop, u *ir.UOp, at coords, home *scope, key memoKey) []carry {
	terms := l.terms(u.Src[0], at, analyse.RangeSet{})
	subAxes, pend := l.alignTerms(terms)
	lanes := l.exprs.laneCount(subAxes)
	t := program.Vector(storedType(u.DType), lanes)
	chains := l.chains(len(terms), lanes)
	accs := lists.Make(chains, func(int) *program.Value { return l.b.Carry(open, l.b.Zero(t)) })
	for k, t := range terms {
		accs[k%chains] = l.accumulate(val{v: accs[k%chains], subAxes: subAxes}, t, subAxes).v
	}
	d := l.scopes.top() - 1
	return l.together(ir.OpAdd, accs, func(total *program.Value) {
		home.memo[key] = val{v: total, subAxes: subAxes, pend: pend, depth: d}
	})
}

// together carries accumulators among which the terms of one result take turns. finish
// has the result, when the loop is closed.
func (l *reducer) together(op ir.Op, accs []*program.Value, finish func(total *program.Value)) []carry {
	carries, results := make([]carry, len(accs)), make([]*program.Value, len(accs))
	for c, acc := range accs {
		carries[c] = carry{acc, func(r *program.Value) {
			if results[c] = r; c < len(accs)-1 {
				return
			}
			total := results[0]
			for _, other := range results[1:] {
				total = l.b.Alu(op, total, other)
			}
			finish(total)
		}}
	}
	return carries
}

// chains is the number of accumulators for terms of so many f32 lanes: a
// floating-point addition takes four cycles and two start in each, so eight
// registers of accumulators, over all sums of the loop, keep the pipes busy.
func (l *reducer) chains(terms, lanes int) int {
	if !l.Options.FMA {
		return 1
	}
	registers := max((lanes*4+63)/64, 1) * max(l.loopSums, 1)
	return max(min(8/registers, terms/2, 4), 1)
}

// collectReduces groups the REDUCE nodes by range and notes which contains
// which: a loop is shared only by reduces that do not need each other.
func (l *reducer) collectReduces() {
	for _, u := range plan.Preorder(l.Sink) {
		if u.Op == ir.OpReduce {
			i := l.free.Index.Of(u.ReduceRange())
			l.reduces[i] = append(l.reduces[i], u)
		}
	}
	l.below, l.number = make(map[*ir.UOp]*big.Int), make(map[*ir.UOp]int)
	under := make(map[*ir.UOp]*big.Int) // as below, with the node itself
	for _, u := range ir.Toposort(l.Sink) {
		set := new(big.Int)
		for _, s := range u.Src {
			l.wide.uses[s]++
			set.Or(set, under[s])
		}
		if u.Op == ir.OpReduce {
			l.below[u], l.number[u] = set, len(l.number)+1
			set = new(big.Int).SetBit(set, l.number[u], 1)
		}
		under[u] = set
	}
}

// contains reports a reduce inside of another one.
func (l *reducer) contains(u, inner *ir.UOp) bool {
	below := l.below[u]
	return below != nil && below.Bit(l.number[inner]) == 1
}
