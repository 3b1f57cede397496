package tensor

import (
	"slices"

	"tgc/internal/lists"
)

// A transposed convolution with stride s writes the positions s*m + q of an axis, of each
// phase q < s, from the elements q, q+s, .. of the kernel alone: a convolution with stride
// 1 for each phase, whose channels lie between the positions. What has as many elements is
// one convolution with more channels: where s does not divide the kernel, the phases below
// the remainder have one element more than the others. Between the elements of the input
// no zeros are multiplied.

// strides reports a transposed convolution that has phases: an axis of stride above 1.
// Where an axis is dilated too, the elements of a phase would be another kernel for each.
func (c convolution) strides() bool {
	several := false
	for i, stride := range c.stride {
		if stride > 1 && c.dilation[i] > 1 {
			return false
		}
		several = several || stride > 1
	}
	return several
}

// phases are neighbouring phases of an axis that have as many elements of the kernel.
type phases struct{ first, count, taps int }

// phasesOf lists the phases of an axis that have elements.
func phasesOf(kernel, stride int) []phases {
	most, rest := (kernel+stride-1)/stride, kernel%stride
	switch {
	case rest == 0:
		return []phases{{0, stride, most}}
	case kernel < stride:
		return []phases{{0, kernel, 1}}
	}
	return []phases{{0, rest, most}, {rest, stride - rest, most - 1}}
}

// inPhases is the transposed convolution of t [N, G*C, ..] with w [G*C, O, K..].
func (t *Tensor) inPhases(w *Tensor, c convolution) *Tensor {
	y := t.eachPhase(w, c, nil) // [N, G*O, phases.., positions..]
	order := []int{0, 1}
	for i := range c.rank {
		y = y.Pad(2+i, 0, c.stride[i]-y.Extent(2+i))
		order = append(order, 2+c.rank+i, 2+i)
	}
	y = y.Permute(order...)
	before, after := make([]int, c.rank), make([]int, c.rank)
	for i := range c.rank {
		y = y.Flatten(2+i, 3+i)
		reach := (t.Extent(2+i)-1)*c.stride[i] + c.dilation[i]*(w.Extent(2+i)-1) + 1
		before[i] = -c.padding[i]
		after[i] = reach + c.outputPadding[i] - c.padding[i] - y.Extent(2+i)
	}
	return y.padSpatial(before, after)
}

// eachPhase joins the results of all phases; chosen are those of the first axes.
func (t *Tensor) eachPhase(w *Tensor, c convolution, chosen []phases) *Tensor {
	i := len(chosen)
	if i == c.rank {
		return t.onePhase(w, c, chosen)
	}
	parts := lists.Map(phasesOf(w.Extent(2+i), c.stride[i]), func(p phases) *Tensor { return t.eachPhase(w, c, append(slices.Clone(chosen), p)) })
	if len(parts) == 1 {
		return parts[0]
	}
	return parts[0].Cat(2+i, parts[1:]...)
}

// onePhase is the result at the chosen phases, [N, G*O, phases.., positions..]: as many
// positions as the phases with the most elements have.
func (t *Tensor) onePhase(w *Tensor, c convolution, chosen []phases) *Tensor {
	kernel := w.Unflatten(0, c.groups, w.Extent(0)/c.groups) // [G, C, O, K..]
	order, flipped := []int{0, 2}, make([]int, c.rank)
	before, after := make([]int, c.rank), make([]int, c.rank)
	counts := make([]int, c.rank)
	for i, p := range chosen {
		stride, n, axis := c.stride[i], w.Extent(2+i), 3+2*i
		most := (n + stride - 1) / stride
		kernel = kernel.Pad(axis, 0, most*stride-n).Unflatten(axis, most, stride) // element taps*stride + phase
		kernel = kernel.SliceInts(axis, 0, p.taps).SliceInts(axis+1, p.first, p.count)
		before[i], after[i] = c.dilation[i]*(p.taps-1), c.dilation[i]*(most-1)
		order, flipped[i], counts[i] = append(order, axis+1), 3+i, p.count
	}
	order = append(order, 1)
	for i := range chosen {
		order = append(order, 3+2*i)
	}
	kernel = kernel.Permute(order...).Flatten(1, 1+c.rank).Flip(flipped...) // [G, O*phases, C, taps..]
	one := c
	one.stride = slices.Repeat([]int{1}, c.rank)
	y := t.padSpatial(before, after).correlate(kernel, one)
	return y.Unflatten(1, append([]int{c.groups * w.Extent(1)}, counts...)...)
}
