package layer

import (
	"math"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/nn"
	"tgc/tensor"
)

// Dropout zeroes elements at random in training and scales the others, so that
// the expectation stays (Srivastava et al. 2014).
type Dropout struct {
	Rate  float64 // probability of a zero
	Scope *nn.Parameters
}

// NewDropout checks the rate, 0 up to 1.
func NewDropout(p *nn.Parameters, rate float64) *Dropout {
	if !(rate >= 0 && rate < 1) {
		p.Graph().Fail("dropout", "rate is %v, want 0 or more and below 1", rate)
		rate = 0
	}
	return &Dropout{Rate: rate, Scope: p}
}

// Forward gives x outside training.
func (l *Dropout) Forward(x *tensor.Tensor) *tensor.Tensor {
	if l.Rate == 0 || l.Scope == nil || !l.Scope.Training() {
		return x
	}
	shape := lists.Make(x.Rank(), x.Extent)
	g := x.Graph()
	limit := g.Scalar(ir.U32, math.Floor(l.Rate*(1<<32)))
	dropped := l.Scope.Draw(shape...).Lt(limit)
	return dropped.Where(g.Scalar(x.DType(), 0), x.MulScalar(1/(1-l.Rate)))
}
