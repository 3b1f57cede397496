package place

import (
	"slices"

	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/schedule/expr"
	"tgc/schedule/state"
)

// split-grid: a reduce that is long, in a kernel with too few independent
// points to fill the target, is cut into a constant number of chunks,
// t = c*chunk + t'. Every component of the reduce becomes a value of its own
// over (scope, c, its private ranges), a part; the parts are joined into one
// kernel. The reduce itself then runs over the parts, REDUCE(M, part0[c]..; c):
// the same lambda, because an element of a softmax is itself (maximum, sums),
// and one of mean and variance (mean, squares, count). What is left of the value
// is light, and placement, run again, stages it before its readers,
// or leaves it a kernel of its own.
//
// Only the serial extent of a chunk depends on symbols, never the grid: with an
// attention over length rows chunk is ceildiv(length, splits). Points past the
// end are gated to the reduce's identity: the lowest number for a running
// maximum, 0 for what is weighted with it, so that rows past the end, which may
// hold anything, are not even read.

// SplitGrid applies the rule to every value.
func SplitGrid(s *state.State) {
	if s.Opt.Profile.GridSplits < 2 {
		return
	}
	s.NameValues()
	parts := make(map[*ir.UOp]*state.Value)
	worth, alike := splitsOf(s)
	if len(alike) == 0 {
		return // none is
	}
	for i, n := 0, len(s.Values); i < n; i++ {
		v := s.Values[i]
		if v.Dead || s.Height(v.Body) == 0 {
			continue
		}
		with := make(map[*ir.UOp]*ir.UOp)
		for _, u := range gridReduces(s.Exprs, v.Body) {
			splits := alike[keyOf(s.Exprs, v, u)]
			if splits < 2 {
				continue
			}
			if worth[u] < 2 {
				s.Record(v, true, "parts of the same row are there", state.Number{Name: "splits", Value: splits})
			}
			if _, _, _, product := matrixTiles(s, v, u); product {
				splitProduct(s, v, u, splits, parts, with)
			} else {
				splitReduce(s, v, u, splits, parts, with)
			}
		}
		if len(with) > 0 {
			s.SetBody(v, s.Substitute(v.Body, with))
		}
	}
}

// splitsOf is the number of chunks that each reduce is worth, and by what their first components fold the largest of them. A
// maximum alone is not worth a launch where the maximum and sum of the same row are, whose parts have it already.
func splitsOf(s *state.State) (worth, alike map[*ir.UOp]int64) {
	worth, alike = make(map[*ir.UOp]int64), make(map[*ir.UOp]int64)
	each := func(visit func(v *state.Value, u *ir.UOp)) {
		for _, v := range s.Values {
			if !v.Dead && s.Height(v.Body) > 0 {
				for _, u := range gridReduces(s.Exprs, v.Body) {
					visit(v, u)
				}
			}
		}
	}
	pays := false
	each(func(v *state.Value, u *ir.UOp) {
		worth[u] = gridSplits(s, v, u)
		pays = pays || worth[u] > 1
	})
	if pays {
		each(func(v *state.Value, u *ir.UOp) {
			key := keyOf(s.Exprs, v, u)
			alike[key] = max(alike[key], worth[u])
		})
	}
	return worth, alike
}

// keyOf is what the first component of a reduce folds, with ranges named by their places.
func keyOf(s *expr.Exprs, v *state.Value, u *ir.UOp) *ir.UOp {
	value := u.ReduceValues()[0]
	with := map[*ir.UOp]*ir.UOp{u.ReduceRange(): s.A.Range(expr.AnchorBase, u.ReduceRange().Src[0])}
	for _, r := range v.StoreLoops() {
		if slices.Contains(s.Free.Of(value), r) {
			with[r] = s.A.Range(expr.AnchorBase+len(with), r.Src[0])
		}
	}
	return s.A.Make(ir.OpSink, ir.Void, nil, s.Substitute(value, with), with[u.ReduceRange()])
}

// gridReduces lists the outermost reduces of a body that are in no stage and
// in no arm of a WHERE, in preorder: a part is computed at every point of its
// scope, also where the WHERE would not look.
func gridReduces(s *expr.Exprs, body *ir.UOp) []*ir.UOp {
	var out []*ir.UOp
	ir.Walk(func(u *ir.UOp) []*ir.UOp {
		switch {
		case s.Height(u) == 0 || u.Op == ir.OpStage:
			return nil
		case u.Op == ir.OpReduce:
			out = append(out, u)
			return nil
		case u.Op == ir.OpWhere:
			return u.Src[:1]
		}
		return u.Src
	}, body)
	return out
}

// gridSplits is the number of chunks that a reduce is worth, 1 for none:
// parallelism wanted against a launch edge.
func gridSplits(s *state.State, v *state.Value, u *ir.UOp) int64 {
	p := &s.Opt.Profile
	scope, private := reduceScope(s.Exprs, v, u)
	if private == nil {
		s.Record(v, false, "components of a tuple differ in their ranges")
		return 1
	}
	parallel := s.Points(scope)
	extent := max(s.Bounds.Of(u.ReduceRange().Src[0]).Hi, 1)
	if choice, ok := s.DecisionOn(v, state.Rule(s.Pass.Name)); ok && choice != state.Apply {
		splits := min(max(int64(choice), 1), extent/2) // a chunk of 1 would have no range
		s.Record(v, splits > 1, state.Decided, state.Number{Name: "splits", Value: splits}, state.Number{Name: "extent", Value: extent})
		return splits
	}
	if splits, product := matrixSplits(s, v, u); product {
		return splits
	}
	if parallel >= p.Parallel {
		s.Record(v, false, "enough parallel points", state.Number{Name: "points", Value: parallel}, state.Number{Name: "wanted", Value: p.Parallel})
		return 1
	}
	splits := min((p.Parallel+parallel-1)/parallel, gridChunks(s, foldedPoints(s, u), weighed(s, private)), max(extent/2, 1)) // a chunk of 1 would have no range
	if splits < 2 {
		s.Record(v, false, "too short", state.Number{Name: "extent", Value: extent}, state.Number{Name: "chunk", Value: p.GridChunk})
		return 1
	}
	work, blocks := s.Work(u, nil), int64(1)
	if analyse.IsTuple(u) {
		work += expr.Saturate(extent, expr.CombineQuotients(u))
	}
	if slices.ContainsFunc(private, func(own []*ir.UOp) bool { return len(own) > 0 }) {
		blocks = clusters(s, u, parallel)
	}
	if saved := work/blocks - work/splits; saved < p.LaunchEdge {
		s.Record(v, false, "a launch edge costs more", state.Number{Name: "saved", Value: saved}, state.Number{Name: "edge", Value: p.LaunchEdge}, state.Number{Name: "extent", Value: extent})
		return 1
	}
	s.Record(v, true, "parts", state.Number{Name: "splits", Value: splits}, state.Number{Name: "extent", Value: extent},
		state.Number{Name: "points", Value: parallel}, state.Number{Name: "wanted", Value: p.Parallel}, state.Number{Name: "work", Value: work}, state.Number{Name: "edge", Value: p.LaunchEdge})
	return splits
}

// gridChunks is how many chunks a reduce of an extent is cut into at most, each point of which is so many elements; 1 where
// the target cuts none.
func gridChunks(s *state.State, extent, elements int64) int64 {
	p := &s.Opt.Profile
	if p.GridSplits < 2 {
		return 1
	}
	return max(min(max(p.GridSplits, expr.Saturate(extent, elements)/max(p.GridPiece, 1)), extent/max(p.GridChunk, 2)), 1)
}

// weighed is how many elements a tuple weighs at each point: those of the largest of its private ranges.
func weighed(s *state.State, private [][]*ir.UOp) int64 {
	most := int64(1)
	for _, own := range private {
		most = max(most, s.Points(own))
	}
	return most
}

// clusters is how many blocks share a softmax that weighs rows anyway, in one kernel: with clusters on more than
// half of the multiprocessors parts were faster (docs/bench/h200-clusters.txt).
func clusters(s *state.State, u *ir.UOp, parallel int64) int64 {
	n := int64(1)
	for s.A.MonoidOf(u).Rescales && 2*n <= s.Opt.Profile.Clusters && 4*n*parallel <= s.Opt.Profile.Workers {
		n *= 2
	}
	return n
}

// reduceScope parts the store's loops into those that blocks divide among
// themselves and, by component of the reduce, the private ones. private is nil
// where the components of a tuple cannot be computed apart.
func reduceScope(s *expr.Exprs, v *state.Value, u *ir.UOp) (scope []*ir.UOp, private [][]*ir.UOp) {
	values := u.ReduceValues()
	first := s.Free.Of(values[0])
	separable := s.A.MonoidOf(u).Separable
	private = make([][]*ir.UOp, len(values))
	scope = v.StoreLoops()
	for i, x := range values {
		own := ir.WithoutRanges(ir.WithoutRanges(s.Free.Of(x), first), expr.BinderRanges(u))
		if len(own) > 0 && !separable {
			return scope, nil
		}
		private[i] = own
		scope = ir.WithoutRanges(scope, own)
	}
	return scope, private
}

// splitReduce makes the parts of a reduce and puts their combination into with.
func splitReduce(s *state.State, v *state.Value, u *ir.UOp, splits int64, parts map[*ir.UOp]*state.Value, with map[*ir.UOp]*ir.UOp) {
	a := s.A
	s.Groups++
	extent := u.ReduceRange().Src[0]
	chunk := s.Simplify(a.Div(a.Add(extent, a.Index(splits-1)), a.Index(splits)))
	if n, ok := extent.Int(); ok {
		n, splits = chunkOf(&s.Opt.Profile, n, splits)
		chunk = a.Index(n)
	}
	c, inner := s.NewRange(a.Index(splits)), s.NewRange(chunk)
	t := s.Simplify(a.Add(a.Mul(c, chunk), inner))
	gate := s.Simplify(a.Lt(t, extent))
	if s.Simplify(a.Mul(chunk, a.Index(splits))) == extent {
		gate = a.ConstInt(ir.Bool, 1)
	}
	arg := u.Arg.(ir.ReduceArg)
	n := len(u.ReduceValues())
	values := make([]*ir.UOp, n)
	for i, x := range u.ReduceValues() {
		values[i] = s.SimplifyNode(a.Where(gate, s.Substitute(x, map[*ir.UOp]*ir.UOp{u.ReduceRange(): t}), a.ReduceIdentity(u, i)))
	}
	combine := s.NewRange(a.Index(splits))
	reads := make([]*ir.UOp, n)
	for i := range values {
		reads[i] = partRead(s, v, partOf(s.Exprs, u, values, i, inner), chunks{at: c, combine: combine}, parts)
	}
	if arg.Op != ir.OpInvalid {
		with[u] = s.CloseReduce(a.Reduce(arg.Op, reads[0], combine))
		return
	}
	tuple := s.CloseReduce(a.TupleReduce(reads, combine, u.ReduceIdentities(), u.ReduceCombine()))
	for i := range n {
		with[a.Proj(u, i)] = a.Proj(tuple, i)
	}
}

// chunkOf is the length of the chunks of a constant extent, and their number. Long ones are
// multiples of what threads or lanes share, so that only the last of all has points past the end.
func chunkOf(p *state.Profile, extent, splits int64) (chunk, count int64) {
	chunk = (extent + splits - 1) / splits
	if lanes := max(p.RowLanes, p.Lanes); extent%splits != 0 && chunk >= longChunk*lanes {
		chunk = (chunk + lanes - 1) / lanes * lanes
	}
	return chunk, (extent + chunk - 1) / chunk
}

// longChunk is the length from which chunks are multiples of these, in those.
const longChunk = 16

// partOf is component i of a chunk. Of a separable tuple each part has only the
// components that it needs, and the key alone is a plain fold: joined into a
// kernel they become one node again.
func partOf(s *expr.Exprs, u *ir.UOp, values []*ir.UOp, i int, inner *ir.UOp) *ir.UOp {
	arg := u.Arg.(ir.ReduceArg)
	if arg.Op != ir.OpInvalid {
		return s.CloseReduce(s.A.Reduce(arg.Op, values[0], inner))
	}
	if m := s.A.MonoidOf(u); m.Separable {
		if i == 0 {
			return s.CloseReduce(s.A.Reduce(m.Key, values[0], inner))
		}
		return s.A.Proj(s.CloseReduce(s.A.Fold(m, []*ir.UOp{values[0], values[i]}, inner)), 1)
	}
	return s.A.Proj(s.CloseReduce(s.A.TupleReduce(values, inner, u.ReduceIdentities(), u.ReduceCombine())), i)
}
