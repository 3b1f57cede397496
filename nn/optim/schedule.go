package optim

import (
	"math"

	"tgc/ir"
	"tgc/tensor"
)

// Schedule gives the learning rate (f32 [1]) of a step, whose number (f32 [1])
// counts from 0. It builds graph nodes: the rate is computed on the device.
type Schedule func(step *tensor.Tensor) *tensor.Tensor

// Constant is the same rate always.
func Constant(rate float64) Schedule {
	return func(step *tensor.Tensor) *tensor.Tensor { return step.Graph().Scalar(ir.F32, rate).Reshape(1) }
}

// Cosine rises linearly over warmup steps to peak, reaches it in step warmup-1,
// and falls along half a cosine to floor in step total, where it stays.
func Cosine(peak, floor float64, warmup, total int) Schedule {
	return func(step *tensor.Tensor) *tensor.Tensor {
		g := step.Graph()
		one, zero := g.Scalar(ir.F32, 1), g.Scalar(ir.F32, 0)
		span := math.Max(float64(total-warmup), 1)
		done := step.AddScalar(-float64(warmup)).MulScalar(1 / span).Maximum(zero).Minimum(one)
		fall := done.MulScalar(math.Pi).Cos().AddScalar(1).MulScalar((peak - floor) / 2).AddScalar(floor)
		if warmup < 1 {
			return fall
		}
		rise := step.AddScalar(1).MulScalar(peak / float64(warmup))
		return step.Lt(g.Scalar(ir.F32, float64(warmup))).Where(rise, fall)
	}
}

// Stairs multiplies rate by factor after each number of steps that every says.
func Stairs(rate, factor float64, every int) Schedule {
	return func(step *tensor.Tensor) *tensor.Tensor {
		stair := step.MulScalar(1 / float64(max(every, 1))).AddScalar(1e-6).Floor()
		return stair.MulScalar(math.Log2(factor)).Exp2().MulScalar(rate)
	}
}
