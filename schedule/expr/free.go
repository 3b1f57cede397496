package expr

import (
	"slices"

	"tgc/ir"
)

// newFree answers which ranges a node uses that no REDUCE or STAGE below it
// closes, as a list sorted by id. Lists are shared and must not be changed. With
// mentions it counts what a projection hides too, see ir.Free.
func newFree(mentions bool) ir.Free[[]*ir.UOp] {
	return ir.Free[[]*ir.UOp]{
		Mentions: mentions,
		RangeSets: ir.RangeSets[[]*ir.UOp]{
			One:   func(r *ir.UOp) []*ir.UOp { return []*ir.UOp{r} },
			Union: Union, Without: Without,
		},
	}
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

// DependsOn reports that u uses one of the ranges.
func (s *Exprs) DependsOn(u *ir.UOp, ranges ...*ir.UOp) bool {
	for _, r := range s.Free.Of(u) {
		if slices.Contains(ranges, r) {
			return true
		}
	}
	return false
}
