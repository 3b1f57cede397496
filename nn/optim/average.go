package optim

import (
	"tgc/ir"
	"tgc/tensor"
)

// Average says how weights are averaged over updates; the zero value does not average.
type Average struct {
	// Decay is what an average keeps of itself when a new value joins it: an exponential
	// moving average. With 0 all values count the same.
	Decay float64
	// Start is the number of updates before those that count. Until the first one that
	// counts the average is the weights themselves.
	Start int
	Every int // of the updates after Start one in so many counts
}

// EMA is the exponential moving average of all updates (Polyak and Juditsky 1992).
func EMA(decay float64) Average { return Average{Decay: decay, Every: 1} }

// SWA is stochastic weight averaging (Izmailov et al. 2018): the plain mean of every so many
// updates after the first ones.
func SWA(start, every int) Average { return Average{Start: start, Every: max(every, 1)} }

// Next is the average after an update: updates (f32 [1]) counts it, from 1.
func (a Average) Next(average, weight, updates *tensor.Tensor) *tensor.Tensor {
	share := a.share(updates)
	// Not average + share*(weight-average): that rounds where the share is 1.
	return average.Mul(spread(share.Neg().AddScalar(1), weight)).Add(weight.Mul(spread(share, weight)))
}

// share is how much of the average the weights of this update become, 0 to 1.
func (a Average) share(updates *tensor.Tensor) *tensor.Tensor {
	g := updates.Graph()
	one, zero := g.Scalar(ir.F32, 1), g.Scalar(ir.F32, 0)
	every := float64(max(a.Every, 1))
	since := updates.AddScalar(-float64(a.Start))
	counted := since.MulScalar(1 / every).AddScalar(1e-6).Floor() // 1 is the first that counts
	share := counted.Maximum(one).Recip()
	if a.Decay > 0 {
		share = counted.Gt(one).Where(g.Scalar(ir.F32, 1-a.Decay), one)
	}
	counts := since.Sub(counted.MulScalar(every)).Abs().Lt(g.Scalar(ir.F32, 0.5))
	return counted.Lt(one).Where(one, counts.Where(share, zero))
}
