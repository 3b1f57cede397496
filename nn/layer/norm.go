package layer

import (
	"tgc/ir"
	"tgc/nn"
	"tgc/tensor"
)

// RMSNorm is nn.RMSNorm with a weight [width].
type RMSNorm struct {
	Weight  *tensor.Tensor
	Epsilon float64
}

// NewRMSNorm registers a weight of ones; epsilon is 1e-5.
func NewRMSNorm(p *nn.Parameters, width int) *RMSNorm {
	return &RMSNorm{Weight: p.Weight("weight", nn.Ones(), width), Epsilon: 1e-5}
}

// Forward normalises the rows of x [.., width].
func (l *RMSNorm) Forward(x *tensor.Tensor) *tensor.Tensor {
	return nn.RMSNorm(x, l.Weight, l.Epsilon)
}

// LayerNorm is nn.LayerNorm with weight and bias [width].
type LayerNorm struct {
	Weight, Bias *tensor.Tensor
	Epsilon      float64
}

// NewLayerNorm registers ones and zeros; epsilon is 1e-5.
func NewLayerNorm(p *nn.Parameters, width int) *LayerNorm {
	return &LayerNorm{Weight: p.Weight("weight", nn.Ones(), width), Bias: p.Weight("bias", nn.Zeros(), width), Epsilon: 1e-5}
}

// Forward normalises the rows of x [.., width].
func (l *LayerNorm) Forward(x *tensor.Tensor) *tensor.Tensor {
	return nn.LayerNorm(x, l.Weight, l.Bias, l.Epsilon)
}

// GroupNorm normalises groups of channels (Wu and He 2018). Weight and Bias are
// [channels].
type GroupNorm struct {
	Weight, Bias *tensor.Tensor
	Groups       int
	Epsilon      float64
}

// NewGroupNorm registers ones and zeros; epsilon is 1e-5.
func NewGroupNorm(p *nn.Parameters, groups, channels int) *GroupNorm {
	return &GroupNorm{
		Weight: p.Weight("weight", nn.Ones(), channels), Bias: p.Weight("bias", nn.Zeros(), channels),
		Groups: groups, Epsilon: 1e-5,
	}
}

// Forward normalises x [B, channels, ..]: each group of channels of each sample
// to mean 0 and variance 1.
func (l *GroupNorm) Forward(x *tensor.Tensor) *tensor.Tensor {
	channels := x.Extent(1)
	if l.Groups < 1 || channels%l.Groups != 0 {
		return x.Graph().Fail("group norm", "%d channels of %s in %d groups", channels, x, l.Groups)
	}
	flat := x.Reshape(x.Extent(0), l.Groups, -1)
	centred := flat.Sub(flat.MeanKeep(-1))
	scale := centred.Mul(centred).MeanKeep(-1).AddScalar(l.Epsilon).Rsqrt()
	return perChannel(centred.Mul(scale).ReshapeDims(x.Shape()...), l.Weight, l.Bias)
}

// BatchNorm normalises channels over a batch (Ioffe and Szegedy 2015). Weight,
// Bias, Mean and Variance are [channels].
type BatchNorm struct {
	Weight, Bias   *tensor.Tensor
	Mean, Variance *tensor.Tensor // running statistics, used in evaluation
	Momentum       float64        // weight of a new batch in them
	Epsilon        float64
	Scope          *nn.Parameters
}

// NewBatchNorm registers ones and zeros and the running statistics; momentum is
// 0.1, epsilon 1e-5.
func NewBatchNorm(p *nn.Parameters, channels int) *BatchNorm {
	return &BatchNorm{
		Weight: p.Weight("weight", nn.Ones(), channels), Bias: p.Weight("bias", nn.Zeros(), channels),
		Mean:     p.State("running_mean", ir.F32, nn.Zeros(), channels),
		Variance: p.State("running_var", ir.F32, nn.Ones(), channels),
		Momentum: 0.1, Epsilon: 1e-5, Scope: p,
	}
}

// Forward normalises x [B, channels, ..]. In training it uses the batch's own
// mean and (biased) variance and moves the running ones, the variance unbiased,
// toward them; that makes it a layer to apply once a step.
func (l *BatchNorm) Forward(x *tensor.Tensor) *tensor.Tensor {
	mean, variance := column(l.Mean, x.Rank()), column(l.Variance, x.Rank())
	if l.Scope != nil && l.Scope.Training() {
		var axes []int
		count := 1
		for k := range x.Rank() {
			if k != 1 {
				axes = append(axes, k)
				count *= x.Extent(k)
			}
		}
		mean = x.SumKeep(axes...).MulScalar(1 / float64(count))
		centred := x.Sub(mean)
		variance = centred.Mul(centred).SumKeep(axes...).MulScalar(1 / float64(count))
		unbiased := float64(count) / float64(max(count-1, 1))
		l.follow(&l.Mean, mean)
		l.follow(&l.Variance, variance.MulScalar(unbiased))
	}
	scale := variance.AddScalar(l.Epsilon).Rsqrt()
	return perChannel(x.Sub(mean).Mul(scale), l.Weight, l.Bias)
}

// follow moves a running statistic toward the batch's.
func (l *BatchNorm) follow(running **tensor.Tensor, batch *tensor.Tensor) {
	old := *running
	now := batch.ReshapeDims(old.Shape()...).MulScalar(l.Momentum)
	*running = old.Graph().Store(old, old.MulScalar(1-l.Momentum).Add(now))
}

// perChannel applies weight and bias [channels] to x [B, channels, ..].
func perChannel(x, weight, bias *tensor.Tensor) *tensor.Tensor {
	return x.Mul(column(weight, x.Rank())).Add(column(bias, x.Rank()))
}

// column views v [channels] as [1, channels, 1..].
func column(v *tensor.Tensor, rank int) *tensor.Tensor {
	shape := make([]int, rank)
	for k := range shape {
		shape[k] = 1
	}
	if rank < 2 {
		return v.Graph().Fail("channels", "input of rank %d, want [B, channels, ..]", rank)
	}
	shape[1] = v.Extent(0)
	return v.Reshape(shape...)
}
