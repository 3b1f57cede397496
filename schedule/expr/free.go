package expr

import (
	"slices"

	"tgc/ir"
)

// FreeMemo answers which ranges a node uses that no REDUCE or STAGE below it
// closes, as a list sorted by id. Lists are shared and must not be changed.
type FreeMemo struct{ lists ir.NodeMap[[]*ir.UOp] }

// Of returns the free ranges of u.
func (m *FreeMemo) Of(u *ir.UOp) []*ir.UOp {
	if len(u.Src) == 0 {
		return nil
	}
	if list, ok := m.lists.Get(u); ok {
		return list
	}
	list := m.compute(u)
	m.lists.Set(u, list)
	return list
}

func (m *FreeMemo) compute(u *ir.UOp) []*ir.UOp {
	if u.Op != ir.OpProj {
		return freeBelow(u, m.Of)
	}
	tuple := u.Src[0]
	values := tuple.ReduceValues()
	list := Union(m.Of(values[0]), m.Of(values[u.Arg.(ir.IntArg)]))
	return closeRanges(list, m.Of, tuple.ReduceRange())
}

// MentionMemo is freeMemo that also counts what a projection hides: the ranges
// of all components of its tuple. Whoever substitutes must reach those too,
// else the tuple of one projection parts from that of its neighbour.
type MentionMemo struct{ lists ir.NodeMap[[]*ir.UOp] }

// Of returns the ranges that occur in u and are not closed there.
func (m *MentionMemo) Of(u *ir.UOp) []*ir.UOp {
	if len(u.Src) == 0 {
		return nil
	}
	list, ok := m.lists.Get(u)
	if !ok {
		list = freeBelow(u, m.Of)
		m.lists.Set(u, list)
	}
	return list
}

// freeBelow is the free ranges of u from those of its sources.
func freeBelow(u *ir.UOp, of func(*ir.UOp) []*ir.UOp) []*ir.UOp {
	var list []*ir.UOp
	switch u.Op {
	case ir.OpRange:
		return Union([]*ir.UOp{u}, of(u.Src[0]))
	case ir.OpReduce:
		for _, v := range u.ReduceValues() {
			list = Union(list, of(v))
		}
		return closeRanges(list, of, u.ReduceRange())
	case ir.OpStage:
		return closeRanges(of(u.Src[0]), of, u.Src[1:]...)
	}
	for _, src := range u.Src {
		list = Union(list, of(src))
	}
	return list
}

// closeRanges removes ranges from a list and adds the free ranges of their
// extents.
func closeRanges(list []*ir.UOp, of func(*ir.UOp) []*ir.UOp, ranges ...*ir.UOp) []*ir.UOp {
	out := Without(list, ranges)
	for _, r := range ranges {
		out = Union(out, of(r.Src[0]))
	}
	return out
}

// CompareRanges orders ranges by id, then by structure (closed ranges of one
// height may differ in extent).
func CompareRanges(x, y *ir.UOp) int {
	if d := RangeID(x) - RangeID(y); d != 0 || x == y {
		return d
	}
	switch hx, hy := x.Hash(), y.Hash(); {
	case hx < hy:
		return -1
	case hx > hy:
		return 1
	}
	return 0
}

// Union merges two sorted lists.
func Union(x, y []*ir.UOp) []*ir.UOp {
	if len(x) == 0 {
		return y
	}
	if len(y) == 0 || Contains(x, y) {
		return x
	}
	if Contains(y, x) {
		return y
	}
	out := make([]*ir.UOp, 0, len(x)+len(y))
	for len(x) > 0 && len(y) > 0 {
		switch d := CompareRanges(x[0], y[0]); {
		case x[0] == y[0]:
			out = append(out, x[0])
			x, y = x[1:], y[1:]
		case d < 0:
			out = append(out, x[0])
			x = x[1:]
		default:
			out = append(out, y[0])
			y = y[1:]
		}
	}
	return append(append(out, x...), y...)
}

// Contains reports y is a subset of x (both sorted).
func Contains(x, y []*ir.UOp) bool {
	i := 0
	for _, r := range y {
		for i < len(x) && x[i] != r {
			i++
		}
		if i == len(x) {
			return false
		}
	}
	return true
}

// Without removes ranges from a list.
func Without(list, ranges []*ir.UOp) []*ir.UOp {
	hit := false
	for _, r := range ranges {
		hit = hit || slices.Contains(list, r)
	}
	if !hit {
		return list
	}
	out := make([]*ir.UOp, 0, len(list))
	for _, r := range list {
		if !slices.Contains(ranges, r) {
			out = append(out, r)
		}
	}
	return out
}

// Sorted returns ranges as a sorted list.
func Sorted(ranges []*ir.UOp) []*ir.UOp {
	out := slices.Clone(ranges)
	slices.SortFunc(out, CompareRanges)
	return out
}
