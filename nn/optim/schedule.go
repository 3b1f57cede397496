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
		return risen(step, peak, warmup, between(progress(step, warmup, total), peak, floor))
	}
}

// progress goes from 0 in step warmup to 1 in step total.
func progress(step *tensor.Tensor, warmup, total int) *tensor.Tensor {
	g := step.Graph()
	span := math.Max(float64(total-warmup), 1)
	return step.AddScalar(-float64(warmup)).MulScalar(1 / span).Maximum(g.Scalar(ir.F32, 0)).Minimum(g.Scalar(ir.F32, 1))
}

// risen is a linear rise to peak over warmup steps, then another schedule.
func risen(step *tensor.Tensor, peak float64, warmup int, then *tensor.Tensor) *tensor.Tensor {
	if warmup < 1 {
		return then
	}
	rise := step.AddScalar(1).MulScalar(peak / float64(warmup))
	return step.Lt(step.Graph().Scalar(ir.F32, float64(warmup))).Where(rise, then)
}

// between goes along half a cosine from one value to another while done goes from 0 to 1.
func between(done *tensor.Tensor, from, to float64) *tensor.Tensor {
	return done.MulScalar(math.Pi).Cos().AddScalar(1).MulScalar((from - to) / 2).AddScalar(to)
}

// Stairs multiplies rate by factor after each number of steps that every says.
func Stairs(rate, factor float64, every int) Schedule {
	return func(step *tensor.Tensor) *tensor.Tensor {
		stair := step.MulScalar(1 / float64(max(every, 1))).AddScalar(1e-6).Floor()
		return stair.MulScalar(math.Log2(factor)).Exp2().MulScalar(rate)
	}
}

// Linear rises linearly over warmup steps to peak, reaches it in step warmup-1, and falls
// linearly to floor in step total, where it stays.
func Linear(peak, floor float64, warmup, total int) Schedule {
	return func(step *tensor.Tensor) *tensor.Tensor {
		fall := progress(step, warmup, total).MulScalar(floor - peak).AddScalar(peak)
		return risen(step, peak, warmup, fall)
	}
}

// OneCycle is the cycle of Smith and Topin (2018) in PyTorch's form: along half a cosine from
// peak/25 up to peak, reached after 0.3 of all steps, and down to peak/250,000 in the last one.
func OneCycle(peak float64, total int) Schedule {
	return Cycle{Peak: peak, First: peak / 25, Last: peak / 25e4, Total: total, Rise: 0.3}.Rate
}

// Cycle is OneCycle with ends and turn of its own.
type Cycle struct {
	First, Peak, Last float64
	Total             int     // steps
	Rise              float64 // share of the steps that rise
}

// Rate is a Schedule.
func (c Cycle) Rate(step *tensor.Tensor) *tensor.Tensor {
	turn := c.Rise*float64(c.Total) - 1 // the step at the peak
	up := between(step.MulScalar(1/math.Max(turn, 1e-6)).Clamp(0, 1), c.First, c.Peak)
	down := between(step.AddScalar(-turn).MulScalar(1/math.Max(float64(c.Total-1)-turn, 1e-6)).Clamp(0, 1), c.Peak, c.Last)
	return step.Lt(step.Graph().Scalar(ir.F32, turn)).Where(up, down)
}
