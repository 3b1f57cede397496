package tensor

import (
	"slices"

	"tgc/internal/lists"
)

// RMSNorm scales each row t [.., D] to unit root mean square and by weight [D]
// (Zhang and Sennrich 2019): t / sqrt(mean(t^2) + eps) * weight. weight may be
// nil. Halves are normalised in f32.
func (t *Tensor) RMSNorm(weight *Tensor, eps float64) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	if t.Rank() < 1 || weight != nil && !fits(weight, t, 1) {
		return t.graph.fail("rms_norm", "%s with weight %s; want [.. D] and [D]", t, weight)
	}
	x := t.wide()
	scale := x.Mul(x).MeanKeep(-1).AddScalar(eps).Rsqrt()
	return x.Mul(scale).affine(weight, nil).Cast(t.DType())
}

// LayerNorm shifts and scales the last axes axes of t to mean 0 and variance 1,
// then applies weight and bias, which have the shape of those axes (Ba et al.
// 2016). weight and bias may be nil. Halves are normalised in f32.
func (t *Tensor) LayerNorm(axes int, weight, bias *Tensor, eps float64) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	if axes < 1 || axes > t.Rank() || weight != nil && !fits(weight, t, axes) || bias != nil && !fits(bias, t, axes) {
		return t.graph.fail("layer_norm", "%s over the last %d axes with weight %s and bias %s", t, axes, weight, bias)
	}
	over := lists.Make(axes, func(k int) int { return k - axes })
	y, _, _ := t.wide().normalised(eps, over...)
	return y.affine(weight, bias).Cast(t.DType())
}

// fits reports that u has the shape of the last axes axes of t.
func fits(u, t *Tensor, axes int) bool {
	return u.ok() && slices.Equal(u.shape(), t.shape()[t.Rank()-axes:])
}

// normalised is (t-mean)/sqrt(variance+eps) over axes, with mean and biased
// variance, whose axes have extent 1.
func (t *Tensor) normalised(eps float64, axes ...int) (y, mean, variance *Tensor) {
	mean = t.MeanKeep(axes...)
	centred := t.Sub(mean)
	variance = centred.Mul(centred).MeanKeep(axes...)
	return centred.Mul(variance.AddScalar(eps).Rsqrt()), mean, variance
}

// affine is t*weight + bias in t's dtype; either may be nil.
func (t *Tensor) affine(weight, bias *Tensor) *Tensor {
	if weight != nil {
		t = t.Mul(weight.Cast(t.DType()))
	}
	if bias != nil {
		t = t.Add(bias.Cast(t.DType()))
	}
	return t
}

// BatchNorm normalises each channel of t [N, C, ..] by a mean and a variance [C]
// that were gathered before, then applies weight and bias [C], which may be nil
// (Ioffe and Szegedy 2015).
func (t *Tensor) BatchNorm(mean, variance, weight, bias *Tensor, eps float64) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	if !t.channelsFit("batch_norm", mean, variance, weight, bias) {
		return t.bad()
	}
	scale := t.perChannel(variance).AddScalar(eps).Rsqrt()
	y := t.wide().Sub(t.perChannel(mean)).Mul(scale)
	return y.affine(t.perChannel(weight), t.perChannel(bias)).Cast(t.DType())
}

// BatchNormTraining normalises each channel of t [N, C, ..] by the mean and
// biased variance that it has in t, and gives the next running mean and
// variance (unbiased): (1-momentum)*old + momentum*new.
func (t *Tensor) BatchNormTraining(mean, variance, weight, bias *Tensor, eps, momentum float64) (y, nextMean, nextVariance *Tensor) {
	if !t.ok() || !t.channelsFit("batch_norm", mean, variance, weight, bias) {
		return t.bad(), t.bad(), t.bad()
	}
	axes := []int{0}
	for k := 2; k < t.Rank(); k++ {
		axes = append(axes, k)
	}
	y, m, v := t.wide().normalised(eps, axes...)
	y = y.affine(t.perChannel(weight), t.perChannel(bias)).Cast(t.DType())
	n := float64(t.count(axes))
	blend := func(old, new *Tensor) *Tensor {
		next := old.wide().MulScalar(1 - momentum).Add(new.ReshapeDims(old.shape()...).MulScalar(momentum))
		return next.Cast(old.DType())
	}
	return y, blend(mean, m), blend(variance, v.MulScalar(n/(n-1)))
}

// GroupNorm normalises groups of neighbouring channels of t [N, C, ..], each
// over its channels and all positions, then applies weight and bias [C], which
// may be nil (Wu and He 2018).
func (t *Tensor) GroupNorm(groups int, weight, bias *Tensor, eps float64) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	if t.Rank() < 2 || groups < 1 || t.Extent(1)%groups != 0 {
		return t.graph.fail("group_norm", "%s in %d groups; want [N C ..] with a multiple of groups channels", t, groups)
	}
	if !t.channelsFit("group_norm", weight, bias) {
		return t.bad()
	}
	rows := t.wide().Unflatten(1, groups, t.Extent(1)/groups).Flatten(2, -1)
	y, _, _ := rows.normalised(eps, -1)
	y = y.ReshapeDims(t.shape()...)
	return y.affine(t.perChannel(weight), t.perChannel(bias)).Cast(t.DType())
}

// InstanceNorm is GroupNorm with one channel a group.
func (t *Tensor) InstanceNorm(weight, bias *Tensor, eps float64) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	if t.Rank() < 3 {
		return t.graph.fail("instance_norm", "%s, want [N C ..] with positions", t)
	}
	return t.GroupNorm(max(t.Extent(1), 1), weight, bias, eps)
}

// channelsFit reports that the tensors, where given, are vectors of a value for
// each channel of t [N, C, ..].
func (t *Tensor) channelsFit(op string, vectors ...*Tensor) bool {
	if t.Rank() < 2 {
		t.graph.fail(op, "%s, want [N C ..]", t)
		return false
	}
	for _, v := range vectors {
		if v != nil && (!v.ok() || v.Rank() != 1 || v.Dim(0) != t.Dim(1)) {
			t.graph.fail(op, "%s with %s for its channels", t, v)
			return false
		}
	}
	return true
}

// perChannel aligns a vector [C] with axis 1 of t, in the dtype of its sums; nil
// stays nil.
func (t *Tensor) perChannel(v *Tensor) *Tensor {
	if v == nil {
		return nil
	}
	shape := slices.Repeat([]int{1}, t.Rank()-1)
	shape[0] = v.Extent(0)
	return v.wide().Reshape(shape...)
}
