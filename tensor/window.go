package tensor

// Unfold makes windows of size elements, step apart, of an axis: the axis
// becomes the number of windows, and a last axis holds the elements of each. The derivative
// adds as many terms an element as there are windows over it.
func (t *Tensor) Unfold(axis, size, step int) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	k, ok := normalAxis(axis, t.Rank())
	if !ok || size < 1 || step < 1 || size > t.Extent(k) {
		return t.graph.fail("unfold", "axis %d of %s into windows of %d, step %d", axis, t, size, step)
	}
	w := window{size: size, stride: step, dilation: 1}
	y := t.windows(k, w).MoveAxis(k+1, -1)
	if step >= size || !t.DType().IsFloat() {
		return y
	}
	return y.derived([]*Tensor{t}, func(_, g *Tensor, _ []*Tensor) []*Tensor {
		return []*Tensor{g.widely(func(g *Tensor) *Tensor { return g.MoveAxis(-1, k+1).laidOver(k, w, t.Extent(k)) })}
	})
}

// laidOver adds windows, axis k, whose elements are the axis after it, up to the n elements that they were taken from:
// a slice of the windows for each step that they reach, in which one follows the other.
func (t *Tensor) laidOver(k int, w window, n int) *Tensor {
	steps := (w.size + w.stride - 1) / w.stride
	t = t.Pad(k+1, 0, steps*w.stride-w.size)
	var sum *Tensor
	for i := range steps {
		before := i * w.stride
		x := t.SliceInts(k+1, before, w.stride).Flatten(k, k+1)
		x = x.Pad(k, before, max(n-before-x.Extent(k), 0)).SliceInts(k, 0, n)
		if sum == nil {
			sum = x
		} else {
			sum = sum.Add(x)
		}
	}
	return sum
}

// window describes the windows that slide along one axis: the elements of
// each, how far apart its elements are and how far apart the windows.
type window struct{ size, stride, dilation int }

// reach is the number of positions that a window spans.
func (w window) reach() int { return (w.size-1)*w.dilation + 1 }

// count is the number of whole windows on an axis of n positions.
func (w window) count(n int) int {
	if n < w.reach() {
		return 0
	}
	return (n-w.reach())/w.stride + 1
}

// windows replaces axis k by two: which window, and which of its elements.
// Nothing is copied: the index of the source is o*stride + e*dilation.
func (t *Tensor) windows(k int, w window) *Tensor {
	n := t.Extent(k)
	count := w.count(n)
	if count == 0 {
		return t.SliceInts(k, 0, 0).Unsqueeze(k+1).stretch(k+1, w.size)
	}
	if w.dilation == 1 && w.stride >= w.size {
		whole := count * w.stride
		t = t.SliceInts(k, 0, min(n, whole)).Pad(k, 0, max(whole-n, 0))
		return t.rows(k, count, w.stride).SliceInts(k+1, 0, w.size)
	}
	// The axis once for each element of a window, one after another, cut into
	// rows that are dilation longer than it: row e starts at element e*dilation.
	long := n + w.dilation
	t = t.turns(k, w.size).Pad(k, 0, w.size*w.dilation).rows(k, w.size, long)
	t = t.SliceInts(k+1, 0, (count-1)*w.stride+1).every(k+1, w.stride)
	return t.Transpose(k, k+1)
}
