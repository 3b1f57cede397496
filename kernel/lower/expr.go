package lower

import (
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/ir/program"
)

// expressions writes values, each in the outermost loop it can stand in.
type expressions struct {
	*lowering
	pure    map[*ir.UOp]bool
	floats  map[*program.Value]float64 // scalar constants
	ints    map[*program.Value]int64   // constants, by value or vector
	pending map[*ir.UOp]bool
	chosen  map[*program.Value][]*program.Value // scalar floats of a WHERE: its operands
}

// lower gives the value of a node at coordinates: a scalar, or a vector over
// those lane ranges that it depends on. It is emitted once, in the outermost
// scope where it can stand.
func (l *expressions) lower(u *ir.UOp, at coords) val {
	d := l.scopes.depth(u)
	k := l.scopes.key(u, at)
	if v, ok := l.scopes.stack[d].memo[k]; ok {
		return v
	}
	s := l.scopes.stack[d]
	var out val
	l.scopes.in(d, func() {
		before := l.b.MakeFor(l.Arena.Origin(u))
		out = l.compute(u, at)
		l.b.MakeAgainFor(before)
	})
	s.memo[k] = out
	return out
}

// compute emits a node into the current scope.
func (l *expressions) compute(u *ir.UOp, at coords) val {
	if l.isStatic(u) {
		return l.staticValue(u, at)
	}
	switch u.Op {
	case ir.OpConst:
		return l.scalarVal(l.constant(u))
	case ir.OpVar:
		return l.scalarVal(l.memory.params[u])
	case ir.OpRange:
		return l.rangeVal(u)
	case ir.OpLoad, ir.OpField:
		return l.memory.lowerLoad(u, at)
	case ir.OpReduce:
		return l.loops.lowerReduce(u, at)
	case ir.OpProj:
		return l.tuples.lowerProj(u, at)
	case ir.OpAssume:
		return l.lower(u.Src[0], at)
	case ir.OpWhere:
		return l.lowerWhere(u, at)
	case ir.OpCmpLt:
		if words := l.memory.comparedLanes(u, at); words != nil {
			return l.lower(words, at)
		}
		if bits := l.memory.bitsOfLanes(u, at); bits != nil {
			return l.lower(bits, at)
		}
	case ir.OpMul, ir.OpAdd, ir.OpSub, ir.OpNeg, ir.OpCast:
		if u.Op == ir.OpCast {
			if out, ok := l.words.lowerLookUp(u, at); ok {
				return out
			}
		}
		if len(u.Src) == 1 && !l.mayPend(u) {
			break
		}
		if u.Op == ir.OpAdd && !l.block.onGPU() { // there a conversion of bytes takes an offset along
			if narrow := l.wide.narrowSum(u); narrow != nil {
				return l.lower(narrow, at)
			}
		}
		if u.Op == ir.OpMul {
			if out, ok := l.words.lowerWord(u, at); ok {
				return out
			}
		}
		if out, ok := l.lowerPending(u, at); ok {
			return l.settleShared(u, out)
		}
	}
	if out, ok := l.scopes.lowerBits(u, at); ok {
		return out
	}
	if !u.Op.IsElementwise() {
		fail("%s cannot be lowered", u.Op)
	}
	return l.elementwise(u, at)
}

func (l *expressions) rangeVal(u *ir.UOp) val {
	i := l.free.Index.Of(u)
	if l.block.threads.Has(i) {
		return val{v: l.block.threadIndex(i)}
	}
	for d := l.scopes.top(); d >= 0; d-- {
		if v := l.scopes.stack[d].index[i]; v != nil {
			return val{v: v, depth: d}
		}
	}
	fail("range %d is not open", u.Arg.(ir.RangeArg).ID)
	return val{}
}

// lowerWhere evaluates both arms (loads in them are kept in bounds) unless the
// condition is known at these coordinates.
func (l *expressions) lowerWhere(u *ir.UOp, at coords) val {
	switch known, ok := l.known(u.Src[0], at); {
	case ok && known != 0:
		return l.lower(u.Src[1], at)
	case ok:
		return l.lower(u.Src[2], at)
	}
	return l.elementwise(u, at)
}

// elementwise emits an operation on settled operands.
func (l *expressions) elementwise(u *ir.UOp, at coords) val {
	target := l.laneSubAxes(u, at)
	return l.alu(u.Op, u.DType, lists.Map(u.Src, func(s *ir.UOp) val { return l.settle(l.wide.operand(s, at, target)) })...)
}

// Deferred folding: REDUCE(ADD; lane) leaves its lanes pending. Sums and
// products with values that do not depend on those lanes keep them so; anything
// else settles the value first. A matrix-vector product folds once per row.

// lowerPending handles arithmetic that is linear in a pending operand.
func (l *expressions) lowerPending(u *ir.UOp, at coords) (val, bool) {
	if !l.mayPend(u) {
		return l.wide.contract(u, at)
	}
	x := l.lower(u.Src[0], at)
	if len(u.Src) == 1 {
		if x.pend.Empty() {
			return val{}, false
		}
		out := l.alu(u.Op, u.DType, x)
		out.pend = x.pend
		return out, true
	}
	y := l.lower(u.Src[1], at)
	if x.pend.Empty() && y.pend.Empty() {
		return val{}, false
	}
	if u.Op == ir.OpMul {
		x, y = l.wide.besideOpen(u, x, y, at)
		x, y = l.factors(x, y, u)
	} else if x.pend != y.pend {
		return val{}, false
	}
	pend := x.pend.Union(y.pend)
	out := l.alu(u.Op, u.DType, x, y)
	out.pend = pend
	return out, true
}

// mayPend reports that a lane sum below u can reach it unsettled.
func (l *expressions) mayPend(u *ir.UOp) bool {
	if p, ok := l.pending[u]; ok {
		return p
	}
	p := false
	switch u.Op {
	case ir.OpReduce:
		i := l.free.Index.Of(u.ReduceRange())
		pends := l.folds.pends(i) && !(l.Dots.Has(i) && l.wide.isDot(u)) // a dot leaves no lane to be summed
		p = u.Arg.(ir.ReduceArg).Op == ir.OpAdd && (pends || l.mayPend(u.Src[0]))
	case ir.OpCast: // of the sum's parts instead of the sum: class A
		p = u.DType == ir.F32 && u.Src[0].DType == ir.I32 && l.mayPend(u.Src[0])
	case ir.OpAdd, ir.OpSub, ir.OpMul, ir.OpNeg:
		p = slices.ContainsFunc(u.Src, l.mayPend)
	}
	l.pending[u] = p
	return p
}

// factors prepares two factors: at most one stays pending, and the other does
// not depend on its pending lanes or threads, nor, on a CPU, on lanes that the first has not:
// each of those would have all pending lanes. They are those of the product u.
func (l *expressions) factors(x, y val, u *ir.UOp) (val, val) {
	if !x.pend.Empty() && !y.pend.Empty() {
		y = l.settle(y)
	}
	x, y = l.settleWide(x), l.settleWide(y)
	if !x.pend.Empty() && (dependsOn(y, x.pend) || l.multiplies(x, y) || l.follows(u.Src[1], x) || !l.free.Of(u.Src[1]).Meet(l.sharing(x.pend)).Empty()) {
		x = l.settle(x)
	}
	if !y.pend.Empty() && (dependsOn(x, y.pend) || l.multiplies(y, x) || l.follows(u.Src[0], y) || !l.free.Of(u.Src[0]).Meet(l.sharing(y.pend)).Empty()) {
		y = l.settle(y)
	}
	return x, y
}

// settleShared settles a sum that is open over threads where several values are made of it:
// each of them would be folded by shuffles, one after the other.
func (l *expressions) settleShared(u *ir.UOp, x val) val {
	if l.wide.uses[u] < 2 || x.pend.Meet(l.block.threads).Empty() {
		return x
	}
	return l.settle(x)
}

// follows reports a factor that is made of a sum over threads over which x is open: x would be folded after
// that sum and all that is made of it, not beside it.
func (l *expressions) follows(factor *ir.UOp, x val) bool {
	over := x.pend.Meet(l.block.threads)
	return !over.Empty() && analyse.Any(factor, func(u *ir.UOp) bool {
		return u.Op == ir.OpReduce && over.Has(l.free.Index.Of(u.ReduceRange()))
	})
}

// settleWide settles a sum that is open over many registers, before it is
// multiplied: each of them would be.
func (l *expressions) settleWide(x val) val {
	if l.block.onGPU() || x.pend.Empty() || l.laneCount(x.subAxes)*x.elem().Size() <= 2*l.Desc.VectorBytes {
		return x
	}
	return l.settle(x)
}

// multiplies reports lanes of y beside which the pending lanes of x would be repeated.
func (l *expressions) multiplies(x, y val) bool {
	return !x.pend.Meet(l.lanes).Empty() && !l.block.onGPU() && len(unionSubAxes(x.subAxes, y.subAxes)) > len(x.subAxes)
}

// sharing is the thread ranges whose sub-axes lie, wholly or in part, where those
// of a set lie: what depends on them differs between the threads of an open sum.
func (l *expressions) sharing(over analyse.RangeSet) analyse.RangeSet {
	var out analyse.RangeSet
	for _, i := range over.Meet(l.block.threads).List() {
		for k, d := range l.block.subAxes {
			if mine := l.block.subAxes[i]; d.stride%mine.end() != 0 && mine.stride%d.end() != 0 {
				out.Add(k)
			}
		}
	}
	return out
}

// Static values: those that depend on copies and lanes alone.
