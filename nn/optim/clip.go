package optim

import (
	"tgc/ir"
	"tgc/tensor"
)

// GlobalNorm is the root of the sum of squares of all gradients: f32 [1]. Nil
// gradients do not count.
func GlobalNorm(g *tensor.Graph, gradients []*tensor.Tensor) *tensor.Tensor {
	sum := g.Scalar(ir.F32, 0).Reshape(1)
	for _, gradient := range gradients {
		if gradient != nil {
			sum = sum.Add(gradient.Mul(gradient).Sum().Reshape(1))
		}
	}
	return sum.Sqrt()
}

// ClipNorm scales all gradients so that their global norm is at most limit
// (Pascanu et al. 2013). norm is GlobalNorm's.
func ClipNorm(gradients []*tensor.Tensor, norm *tensor.Tensor, limit float64) []*tensor.Tensor {
	g := norm.Graph()
	scale := norm.AddScalar(1e-6).Recip().MulScalar(limit).Minimum(g.Scalar(ir.F32, 1))
	clipped := make([]*tensor.Tensor, len(gradients))
	for i, gradient := range gradients {
		if gradient != nil {
			clipped[i] = gradient.Mul(spread(scale, gradient))
		}
	}
	return clipped
}
