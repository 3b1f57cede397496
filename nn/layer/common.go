package layer

import (
	"math"

	"tgc/nn"
	"tgc/tensor"
)

// within is uniform in +-1/sqrt(fan in).
func within(fanIn int) nn.Init {
	bound := 1 / math.Sqrt(math.Max(float64(fanIn), 1))
	return nn.Uniform(-bound, bound)
}

// operand rounds an operand of a matrix product as the scope wants it.
func operand(scope *nn.Parameters, x *tensor.Tensor) *tensor.Tensor {
	if scope == nil {
		return x
	}
	return scope.Operand(x)
}

// split cuts the last axis: [.., n*d] to [.., n, d].
func split(x *tensor.Tensor, n int) *tensor.Tensor {
	width := x.Extent(-1)
	if n < 1 || width%n != 0 {
		return x.Graph().Fail("split", "last axis of %s in %d parts", x, n)
	}
	shape := append(x.Shape()[:x.Rank()-1], x.Graph().Dims(n, width/n)...)
	return x.ReshapeDims(shape...)
}
