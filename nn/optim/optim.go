package optim

import (
	"tgc/nn"
	"tgc/tensor"
)

// Optimizer changes a parameter by its gradient.
type Optimizer interface {
	// Update returns the next value of w. It registers the state that it keeps
	// for w in state, whose scope is w's own, and stores the state's next values.
	Update(state *nn.Parameters, w nn.Parameter, gradient *tensor.Tensor, now Moment) *tensor.Tensor
}

// Moment is what an update depends on besides weights and gradients; all
// tensors are [1].
type Moment struct {
	Rate  *tensor.Tensor // f32, the learning rate
	Count *tensor.Tensor // f32, the number of this update, from 1
	Skip  *tensor.Tensor // Bool: the gradients are no use, change nothing; nil never skips
}

// keep stores the next value of a state buffer or, when the step is skipped,
// leaves it. It returns the buffer's next version: readers of it take what is
// stored, so that the value needs no buffer of its own.
func (now Moment) keep(old, next *tensor.Tensor) *tensor.Tensor {
	return old.Graph().Store(old, now.choose(old, next))
}

func (now Moment) choose(old, next *tensor.Tensor) *tensor.Tensor {
	if now.Skip == nil {
		return next
	}
	shape := old.Shape()
	for k := range shape {
		shape[k] = old.Graph().Dims(1)[0]
	}
	return now.Skip.ReshapeDims(shape...).Where(old, next)
}

// Apply updates every parameter that has a gradient; gradients[i] belongs to
// parameters[i], nil leaves it alone. State is registered in scopes of state
// named like the parameters.
func Apply(o Optimizer, state *nn.Parameters, parameters []nn.Parameter, gradients []*tensor.Tensor, now Moment) {
	for i, w := range parameters {
		if gradients[i] == nil {
			continue
		}
		next := o.Update(state.In(w.Name), w, gradients[i], now)
		w.Tensor.Graph().Store(w.Tensor, now.choose(w.Tensor, next))
	}
}

// Decay says which parameters are pulled toward zero.
type Decay uint8

// The choices.
const (
	DecayMatrices Decay = iota // those of two axes and more: not biases, not norms
	DecayAll
)

func (d Decay) covers(w nn.Parameter) bool { return d == DecayAll || len(w.Shape) >= 2 }
