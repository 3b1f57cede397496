package traffic

import (
	"math"
	"math/bits"

	"tgc/ir"
)

// extents answers which ranges an expression depends on and how many points
// they have together.
type extents struct {
	bounds *ir.Bounds
	free   *ir.FreeRanges
}

func newExtents() *extents { return &extents{ir.NewBounds(), ir.NewFreeRanges()} }

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
