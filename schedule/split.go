package schedule

import (
	"slices"

	"tgc/ir"
)

// R8, grid split: a reduce that is long, in a kernel with too few independent
// points to fill the target, is cut into a constant number of chunks,
// t = c*chunk + t'. Every component of the reduce becomes a value of its own
// over (scope, c, its private ranges), a part; the parts are joined into one
// kernel. The reduce itself then runs over the parts, REDUCE(M, part0[c]..; c):
// the same lambda, because an element of a softmax is itself (maximum, sums),
// and one of mean and variance (mean, squares, count). What is left of the value
// is light, and placement, run again, stages it in front of its readers (R6p),
// or leaves it a kernel of its own.
//
// Only the serial extent of a chunk depends on symbols, never the grid: with an
// attention over length rows chunk is ceildiv(length, splits). Points past the
// end are gated to the reduce's identity: the lowest number for a running
// maximum, 0 for what is weighted with it, so that rows past the end, which may
// hold anything, are not even read.

// splitGrids applies R8 to every value.
func (s *scheduler) splitGrids() {
	if s.opt.Profile.GridSplits < 2 {
		return
	}
	parts := make(map[*ir.UOp]*value)
	for i, n := 0, len(s.values); i < n; i++ {
		v := s.values[i]
		if v.dead || s.height(v.body) == 0 {
			continue
		}
		with := make(map[*ir.UOp]*ir.UOp)
		for _, u := range s.gridReduces(v.body) {
			if splits := s.gridSplits(v, u); splits > 1 {
				s.splitReduce(v, u, splits, parts, with)
			}
		}
		if len(with) > 0 {
			s.setBody(v, s.substitute(v.body, with))
		}
	}
}

// gridReduces lists the outermost reduces of a body that stand in no stage and
// in no arm of a WHERE, in preorder: a part is computed at every point of its
// scope, also where the WHERE would not look.
func (s *scheduler) gridReduces(body *ir.UOp) []*ir.UOp {
	var out []*ir.UOp
	var seen ir.Visited
	var visit func(u *ir.UOp)
	visit = func(u *ir.UOp) {
		if s.height(u) == 0 || u.Op == ir.OpStage || !seen.Add(u) {
			return
		}
		if u.Op == ir.OpReduce {
			out = append(out, u)
			return
		}
		for i, src := range u.Src {
			if u.Op != ir.OpWhere || i == 0 {
				visit(src)
			}
		}
	}
	visit(body)
	return out
}

// gridSplits is the number of chunks that a reduce is worth, 1 for none:
// parallelism wanted against a launch edge.
func (s *scheduler) gridSplits(v *value, u *ir.UOp) int64 {
	p := &s.opt.Profile
	scope, private := s.reduceScope(v, u)
	if private == nil {
		s.record(GridSplit, v, false, "components of a tuple differ in their ranges")
		return 1
	}
	parallel := s.points(scope)
	if parallel >= p.Parallel {
		s.record(GridSplit, v, false, "enough parallel points", Number{"points", parallel}, Number{"wanted", p.Parallel})
		return 1
	}
	extent := max(s.bounds.Of(u.ReduceRange().Src[0]).Hi, 1)
	splits := min(p.GridSplits, (p.Parallel+parallel-1)/parallel, extent/max(p.GridChunk, 2)) // a chunk of 1 would have no range
	if splits < 2 {
		s.record(GridSplit, v, false, "too short", Number{"extent", extent}, Number{"chunk", p.GridChunk})
		return 1
	}
	work := s.work(u, nil)
	if saved := work - work/splits; saved < p.LaunchEdge {
		s.record(GridSplit, v, false, "a launch edge costs more", Number{"saved", saved}, Number{"edge", p.LaunchEdge})
		return 1
	}
	s.record(GridSplit, v, true, "parts", Number{"splits", splits}, Number{"extent", extent},
		Number{"points", parallel}, Number{"wanted", p.Parallel}, Number{"work", work}, Number{"edge", p.LaunchEdge})
	return splits
}

// reduceScope parts the store's loops into those that blocks divide among
// themselves and, by component of the reduce, the private ones. private is nil
// for a tuple whose lambda is not known to allow components on their own.
func (s *scheduler) reduceScope(v *value, u *ir.UOp) (scope []*ir.UOp, private [][]*ir.UOp) {
	values := u.ReduceValues()
	first := s.free.of(values[0])
	_, softmax := s.a.IsSoftmax(u)
	private = make([][]*ir.UOp, len(values))
	scope = v.storeLoops()
	for i, x := range values {
		own := without(without(s.free.of(x), first), binderRanges(u))
		if len(own) > 0 && !softmax {
			return scope, nil
		}
		private[i] = own
		scope = without(scope, own)
	}
	return scope, private
}

// splitReduce makes the parts of a reduce and puts their combination into with.
func (s *scheduler) splitReduce(v *value, u *ir.UOp, splits int64, parts map[*ir.UOp]*value, with map[*ir.UOp]*ir.UOp) {
	a := s.a
	s.groups++
	extent := u.ReduceRange().Src[0]
	chunk := s.simplify(a.Div(a.Add(extent, a.Index(splits-1)), a.Index(splits)))
	c, inner := s.newRange(a.Index(splits)), s.newRange(chunk)
	t := s.simplify(a.Add(a.Mul(c, chunk), inner))
	gate := s.simplify(a.Lt(t, extent))
	if n, ok := extent.Int(); ok && n%splits == 0 {
		gate = a.ConstInt(ir.Bool, 1)
	}
	arg := u.Arg.(ir.ReduceArg)
	n := len(u.ReduceValues())
	values := make([]*ir.UOp, n)
	for i, x := range u.ReduceValues() {
		neutral := s.neutral(u, i)
		values[i] = s.simplifyNode(a.Where(gate, s.substitute(x, map[*ir.UOp]*ir.UOp{u.ReduceRange(): t}), neutral))
	}
	combine := s.newRange(a.Index(splits))
	reads := make([]*ir.UOp, n)
	for i := range values {
		reads[i] = s.partRead(v, s.partOf(u, values, i, inner), c, combine, parts)
	}
	if arg.Op != ir.OpInvalid {
		with[u] = s.closeReduce(a.Reduce(arg.Op, reads[0], combine))
		return
	}
	tuple := s.closeReduce(a.TupleReduce(reads, combine, u.Src[n+1:2*n+1], u.Src[2*n+1:]))
	for i := range n {
		with[a.Proj(u, i)] = a.Proj(tuple, i)
	}
}

// neutral is the value that component i takes past the end.
func (s *scheduler) neutral(u *ir.UOp, i int) *ir.UOp {
	arg := u.Arg.(ir.ReduceArg)
	if arg.Op == ir.OpInvalid {
		return u.Src[arg.N+1+i]
	}
	identity := ir.ReduceIdentity(arg.Op, u.DType)
	if u.DType.IsFloat() {
		return s.a.Const(u.DType, identity.F)
	}
	return s.a.ConstInt(u.DType, identity.I)
}

// partOf is component i of a chunk. Of a softmax each part has only the
// components that it needs, and the maximum alone is a plain one: joined into a
// kernel they become one node again.
func (s *scheduler) partOf(u *ir.UOp, values []*ir.UOp, i int, inner *ir.UOp) *ir.UOp {
	arg := u.Arg.(ir.ReduceArg)
	if arg.Op != ir.OpInvalid {
		return s.closeReduce(s.a.Reduce(arg.Op, values[0], inner))
	}
	if c, ok := s.a.IsSoftmax(u); ok {
		if i == 0 {
			return s.closeReduce(s.a.Reduce(ir.OpMax, values[0], inner))
		}
		return s.a.Proj(s.softmaxTuple([]*ir.UOp{values[0], values[i]}, inner, c), 1)
	}
	n := arg.N
	return s.a.Proj(s.closeReduce(s.a.TupleReduce(values, inner, u.Src[n+1:2*n+1], u.Src[2*n+1:])), i)
}

// partRead makes the value of a part, or finds an equal one, and reads it at the
// loops of v and chunk combine.
func (s *scheduler) partRead(v *value, body, c, combine *ir.UOp, parts map[*ir.UOp]*value) *ir.UOp {
	var ranges, private []*ir.UOp
	free := s.free.of(body)
	scope := s.scopeOf(body)
	for _, r := range v.storeLoops() {
		switch {
		case !slices.Contains(free, r):
		case slices.Contains(scope, r):
			ranges = append(ranges, r)
		default:
			private = append(private, r)
		}
	}
	ranges = append(append(ranges, c), private...)
	with := make(map[*ir.UOp]*ir.UOp, len(ranges))
	for i, r := range ranges {
		with[r] = s.a.Range(anchorBase+i, r.Src[0])
	}
	key := s.substitute(body, with)
	part, ok := parts[key]
	if !ok {
		part = s.newValue(body.DType, nil, nil)
		s.setSignature(part, ranges, body)
		part.pinned, part.group = true, s.groups
		part.reasons = []string{GridSplit.String() + " of " + v.label()}
		s.users = append(s.users, nil)
		s.readMemo = append(s.readMemo, reads{})
		s.linkReads(part)
		parts[key] = part
	}
	index := make([]*ir.UOp, len(ranges))
	for i, r := range ranges {
		index[i] = r
		if r == c {
			index[i] = combine
		}
	}
	return s.a.Load(part.node, index...)
}

// scopeOf lists the ranges of a part that are not private to a component.
func (s *scheduler) scopeOf(body *ir.UOp) []*ir.UOp {
	if body.Op == ir.OpProj {
		return s.free.of(body.Src[0].Src[0])
	}
	return s.free.of(body)
}
