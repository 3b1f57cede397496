package tensor

import (
	"slices"

	"tgc/internal/lists"
)

// Fold adds windows up to what they were taken from, where they overlap: t is [N, C*K, L] of K
// elements of each window and L windows, both row-major over the axes of size; the result is
// [N, C, size..]. Windows slide as in pooling, but one element apart unless options say more.
func (t *Tensor) Fold(size, kernel []int, options ...PoolOptions) *Tensor {
	o := optional(t, options)
	if !t.ok() {
		return t.bad()
	}
	axes := len(size)
	stride, ok1 := spatialList(o.Stride, axes, 1, 1)
	padding, ok2 := spatialList(o.Padding, axes, 0, 0)
	dilation, ok3 := spatialList(o.Dilation, axes, 1, 1)
	if axes == 0 || len(kernel) != axes || slices.Min(kernel) < 1 || slices.Min(size) < 1 || t.Rank() != 3 || !ok1 || !ok2 || !ok3 {
		return t.graph.fail("", "%s to %v, kernel %v, options %+v", t, size, kernel, o)
	}
	counts := make([]int, axes)
	for i := range axes {
		counts[i] = window{kernel[i], stride[i], dilation[i]}.count(size[i] + 2*padding[i])
	}
	n, channels, elements := t.Extent(0), t.Extent(1)/lists.Product(kernel), lists.Product(kernel)
	if t.Extent(1) != channels*elements || t.Extent(2) != lists.Product(counts) {
		return t.graph.fail("", "%s to %v, kernel %v: want a multiple of %d elements of %d windows", t, size, kernel, elements, lists.Product(counts))
	}
	out := t.wide().Reshape(slices.Concat([]int{n, channels}, kernel, counts)...)
	for i := range axes { // [N C S.. kernel.. counts..]: the first of both become an axis
		at := 2 + i
		out = out.MoveAxis(at+axes-i, at+1)
		out = out.overlapped(at, window{kernel[i], stride[i], dilation[i]}, size[i]+2*padding[i])
		out = out.SliceInts(at, padding[i], size[i])
	}
	return out.Cast(t.DType())
}

// overlapped makes one axis of n elements of axis k, the elements of windows, and the one after
// it, the windows.
func (t *Tensor) overlapped(k int, w window, n int) *Tensor {
	var sum *Tensor
	for e := range w.size {
		part := t.SliceInts(k, e, 1).Squeeze(k).spaceOut(k, w.stride)
		offset, extent := e*w.dilation, part.Extent(k)
		part = part.Pad(k, offset, max(n-offset-extent, 0)).SliceInts(k, 0, n)
		if sum == nil {
			sum = part
		} else {
			sum = sum.Add(part)
		}
	}
	return sum
}
