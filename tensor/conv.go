package tensor

import "slices"

// ConvOptions says how a convolution slides: one number for each spatial axis,
// or one for all. The zero value is stride 1, no padding, dilation 1, one group.
type ConvOptions struct {
	Stride, Padding, Dilation []int
	OutputPadding             []int // of ConvTranspose: positions added at the end
	Groups                    int
}

// Conv is the convolution (cross-correlation) of t [N, C, ..] with w
// [O, C/groups, ..], one spatial axis or more, plus bias [O], which may be nil.
// No windows are stored: the sum runs over index expressions. Halves are summed
// in f32.
func (t *Tensor) Conv(w, bias *Tensor, options ...ConvOptions) *Tensor {
	o := optional(t, options)
	c, ok := t.convolution("conv", w, bias, o)
	if !ok {
		return t.bad()
	}
	if t.Extent(1) != w.Extent(1)*c.groups || w.Extent(0)%c.groups != 0 {
		return t.graph.fail("conv", "input %s, weight %s, %d groups; want [N C ..] and [O C/groups ..]", t, w, c.groups)
	}
	if bias != nil && bias.Dim(0) != w.Dim(0) {
		return t.graph.fail("conv", "weight %s, bias %s; want a number for each of %d outputs", w, bias, w.Extent(0))
	}
	x := t.wide().padSpatial(c.padding, c.padding)
	return x.correlate(w.wide().Unflatten(0, c.groups, w.Extent(0)/c.groups), c).affine(nil, x.perChannel(bias)).Cast(t.DType())
}

// ConvTranspose is the adjoint of Conv in its input: t [N, C, ..] with w
// [C, O/groups, ..]. Output axis: (n-1)*stride - 2*padding +
// dilation*(kernel-1) + 1 + output padding.
func (t *Tensor) ConvTranspose(w, bias *Tensor, options ...ConvOptions) *Tensor {
	o := optional(t, options)
	c, ok := t.convolution("conv_transpose", w, bias, o)
	if !ok {
		return t.bad()
	}
	if t.Extent(1) != w.Extent(0) || t.Extent(1)%c.groups != 0 {
		return t.graph.fail("conv_transpose", "input %s, weight %s, %d groups; want [N C ..] and [C O/groups ..]", t, w, c.groups)
	}
	if outputs := w.Extent(1) * c.groups; bias != nil && bias.Extent(0) != outputs {
		return t.graph.fail("conv_transpose", "weight %s, %d groups, bias %s; want a number for each of %d outputs", w, c.groups, bias, outputs)
	}
	for i := range c.rank {
		n := (t.Extent(2+i)-1)*c.stride[i] - 2*c.padding[i] + c.dilation[i]*(w.Extent(2+i)-1) + 1 + c.outputPadding[i]
		if n < 1 {
			return t.graph.fail("conv_transpose", "input %s, weight %s, options %+v: axis %d of the result would have %d elements", t, w, o, 2+i, n)
		}
	}
	x := t.wide()
	return x.transposed(w.wide(), c).affine(nil, x.perChannel(bias)).Cast(t.DType())
}

// transposed is the transposed convolution of t [N, G*C, ..] with w [G*C, O, K..].
func (t *Tensor) transposed(w *Tensor, c convolution) *Tensor {
	if c.strides() {
		return t.inPhases(w, c)
	}
	before, after, spatial := make([]int, c.rank), make([]int, c.rank), make([]int, c.rank)
	for i := range c.rank {
		t = t.spaceOut(2+i, c.stride[i])
		before[i] = c.dilation[i]*(w.Extent(2+i)-1) - c.padding[i]
		after[i] = before[i] + c.outputPadding[i]
		spatial[i] = 3 + i
	}
	kernel := w.Unflatten(0, c.groups, w.Extent(0)/c.groups).Transpose(1, 2).Flip(spatial...)
	c.stride = slices.Repeat([]int{1}, c.rank)
	return t.padSpatial(before, after).correlate(kernel, c)
}

// convolution holds checked options, one number for each of rank spatial axes.
type convolution struct {
	rank, groups                             int
	stride, padding, dilation, outputPadding []int
}

func (t *Tensor) convolution(op string, w, bias *Tensor, o ConvOptions) (c convolution, ok bool) {
	if !t.ok() || !w.ok() {
		return c, false
	}
	if t.Rank() < 3 || w.Rank() != t.Rank() || w.DType() != t.DType() || bias != nil && (!bias.ok() || bias.Rank() != 1) {
		t.graph.fail(op, "input %s, weight %s, bias %s; want [N C ..], a weight of that rank and a vector", t, w, bias)
		return c, false
	}
	c = convolution{rank: t.Rank() - 2, groups: max(o.Groups, 1)}
	for _, list := range []struct {
		to        *[]int
		from      []int
		otherwise int
		least     int
	}{{&c.stride, o.Stride, 1, 1}, {&c.padding, o.Padding, 0, 0}, {&c.dilation, o.Dilation, 1, 1}, {&c.outputPadding, o.OutputPadding, 0, 0}} {
		if *list.to, ok = spatialList(list.from, c.rank, list.otherwise, list.least); !ok {
			t.graph.fail(op, "input %s, weight %s: options %+v; want %d numbers, strides and dilations at least 1", t, w, o, c.rank)
			return c, false
		}
	}
	return c, true
}

// spatialList is a list of rank numbers, from one of them, of one for all or of
// none.
func spatialList(list []int, rank, otherwise, least int) ([]int, bool) {
	switch len(list) {
	case 0:
		return slices.Repeat([]int{otherwise}, rank), true
	case 1:
		list = slices.Repeat([]int{list[0]}, rank)
	}
	return list, len(list) == rank && slices.Min(list) >= least
}

// padSpatial pads (or crops) the axes from 2 on with zeros.
func (t *Tensor) padSpatial(before, after []int) *Tensor {
	pads := make([][2]int, t.Rank())
	for i := range before {
		pads[2+i] = [2]int{before[i], after[i]}
	}
	return t.PadAll(pads, PadOptions{})
}

// spaceOut puts stride-1 zeros between the elements of axis k.
func (t *Tensor) spaceOut(k, stride int) *Tensor {
	n := t.Extent(k)
	if stride == 1 || n == 0 {
		return t
	}
	return t.Unsqueeze(k+1).Pad(k+1, 0, stride-1).Flatten(k, k+1).SliceInts(k, 0, (n-1)*stride+1)
}

// correlate slides w [G, O, C, K..] over t [N, G*C, ..], which is padded, and
// sums over channels and kernel: [N, G*O, ..]. By t it is derived as the transposed
// convolution that it is, where the rules of its operations would store a product for each
// element of the kernel and add up those that meet.
func (t *Tensor) correlate(w *Tensor, c convolution) *Tensor {
	sum := []int{3}
	for i := range c.rank {
		if c.window(w, i).count(t.Extent(2+i)) == 0 {
			return t.graph.fail("conv", "input %s (with padding), weight %s: the kernel is larger than the input", t, w)
		}
		sum = append(sum, 5+2*i)
	}
	return t.slices(w, c).Mul(w.besideWindows(c)).Sum(sum...).Flatten(1, 2).derived([]*Tensor{t, w}, c.back)
}

// besideWindows is a kernel [G, O, C, K..] with an axis for the windows before each of its own, [G, O, C, (1, K)..].
func (t *Tensor) besideWindows(c convolution) *Tensor {
	shape := t.Shape()[:3]
	for i := range c.rank {
		shape = append(shape, t.graph.arena.Index(1), t.Dim(3+i))
	}
	return t.ReshapeDims(shape...)
}

// window is how axis i of a kernel slides.
func (c convolution) window(w *Tensor, i int) window {
	return window{size: w.Extent(3 + i), stride: c.stride[i], dilation: c.dilation[i]}
}

// slices are the windows that w [G, O, C, K..] meets of t [N, G*C, ..]: for each spatial axis
// which window and which of its elements, [N, G, 1, C, (.., K)..].
func (t *Tensor) slices(w *Tensor, c convolution) *Tensor {
	for i := range c.rank {
		t = t.windows(2+2*i, c.window(w, i))
	}
	return t.Unflatten(1, w.Extent(0), w.Extent(2)).Unsqueeze(2)
}
