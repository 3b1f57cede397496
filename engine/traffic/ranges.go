package traffic

import (
	"math"
	"math/bits"
	"slices"

	"tgc/ir"
)

// extents answers which ranges an expression depends on and how many points
// they have together.
type extents struct {
	bounds *ir.Bounds
	free   map[*ir.UOp][]*ir.UOp
}

func newExtents(root *ir.UOp) *extents {
	e := &extents{bounds: ir.NewBounds(), free: make(map[*ir.UOp][]*ir.UOp)}
	for _, u := range ir.Toposort(root) {
		e.free[u] = e.compute(u)
	}
	return e
}

// compute returns the ranges that u uses and no REDUCE or STAGE below it closes.
func (e *extents) compute(u *ir.UOp) []*ir.UOp {
	var list []*ir.UOp
	add := func(from *ir.UOp) {
		for _, r := range e.free[from] {
			if !slices.Contains(list, r) {
				list = append(list, r)
			}
		}
	}
	switch u.Op {
	case ir.OpRange:
		list = append(list, u)
		add(u.Src[0])
		return list
	case ir.OpProj:
		// A component depends on the first one (the key that the combine
		// compares) and on itself.
		tuple := u.Src[0]
		values := tuple.ReduceValues()
		add(values[0])
		add(values[u.Arg.(ir.IntArg)])
		list = without(list, tuple.ReduceRange())
		add(tuple.ReduceRange().Src[0])
		return list
	}
	for _, s := range u.Src {
		add(s)
	}
	switch u.Op {
	case ir.OpReduce:
		list = without(list, u.ReduceRange())
		add(u.ReduceRange().Src[0])
	case ir.OpStage:
		for _, r := range u.Src[1:] {
			list = without(list, r)
			add(r.Src[0])
		}
	}
	return list
}

func without(list []*ir.UOp, r *ir.UOp) []*ir.UOp {
	out := make([]*ir.UOp, 0, len(list))
	for _, x := range list {
		if x != r {
			out = append(out, x)
		}
	}
	return out
}

// points is the number of points of ranges together.
func (e *extents) points(ranges []*ir.UOp) int64 {
	n := int64(1)
	for _, r := range ranges {
		n = times(n, e.size(r.Src[0]))
	}
	return n
}

// size is the largest value of an extent; the kernel's VARs have been replaced
// by their values, so most are constants.
func (e *extents) size(extent *ir.UOp) int64 {
	if n, ok := extent.Int(); ok {
		return max(n, 0)
	}
	return max(e.bounds.Of(extent).Hi, 0)
}

// union merges lists of ranges.
func union(lists ...[]*ir.UOp) []*ir.UOp {
	var out []*ir.UOp
	for _, list := range lists {
		for _, r := range list {
			if !slices.Contains(out, r) {
				out = append(out, r)
			}
		}
	}
	return out
}

// times multiplies counts and stays at the largest where that overflows.
func times(a, b int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi != 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(lo)
}

// plus adds counts and stays at the largest where that overflows.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
