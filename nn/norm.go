package nn

import "tgc/tensor"

// RMSNorm scales each row x [.., D] to unit root mean square and by weight [D]
// (Zhang and Sennrich 2019): x / sqrt(mean(x^2) + eps) * weight.
func RMSNorm(x, weight *tensor.Tensor, eps float64) *tensor.Tensor {
	scale := x.Mul(x).MeanKeep(-1).AddScalar(eps).Rsqrt()
	return x.Mul(scale).Mul(weight)
}

// LayerNorm shifts each row x [.., D] to mean 0 and variance 1, then applies
// weight and bias [D] (Ba et al. 2016). bias may be nil.
func LayerNorm(x, weight, bias *tensor.Tensor, eps float64) *tensor.Tensor {
	centred := x.Sub(x.MeanKeep(-1))
	scale := centred.Mul(centred).MeanKeep(-1).AddScalar(eps).Rsqrt()
	y := centred.Mul(scale).Mul(weight)
	if bias != nil {
		y = y.Add(bias)
	}
	return y
}
