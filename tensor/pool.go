package tensor

import (
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
)

// PoolOptions says how a pooling window slides: one number for each pooled axis,
// or one for all. The zero value is stride = kernel, no padding, dilation 1.
type PoolOptions struct {
	Stride, Padding, Dilation []int
	Ceil                      bool // a last window may reach past the end
	ExcludePadding            bool // AvgPool divides by the number of real elements
}

// MaxPool is the largest element in windows over the last axes of t, one for
// each number of kernel. Padding never wins.
func (t *Tensor) MaxPool(kernel []int, options ...PoolOptions) *Tensor {
	o := optional(t, options)
	p, ok := t.pooling("max_pool", kernel, o)
	if !ok {
		return t.bad()
	}
	lowest := ir.ReduceIdentity(ir.OpMax, t.DType())
	value := float64(lowest.I)
	if t.DType().IsFloat() {
		value = lowest.F
	}
	return p.windowsOf(t, value).reduce(ir.OpMax, false, p.elements())
}

// AvgPool is the mean in windows over the last axes of t, one for each number of
// kernel. Padding counts as zeros, unless it is excluded; what a last window
// covers past the padding never counts.
func (t *Tensor) AvgPool(kernel []int, options ...PoolOptions) *Tensor {
	o := optional(t, options)
	p, ok := t.pooling("avg_pool", kernel, o)
	if !ok {
		return t.bad()
	}
	sum := p.windowsOf(t.wide(), 0).Sum(p.elements()...)
	var divisor *Tensor
	for i := range p.axes {
		count := p.counts(i, t.Extent(p.first+i), !o.ExcludePadding)
		shape := slices.Repeat([]int{1}, t.Rank())
		shape[p.first+i] = len(count)
		n := t.graph.Table(sum.DType(), count, shape...)
		if divisor == nil {
			divisor = n
		} else {
			divisor = divisor.Mul(n)
		}
	}
	return sum.Div(divisor).Cast(t.DType())
}

// pooling holds the windows of the last axes, axes from first on.
type pooling struct {
	first, axes    int
	slide          []window
	before, number []int // padding before and number of windows of each axis
}

func (t *Tensor) pooling(op string, kernel []int, o PoolOptions) (p pooling, ok bool) {
	if !t.ok() {
		return p, false
	}
	n := len(kernel)
	stride, ok1 := spatialList(o.Stride, n, 0, 1)
	padding, ok2 := spatialList(o.Padding, n, 0, 0)
	dilation, ok3 := spatialList(o.Dilation, n, 1, 1)
	if n == 0 || n > t.Rank() || !ok1 || !ok2 || !ok3 {
		t.graph.fail(op, "%s, kernel %v, options %+v", t, kernel, o)
		return p, false
	}
	p = pooling{first: t.Rank() - n, axes: n, before: padding}
	for i, size := range kernel {
		w := window{size: size, stride: stride[i], dilation: dilation[i]}
		if w.stride == 0 {
			w.stride = size
		}
		if size < 1 || 2*padding[i] > size {
			t.graph.fail(op, "%s, kernel %v, padding %v; want padding of at most half the kernel", t, kernel, padding)
			return p, false
		}
		extent := t.Extent(p.first + i)
		room := extent + 2*padding[i]
		count := w.count(room)
		if o.Ceil && room >= w.reach() {
			count = (room-w.reach()+w.stride-1)/w.stride + 1
			if (count-1)*w.stride >= extent+padding[i] {
				count-- // it would start past the end
			}
		}
		if count < 1 {
			t.graph.fail(op, "%s, kernel %v, padding %v: axis %d is smaller than a window", t, kernel, padding, p.first+i)
			return p, false
		}
		p.slide, p.number = append(p.slide, w), append(p.number, count)
	}
	return p, true
}

// windowsOf pads x with a value and replaces each pooled axis by two: windows
// and their elements.
func (p pooling) windowsOf(x *Tensor, value float64) *Tensor {
	pads := make([][2]int, x.Rank())
	for i, w := range p.slide {
		need := (p.number[i]-1)*w.stride + w.reach()
		pads[p.first+i] = [2]int{p.before[i], need - x.Extent(p.first+i) - p.before[i]}
	}
	x = x.PadAll(pads, PadOptions{Value: value})
	for i, w := range p.slide {
		x = x.windows(p.first+2*i, w)
	}
	return x
}

// elements are the axes of the windows' elements.
func (p pooling) elements() []int {
	return lists.Make(p.axes, func(i int) int { return p.first + 2*i + 1 })
}

// counts is, for each window of axis i of n elements, how many of its elements
// are in t or, if asked, in the padding.
func (p pooling) counts(i, n int, padding bool) []float64 {
	w := p.slide[i]
	low, high := 0, n
	if padding {
		low, high = -p.before[i], n+p.before[i]
	}
	counts := make([]float64, p.number[i])
	for o := range counts {
		for e := range w.size {
			if at := o*w.stride + e*w.dilation - p.before[i]; at >= low && at < high {
				counts[o]++
			}
		}
	}
	return counts
}
