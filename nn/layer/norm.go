package layer

import (
	"tgc/ir"
	"tgc/nn"
	"tgc/tensor"
)

// RMSNorm is Tensor.RMSNorm with a weight [width].
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
	return x.RMSNorm(l.Weight, l.Epsilon)
}

// LayerNorm is Tensor.LayerNorm over the last axis, with weight and bias [width].
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
	return x.LayerNorm(1, l.Weight, l.Bias, l.Epsilon)
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
	return x.GroupNorm(l.Groups, l.Weight, l.Bias, l.Epsilon)
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
	if l.Scope == nil || !l.Scope.Training() {
		return x.BatchNorm(l.Mean, l.Variance, l.Weight, l.Bias, l.Epsilon)
	}
	y, mean, variance := x.BatchNormTraining(l.Mean, l.Variance, l.Weight, l.Bias, l.Epsilon, l.Momentum)
	g := x.Graph()
	l.Mean, l.Variance = g.Store(l.Mean, mean), g.Store(l.Variance, variance)
	return y
}
