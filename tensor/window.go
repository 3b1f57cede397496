package tensor

// Unfold makes windows of size elements, step apart, of an axis: the axis
// becomes the number of windows, and a last axis holds the elements of each.
func (t *Tensor) Unfold(axis, size, step int) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	k, ok := normalAxis(axis, t.Rank())
	if !ok || size < 1 || step < 1 || size > t.Extent(k) {
		return t.graph.fail("unfold", "axis %d of %s into windows of %d, step %d", axis, t, size, step)
	}
	return t.windows(k, window{size: size, stride: step, dilation: 1}).MoveAxis(k+1, -1)
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
