package train

import (
	"tgc/ir"
	"tgc/nn"
	"tgc/tensor"
)

// accumulation sums the gradients of count steps, so that they make one update.
type accumulation struct {
	count      int
	unfinished *tensor.Tensor // Bool [1]: the step is not the last one of an update; nil: each is
}

// add adds the gradients of a step to those of the steps before it. It returns their mean,
// which is whole in the last step; after that sums begin at zero again.
func (a *accumulation) add(state *nn.Parameters, parameters []nn.Parameter, gradients []*tensor.Tensor, steps *tensor.Tensor) []*tensor.Tensor {
	if a.count == 1 {
		return gradients
	}
	g := state.Graph()
	place := steps.FloorMod(g.Scalar(ir.U32, float64(a.count)))
	a.unfinished = place.Ne(g.Scalar(ir.U32, float64(a.count-1)))
	means := make([]*tensor.Tensor, len(gradients))
	for i, gradient := range gradients {
		if gradient == nil {
			continue
		}
		w := parameters[i]
		sum := state.In("sum").State(w.Name, ir.F32, nn.Zeros(), w.Shape...)
		next := sum.Add(gradient)
		kept := flag(a.unfinished, sum).Where(next, g.Scalar(ir.F32, 0))
		g.Store(sum, kept)
		means[i] = next.MulScalar(1 / float64(a.count))
	}
	return means
}

// updates is the number of updates before that of a step: f32 [1].
func (a *accumulation) updates(steps *tensor.Tensor) *tensor.Tensor {
	if a.count > 1 {
		steps = steps.FloorDiv(steps.Graph().Scalar(ir.U32, float64(a.count)))
	}
	return steps.Cast(ir.F32)
}

// unless is old where a flag (Bool [1], or nil for never) is set, and next elsewhere.
func unless(set, old, next *tensor.Tensor) *tensor.Tensor {
	if set == nil {
		return next
	}
	return flag(set, old).Where(old, next)
}

// flag views a tensor [1] so that it broadcasts to x, whatever its rank.
func flag(one, x *tensor.Tensor) *tensor.Tensor {
	if x.Rank() == 0 {
		return one.Squeeze(0)
	}
	return one
}
