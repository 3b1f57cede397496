package tensor

import (
	"math"

	"tgc/internal/lists"
	"tgc/ir"
)

// Full is a tensor of equal elements.
func (g *Graph) Full(dtype ir.DType, value float64, shape ...int) *Tensor {
	if !promotable(dtype) {
		return g.fail("", "elements of %s", dtype)
	}
	return g.Scalar(dtype, value).fill(g.Dims(shape...))
}

// Zeros is a tensor of zeros.
func (g *Graph) Zeros(dtype ir.DType, shape ...int) *Tensor { return g.Full(dtype, 0, shape...) }

// Ones is a tensor of ones.
func (g *Graph) Ones(dtype ir.DType, shape ...int) *Tensor { return g.Full(dtype, 1, shape...) }

// Eye is the n x n matrix with ones on its diagonal.
func (g *Graph) Eye(dtype ir.DType, n int) *Tensor {
	if !promotable(dtype) {
		return g.fail("", "elements of %s", dtype)
	}
	i := g.Iota(ir.I32, g.Dims(n)[0])
	return i.Unsqueeze(1).Eq(i).Where(g.Scalar(dtype, 1), g.Scalar(dtype, 0))
}

// Arange is start, start+step, .. as long as it is below stop (above it for a negative
// step). Element i is start + i*step, rounded once.
func (g *Graph) Arange(dtype ir.DType, start, stop, step float64) *Tensor {
	count := math.Ceil((stop - start) / step)
	switch {
	case !dtype.IsInt() && !dtype.IsFloat():
		return g.fail("", "elements of %s, want numbers", dtype)
	case step == 0 || count != count || count > math.MaxInt32:
		return g.fail("", "from %v to %v in steps of %v; want at most %d elements", start, stop, step, math.MaxInt32)
	case dtype.IsInt() && (start != math.Trunc(start) || step != math.Trunc(step)):
		return g.fail("", "%s from %v in steps of %v; want integers", dtype, start, step)
	}
	wide := ir.F64
	if dtype.IsInt() {
		wide = ir.I64
	}
	i := g.Iota(wide, g.Dims(max(int(count), 0))[0])
	return i.MulScalar(step).AddScalar(start).Cast(dtype)
}

// Linspace is n numbers at equal distances, the first start and the last end; of one,
// start.
func (g *Graph) Linspace(dtype ir.DType, start, end float64, n int) *Tensor {
	if !dtype.IsFloat() || n < 0 {
		return g.fail("", "%d elements of %s, want floats", n, dtype)
	}
	i := g.Iota(ir.F64, g.Dims(n)[0])
	step := (end - start) / float64(max(n-1, 1))
	// The half that is nearer to the end is counted from it, so that it is met exactly.
	up := i.MulScalar(step).AddScalar(start)
	down := i.AddScalar(-float64(n - 1)).MulScalar(step).AddScalar(end)
	return i.Lt(g.Scalar(ir.F64, float64(n)/2)).Where(up, down).Cast(dtype)
}

// Meshgrid repeats vectors over a grid: result k is vector k along axis k, and the same
// along the others.
func Meshgrid(vectors ...*Tensor) []*Tensor {
	extents := make([]*ir.UOp, len(vectors))
	for k, v := range vectors {
		switch {
		case !v.ok():
			return lists.Map(vectors, func(*Tensor) *Tensor { return v.bad() })
		case v.Rank() != 1:
			bad := v.graph.fail("", "%s, want vectors", v)
			return lists.Map(vectors, func(*Tensor) *Tensor { return bad })
		}
		extents[k] = v.Dim(0)
	}
	grids := make([]*Tensor, len(vectors))
	for k, v := range vectors {
		shape := lists.Make(len(vectors), func(int) *ir.UOp { return v.graph.arena.Index(1) })
		shape[k] = extents[k]
		grids[k] = v.ReshapeDims(shape...).ExpandDims(extents...)
	}
	return grids
}
