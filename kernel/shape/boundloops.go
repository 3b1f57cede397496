package shape

import (
	"slices"

	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/kernel/plan"
)

// Limits of loops. Causal attention scores -inf after its query, a triangular sum
// adds 0 above its diagonal: elements that are the identity of their reduce from
// some point on, which the comparison in a WHERE names. The loop over what the
// plan leaves of the range ends there. The limit is the largest over everything
// that one pass of the loop serves, copies, lanes and threads, so that it depends
// on work units and outer loops of the store alone and the threads of a block run
// the loop equally often.
//
// A limit has to follow the work unit by arithmetic. One that is the same for all
// of them, or is loaded (positions of a batch), would have each loop wait for a
// load of which decoding gains nothing: its cache is as long as its position.

// limitPasses is the fewest passes of a loop that is worth a limit.
const limitPasses = 8

// limitAtoms bounds the nodes of a limit.
const limitAtoms = 64

// limiter derives the limit of one range.
type limiter struct {
	*State
	over *ir.UOp // the range
	// outside reports a range of which the loop has one value.
	outside func(r *ir.UOp) bool
}

// newLimiter is that of the loop over a range which some reduces share.
func newLimiter(st *State, over *ir.UOp, reduces []*ir.UOp, free *analyse.FreeSets) *limiter {
	common := free.Of(reduces[0])
	for _, u := range reduces {
		common = common.Meet(free.Of(u))
	}
	return &limiter{State: st, over: over, outside: func(x *ir.UOp) bool {
		return common.Has(free.Index.Of(x)) && (st.roles[x] == plan.Grid || st.roles[x] == plan.Serial)
	}}
}

// boundLoops notes, for each reduce axis, the point from which on all elements of
// all reduces over it are identities. Store axes have been split, reduces not.
func boundLoops(st *State, sink *ir.UOp, plans []Axis) (*ir.UOp, []Axis) {
	reduces := make(map[*ir.UOp][]*ir.UOp)
	for _, u := range ir.Toposort(sink) {
		if u.Op == ir.OpReduce {
			reduces[u.ReduceRange()] = append(reduces[u.ReduceRange()], u)
		}
	}
	free, err := plan.NewFree(sink)
	if err != nil {
		return sink, plans // order-ranges reports it
	}
	out := slices.Clone(plans)
	for i, p := range plans {
		if over := reduces[p.Axis.Range]; p.Axis.Kind == plan.ReduceAxis && p.Rest == plan.Serial && passes(st, p) >= limitPasses && len(over) > 0 {
			out[i].Limit = limitOver(st, p.Axis.Range, over, free.FreeSets)
		}
	}
	return sink, out
}

// passes is the most passes of the loop that a plan leaves of an axis.
func passes(st *State, p Axis) int64 {
	n := st.bounds.Of(p.Axis.Range.Src[0]).Hi
	for _, seg := range p.Segments {
		n /= max(seg.Size, 1)
	}
	return n
}

// limitOver is the limit that all reduces over a range have, or nil.
func limitOver(st *State, r *ir.UOp, reduces []*ir.UOp, free *analyse.FreeSets) *ir.UOp {
	var limit *ir.UOp
	l := newLimiter(st, r, reduces, free)
	for _, u := range reduces {
		n := l.ofReduce(u)
		switch {
		case n == nil:
			return nil
		case limit == nil:
			limit = n
		default:
			limit = st.Arena.Binary(ir.OpMax, limit, n)
		}
	}
	if limit = st.simp.Do(limit); !l.follows(limit) {
		return nil
	}
	for _, x := range ir.Toposort(limit) {
		if x.Op == ir.OpRange && rises(limit, x) {
			st.rising[x] = true
		}
	}
	return limit
}

// rises reports an expression that grows with a range wherever it depends on it.
func rises(u, r *ir.UOp) bool {
	switch u.Op {
	case ir.OpRange:
		return u == r
	case ir.OpAdd, ir.OpMin, ir.OpMax:
		return rises(u.Src[0], r) || rises(u.Src[1], r)
	case ir.OpCast:
		return rises(u.Src[0], r)
	case ir.OpMul, ir.OpFloorDiv:
		k, ok := u.Src[1].Int()
		return ok && k > 0 && rises(u.Src[0], r)
	}
	return false
}

// follows reports a limit that moves with a range by arithmetic.
func (l *limiter) follows(u *ir.UOp) bool {
	return u.Op == ir.OpRange || u.Op.IsElementwise() && slices.ContainsFunc(u.Src, l.follows)
}

// ofReduce is the limit of one reduce: that of its elements, of a softmax that of
// its scores, of another tuple the largest of its components.
func (l *limiter) ofReduce(u *ir.UOp) *ir.UOp {
	a := l.Arena
	if analyse.IsPlain(u) {
		return l.ofElement(u.Src[0], a.ReduceIdentity(u, 0))
	}
	if m := a.MonoidOf(u); m.Rescales {
		if n := l.ofElement(u.Src[0], a.FoldIdentity(m.Key, u.DType)); n != nil {
			return n
		}
	}
	limit := a.Index(0)
	for i, v := range u.ReduceValues() {
		n := l.ofElement(v, a.ReduceIdentity(u, i))
		if n == nil {
			return nil
		}
		limit = a.Binary(ir.OpMax, limit, n)
	}
	return limit
}

// ofElement is the point from which on a value is the identity.
func (l *limiter) ofElement(v, identity *ir.UOp) *ir.UOp {
	if v.Op != ir.OpWhere {
		return nil
	}
	switch {
	case v.Src[2] == identity:
		return l.lesser(l.ofCondition(v.Src[0], true), l.ofElement(v.Src[1], identity))
	case v.Src[1] == identity:
		return l.lesser(l.ofCondition(v.Src[0], false), l.ofElement(v.Src[2], identity))
	}
	return nil
}

// lesser is the smaller of two limits of which either may be unknown.
func (l *limiter) lesser(x, y *ir.UOp) *ir.UOp {
	switch {
	case x == nil:
		return y
	case y == nil:
		return x
	}
	return l.Arena.Binary(ir.OpMin, x, y)
}

// ofCondition is the point from which on a condition is never so.
func (l *limiter) ofCondition(c *ir.UOp, so bool) *ir.UOp {
	switch c.Op {
	case ir.OpNot:
		return l.ofCondition(c.Src[0], !so)
	case ir.OpAnd, ir.OpOr:
		x, y := l.ofCondition(c.Src[0], so), l.ofCondition(c.Src[1], so)
		if so == (c.Op == ir.OpAnd) {
			return l.lesser(x, y)
		}
		if x == nil || y == nil {
			return nil
		}
		return l.Arena.Binary(ir.OpMax, x, y)
	case ir.OpCmpLt:
		if !c.Src[0].DType.IsInt() && c.Src[0].DType != ir.Idx {
			return nil
		}
		if so {
			return l.solve(c.Src[0], c.Src[1], 1)
		}
		return l.solve(c.Src[1], c.Src[0], 0)
	}
	return nil
}

// solve is the point of the range from which on small + gap <= large is false.
func (l *limiter) solve(small, large *ir.UOp, gap int64) *ir.UOp {
	a := l.Arena
	coef, rest := l.along(small)
	if coef <= 0 {
		return nil
	}
	most := l.edge(large, true)
	if most == nil {
		return nil
	}
	room := a.Add(a.Sub(most, rest), a.Index(-gap))
	n := a.Add(a.Div(room, a.Index(coef)), a.Index(1))
	if len(ir.Toposort(n)) > limitAtoms {
		return nil
	}
	return n
}

// along splits an integer: it is never below coef times the range plus rest, which
// does not depend on the range. 0 where it is not known to grow with the range.
func (l *limiter) along(u *ir.UOp) (coef int64, rest *ir.UOp) {
	a := l.Arena
	switch {
	case u == l.over:
		return 1, a.Index(0)
	case !analyse.Uses(u, l.over):
		return 0, l.edge(u, false)
	case u.Op == ir.OpCast && l.keeps(u):
		return l.along(u.Src[0])
	case u.Op == ir.OpAdd && l.exact(u, false):
		c0, x := l.along(u.Src[0])
		c1, y := l.along(u.Src[1])
		if x != nil && y != nil {
			return c0 + c1, a.Add(x, y)
		}
	case u.Op == ir.OpMul && l.exact(u, false):
		c, x := l.along(u.Src[0])
		if k, ok := u.Src[1].Int(); ok && k > 0 && x != nil {
			return c * k, a.Mul(x, a.Index(k))
		}
	}
	return 0, nil
}

// edge is a value that an integer never exceeds (never falls below), of what the
// loop has one value.
func (l *limiter) edge(u *ir.UOp, upper bool) *ir.UOp {
	a := l.Arena
	if v, ok := u.Int(); ok {
		return a.Index(v)
	}
	if l.isOutside(u) {
		return a.Cast(u, ir.Idx)
	}
	both := func(flip bool) (x, y *ir.UOp, ok bool) {
		x, y = l.edge(u.Src[0], upper), l.edge(u.Src[1], upper != flip)
		return x, y, x != nil && y != nil
	}
	switch u.Op {
	case ir.OpRange:
		if !upper {
			return a.Index(0)
		}
		if n := l.edge(u.Src[0], true); n != nil {
			return a.Add(n, a.Index(-1))
		}
	case ir.OpCast:
		if l.keeps(u) {
			return l.edge(u.Src[0], upper)
		}
	case ir.OpAdd:
		if x, y, ok := both(false); ok && l.exact(u, upper) {
			return a.Add(x, y)
		}
	case ir.OpSub:
		if x, y, ok := both(true); ok && l.exact(u, upper) {
			return a.Sub(x, y)
		}
	case ir.OpMin, ir.OpMax:
		if x, y, ok := both(false); ok {
			return a.Binary(u.Op, x, y)
		}
	case ir.OpMul, ir.OpFloorDiv:
		k, constant := u.Src[1].Int()
		if !constant || k == 0 || u.Op == ir.OpFloorDiv && k < 0 || !l.exact(u, upper) {
			break
		}
		if x := l.edge(u.Src[0], upper == (k > 0)); x != nil {
			return a.Binary(u.Op, x, a.Index(k))
		}
	}
	v := l.bounds.Of(u)
	if !v.Within(-1<<40, 1<<40) {
		return nil
	}
	if upper {
		return a.Index(v.Hi)
	}
	return a.Index(v.Lo)
}

// isOutside reports an integer of which the loop has one value, made of ranges,
// variables and elements of buffers.
func (l *limiter) isOutside(u *ir.UOp) bool {
	if u.DType == ir.U64 {
		return false
	}
	nodes := ir.Toposort(u)
	if len(nodes) > limitAtoms {
		return false
	}
	for _, x := range nodes {
		switch {
		case x.Op == ir.OpRange && !l.outside(x):
			return false
		case x.Op == ir.OpRange, x.Op == ir.OpVar, x.Op == ir.OpParam, x.Op == ir.OpLoad && x.Src[0].Op == ir.OpParam, x.Op.IsElementwise() && x.Op != ir.OpRng:
		case x.Op == ir.OpConst:
		default:
			return false
		}
	}
	return true
}

// keeps reports a conversion of integers that keeps every value.
func (l *limiter) keeps(u *ir.UOp) bool {
	from, to := u.Src[0].DType, u.DType
	if from.IsFloat() || from == ir.Bool || from == ir.U64 || to == ir.U64 || to == ir.Bool || to.IsFloat() {
		return false
	}
	if to == ir.Idx {
		return true
	}
	lo, hi := to.IntRange()
	return l.bounds.Of(u.Src[0]).Within(lo, hi)
}

// exact reports arithmetic that does not wrap around to a larger (smaller) value
// than the true one.
func (l *limiter) exact(u *ir.UOp, upper bool) bool {
	if u.DType == ir.Idx {
		return true
	}
	if u.DType == ir.U64 || u.DType == ir.I64 {
		return false
	}
	a := l.Arena
	wide := a.Binary(u.Op, a.Cast(u.Src[0], ir.Idx), a.Cast(u.Src[1], ir.Idx))
	lo, hi := u.DType.IntRange()
	v := l.bounds.Of(wide)
	if upper {
		return v.Lo >= lo
	}
	return v.Hi <= hi
}
