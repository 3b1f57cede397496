package shape

import (
	"fmt"
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/kernel/plan"
)

// splitStores cuts the ranges of stores. A range whose extent mentions another one,
// such as the chunk of a split reduce, is a new node when that one is cut: its axis
// is bound to it.
func splitStores(st *State) error {
	if err := st.split(plan.StoreAxis); err != nil {
		return err
	}
	st.Axes = rebind(st.Sink, st.Axes)
	return nil
}

// splitReduces cuts the ranges of reduces and stages.
func splitReduces(st *State) error { return st.split(plan.ReduceAxis, plan.StageAxis) }

// split cuts the axes of some kinds in one substitution.
func (st *State) split(kinds ...plan.AxisKind) error {
	cuts := plan.Boundaries(st.Arena, st.Sink)
	st.Axes = slices.Clone(st.Axes)
	sp := &splitter{State: st, splits: make(map[*ir.UOp]*Split), sums: make(map[*ir.UOp][]*ir.UOp)}
	for i := range st.Axes {
		p := &st.Axes[i]
		if !slices.Contains(kinds, p.Axis.Kind) {
			continue
		}
		s, err := splitAxis(st, i, *p, cuts[p.Axis.Range])
		if err != nil {
			return err
		}
		p.Split, sp.splits[p.Axis.Range] = s, s
	}
	st.Sink = st.simp.Do(sp.rebuild(st.Sink))
	return nil
}

// dotOrder puts the points of a dot instruction after all other lanes, those of the rows of an
// epilogue's tile among them: the bytes that it sums are neighbours.
const dotOrder = 1 << 12

// splitAxis cuts one axis into sub-axes. Within lanes and copies it also cuts at
// the boundaries of index expressions, so that indices become linear.
func splitAxis(st *State, position int, p Axis, cuts []int64) (*Split, error) {
	a, r := st.Arena, p.Axis.Range
	size, constant := p.Axis.Size()
	at, s := int64(1), &Split{}
	var subAxes []SubAxis
	add := func(stride, n int64, role plan.Role) {
		subAxes = append(subAxes, SubAxis{Range: st.newRange(a.Index(n)), Stride: stride, Role: role})
	}
	for k, seg := range p.Segments {
		if k == p.Tile {
			s.Tile = at
		}
		n := seg.Size
		if n == 0 {
			if !constant {
				return nil, fmt.Errorf("kernel: plan: %s: %s without an amount needs a constant extent", p.Axis.Name, seg.Role)
			}
			n = max((size+at-1)/at, 1)
		}
		matrix := k < len(plan.RowSegments) && plan.IsMatrixSide(p.Segments) // whose tiles are whole
		if constant && at*n >= 2*size && !matrix {
			return nil, fmt.Errorf("kernel: plan: %s: %d elements in sub-axes, the extent is %d", p.Axis.Name, at*n, size)
		}
		if n == 1 {
			continue
		}
		lo := at
		if seg.Role == plan.Lane || seg.Role == plan.Unroll {
			for _, c := range plan.ChainWithin(cuts, at, at*n) {
				add(lo, c/lo, seg.Role)
				lo = c
			}
		}
		add(lo, at*n/lo, seg.Role)
		if p.Dot && len(subAxes) == 1 && at == 1 {
			st.dots[subAxes[0].Range] = seg.Role == plan.Lane && n == plan.WordElements
		}
		at *= n
	}
	if p.Tile == len(p.Segments) {
		s.Tile = at
	}
	rest := st.ceilDiv(r.Src[0], at)
	if !rest.IsInt(1) || len(subAxes) == 0 || p.Tile == len(p.Segments) && p.Tile > 0 {
		passes := rest
		if p.Limit != nil {
			passes = st.simp.Do(a.Binary(ir.OpMin, rest, st.ceilDiv(p.Limit, at)))
		}
		subAxes = append(subAxes, SubAxis{Range: st.newRange(passes), Stride: at, Role: p.Rest})
	}
	s.value = a.Index(0)
	for i, d := range slices.Backward(subAxes) {
		s.SubAxes = append(s.SubAxes, d)
		s.value = a.Add(s.value, a.Mul(d.Range, a.Index(d.Stride)))
		order := orderKey{position, len(subAxes) - i}
		if st.dots[d.Range] {
			order.axis += dotOrder
		}
		st.place(d.Range, d.Role, order)
	}
	if !st.bounds.Of(r.Src[0]).DivisibleBy(at) {
		st.splitTail(p, s, st.tileElements(p, subAxes))
	}
	return s, nil
}

// rebuild substitutes sp.splits in a kernel.
func (sp *splitter) rebuild(sink *ir.UOp) *ir.UOp {
	a := sp.Arena
	out := a.Rebuild(sink, func(u *ir.UOp, src []*ir.UOp) *ir.UOp {
		switch {
		case u.Op == ir.OpRange && sp.splits[u] != nil:
			return sp.splits[u].value
		case u.Op == ir.OpReduce && sp.splits[u.ReduceRange()] != nil:
			return sp.rebuildReduce(u, src)
		case u.Op == ir.OpProj && sp.sums[u.Src[0]] != nil:
			return sp.sums[u.Src[0]][u.Arg.(ir.IntArg)]
		case u.Op == ir.OpStage:
			return a.With(u, append(src[:1:1], sp.subAxisRanges(u.Src[1:])...))
		case u.Op == ir.OpLoad && u.Src[0].Op == ir.OpStage:
			return a.Load(src[0], sp.subAxisIndices(u.Src[0].Src[1:], src[1:])...)
		case u.Op == ir.OpStore:
			n := 2 + int(u.Arg.(ir.IntArg))
			return a.With(u, append(src[:n:n], sp.subAxisRanges(u.Src[n:])...))
		}
		return nil
	})
	once := readsStored(sink) || slices.ContainsFunc(sp.Axes, func(x Axis) bool { return x.Scatter })
	for i, store := range sink.Src {
		sp.gates[i] = append(sp.gates[i], sp.gatesOf(store.Ranges(), once)...)
	}
	return out
}

func (sp *splitter) subAxisRanges(ranges []*ir.UOp) []*ir.UOp {
	var out []*ir.UOp
	for _, r := range ranges {
		s := sp.splits[r]
		if s == nil {
			out = append(out, r)
			continue
		}
		for _, d := range s.SubAxes {
			out = append(out, d.Range)
		}
	}
	return out
}

func (sp *splitter) gatesOf(ranges []*ir.UOp, once bool) []*ir.UOp {
	var out []*ir.UOp
	for _, r := range ranges {
		if s := sp.splits[r]; s != nil {
			if cond := s.condition(sp.Arena, once); cond != nil {
				out = append(out, cond)
			}
		}
	}
	return out
}

// subAxisIndices splits a stage's index per split range: sub-axis i of index x is
// x/stride, modulo the sub-axis's extent except for the highest.
func (sp *splitter) subAxisIndices(ranges, index []*ir.UOp) []*ir.UOp {
	a := sp.Arena
	var out []*ir.UOp
	for k, r := range ranges {
		s := sp.splits[r]
		if s == nil {
			out = append(out, index[k])
			continue
		}
		for i, d := range s.SubAxes {
			x := a.Div(index[k], a.Index(d.Stride))
			if i > 0 {
				x = a.Mod(x, d.Range.Src[0])
			}
			out = append(out, x)
		}
	}
	return out
}

// rebuildReduce nests a reduce over the sub-axes of its range, high sub-axis
// outermost. An element of the monoid is a partial result, so a tuple nests
// through its projections.
func (sp *splitter) rebuildReduce(u *ir.UOp, src []*ir.UOp) *ir.UOp {
	a := sp.Arena
	arg := u.Arg.(ir.ReduceArg)
	s := sp.splits[u.ReduceRange()]
	values := append([]*ir.UOp(nil), src[:arg.N]...)
	switch {
	case s.last != nil && s.last.apart != nil:
		return sp.softmaxApart(u, s, values)
	case s.last != nil:
		return sp.reduceApart(u, s, values[0])
	}
	for i, v := range values {
		values[i] = s.gatedElement(sp.State, u, v, a.ReduceIdentity(u, i))
	}
	if analyse.IsTuple(u) {
		if m := a.MonoidOf(u); m.Rescales {
			return sp.rebuildSoftmax(m, s, values, u)
		}
		return nestTuple(sp.State, values, s.nest(), u)
	}
	return s.nestPlain(a, arg.Op, values[0])
}

// reduceApart is a reduce over the tiles of the loop, and the last one.
func (sp *splitter) reduceApart(u *ir.UOp, s *Split, v *ir.UOp) *ir.UOp {
	a, op := sp.Arena, u.Arg.(ir.ReduceArg).Op
	at := func(start *ir.UOp) *ir.UOp { return a.Substitute(v, map[*ir.UOp]*ir.UOp{s.last.start: start}) }
	one := Split{SubAxes: s.SubAxes[1:]}
	end := s.gatedElement(sp.State, u, at(s.last.end), a.ReduceIdentity(u, 0))
	return a.Binary(op, s.nestPlain(a, op, at(s.last.loop)), one.nestPlain(a, op, end))
}

// softmaxApart is a softmax over the tiles of its loop, combined with that of the elements behind it.
func (sp *splitter) softmaxApart(u *ir.UOp, s *Split, values []*ir.UOp) *ir.UOp {
	a, n := sp.Arena, len(values)
	at := func(with map[*ir.UOp]*ir.UOp) []*ir.UOp {
		return lists.Map(values, func(v *ir.UOp) *ir.UOp { return a.Substitute(v, with) })
	}
	tiles := sp.rebuildSoftmax(a.MonoidOf(u), s, at(map[*ir.UOp]*ir.UOp{s.last.start: s.last.loop}), u)
	single := map[*ir.UOp]*ir.UOp{s.last.start: s.last.end}
	for _, d := range s.SubAxes[1:] {
		single[d.Range] = a.Index(0)
	}
	rest := a.TupleReduce(at(single), s.last.apart, u.ReduceIdentities(), u.ReduceCombine())
	both := slices.Concat(projections(a, tiles, n), projections(a, rest, n))
	sp.sums[u] = lists.Map(u.ReduceCombine(), func(body *ir.UOp) *ir.UOp {
		return a.Rebuild(body, func(x *ir.UOp, _ []*ir.UOp) *ir.UOp {
			if x.Op != ir.OpArg {
				return nil
			}
			return both[x.Arg.(ir.IntArg)]
		})
	})
	return sp.sums[u][0]
}
