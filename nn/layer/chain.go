package layer

import "tgc/tensor"

// Layer is a function of one tensor; most layers here are.
type Layer interface {
	Forward(x *tensor.Tensor) *tensor.Tensor
}

// Func makes a layer of a function, such as (*tensor.Tensor).Relu.
type Func func(x *tensor.Tensor) *tensor.Tensor

// Forward calls the function.
func (f Func) Forward(x *tensor.Tensor) *tensor.Tensor { return f(x) }

// Chain applies layers one after another.
type Chain []Layer

// Forward is the last layer's result.
func (c Chain) Forward(x *tensor.Tensor) *tensor.Tensor {
	for _, l := range c {
		x = l.Forward(x)
	}
	return x
}

// MaxPool is Tensor.MaxPool as a layer: windows over the last len(Kernel) axes.
type MaxPool struct {
	Kernel  []int
	Options tensor.PoolOptions
}

// Forward takes the largest of each window.
func (l MaxPool) Forward(x *tensor.Tensor) *tensor.Tensor { return x.MaxPool(l.Kernel, l.Options) }

// AvgPool is Tensor.AvgPool as a layer.
type AvgPool struct {
	Kernel  []int
	Options tensor.PoolOptions
}

// Forward takes the mean of each window.
func (l AvgPool) Forward(x *tensor.Tensor) *tensor.Tensor { return x.AvgPool(l.Kernel, l.Options) }

// Flatten joins all axes but the first.
type Flatten struct{}

// Forward maps x [B, ..] to [B, n].
func (Flatten) Forward(x *tensor.Tensor) *tensor.Tensor { return x.Flatten(1, -1) }
