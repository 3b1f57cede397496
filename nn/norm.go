package nn

import "tgc/tensor"

// RMSNorm scales each row x [.., D] to unit root mean square and by weight [D]
// (Zhang and Sennrich 2019): x / sqrt(mean(x^2) + eps) * weight.
func RMSNorm(x, weight *tensor.Tensor, eps float64) *tensor.Tensor {
	return x.RMSNorm(weight, eps)
}

// LayerNorm shifts each row x [.., D] to mean 0 and variance 1, then applies
// weight and bias [D] (Ba et al. 2016). bias may be nil.
func LayerNorm(x, weight, bias *tensor.Tensor, eps float64) *tensor.Tensor {
	return x.LayerNorm(1, weight, bias, eps)
}
