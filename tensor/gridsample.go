package tensor

import "tgc/ir"

// GridOptions says how GridSample reads between and beside pixels.
type GridOptions struct {
	// Nearest takes the pixel that is nearest, of two that are as near the even one; else the
	// four around a place count, by how near they are.
	Nearest bool
	// Outside says what is beside the image: zeros for PadConstant, the edge for PadReplicate,
	// the image mirrored for PadReflect (at the edge's pixels if corners are aligned, else at
	// their outer borders).
	Outside PadMode
	// AlignCorners has -1 and 1 be the middles of the first and the last pixel; else they are
	// their outer borders.
	AlignCorners bool
}

// GridSample reads images t [N, C, H, W] at places grid [N, h, w, 2], x and y from -1 (left,
// top) to 1: the result is [N, C, h, w]. Derivatives are those by t and, if not of the
// nearest, by the grid.
func (t *Tensor) GridSample(grid *Tensor, options ...GridOptions) *Tensor {
	o := optional(t, options)
	if !t.ok() || !grid.ok() {
		return t.bad()
	}
	if t.Rank() != 4 || grid.Rank() != 4 || grid.Extent(3) != 2 || grid.Dim(0) != t.Dim(0) || t.DType() != grid.DType() || !t.DType().IsFloat() || o.Outside > PadReplicate {
		return t.graph.fail("", "%s at %s, outside %s; want [N C H W] at [N h w 2]", t, grid, o.Outside)
	}
	image, places := t.wide(), grid.wide()
	n, h, w := places.Extent(0), places.Extent(1), places.Extent(2)
	place := func(i int) *Tensor { return places.SliceInts(3, i, 1).Reshape(n, 1, h*w) }
	x, y := o.pixels(place(0), image.Extent(3)), o.pixels(place(1), image.Extent(2))
	var out *Tensor
	if o.Nearest {
		out = image.pixel(x.Round(), y.Round())
	} else {
		left, top := x.Floor(), y.Floor()
		right, below := x.Sub(left), y.Sub(top)
		across := func(row *Tensor) *Tensor {
			a, b := image.pixel(left, row), image.pixel(left.AddScalar(1), row)
			return a.Mul(right.Neg().AddScalar(1)).Add(b.Mul(right))
		}
		out = across(top).Mul(below.Neg().AddScalar(1)).Add(across(top.AddScalar(1)).Mul(below))
	}
	return out.Reshape(n, image.Extent(1), h, w).Cast(t.DType())
}

// pixels are places as numbers of pixels of an axis of n.
func (o GridOptions) pixels(place *Tensor, n int) *Tensor {
	last := float64(n - 1)
	at := place.AddScalar(1).MulScalar(float64(n) / 2).AddScalar(-0.5)
	low, high := -0.5, last+0.5
	if o.AlignCorners {
		at = place.AddScalar(1).MulScalar(last / 2)
		low, high = 0, last
	}
	if o.Outside == PadReflect && high > low {
		// A distance goes there and back again in every two spans.
		span := high - low
		distance := at.AddScalar(-low).Abs()
		turns := distance.MulScalar(1 / (2 * span)).Floor().MulScalar(2 * span)
		there := distance.Sub(turns)
		at = there.Le(there.scalar(span)).Where(there, there.Neg().AddScalar(2*span)).AddScalar(low)
	}
	if o.Outside != PadConstant {
		at = at.ClampMin(0).ClampMax(last)
	}
	return at
}

// pixel is the pixels at whole numbers [N 1 P] of images [N C H W]: [N C P]; 0 outside.
func (t *Tensor) pixel(x, y *Tensor) *Tensor {
	h, w := t.Extent(2), t.Extent(3)
	within := func(at *Tensor, n int) *Tensor {
		return at.scalar(0).Le(at).And(at.Le(at.scalar(float64(n - 1))))
	}
	inside := within(x, w).And(within(y, h))
	index := func(at *Tensor, n int) *Tensor { // NaN and what is far outside too
		return within(at, n).Where(at, at.scalar(0)).Cast(ir.I32)
	}
	flat := index(y, h).MulScalar(float64(w)).Add(index(x, w))
	return inside.Where(t.Flatten(2, 3).TakeAlong(-1, flat), t.scalar(0))
}
