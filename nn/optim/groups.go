package optim

import (
	"strings"

	"tgc/nn"
	"tgc/tensor"
)

// Group is the parameters that are updated in one way.
type Group struct {
	Has       func(w nn.Parameter) bool // nil: those that no group before it has
	Optimizer Optimizer                 // nil: they stay as they are
	Rate      float64                   // factor of the learning rate; 0 for 1
}

// Groups updates each parameter as the first group that has it says, and leaves those alone
// that none has:
//
//	optim.Groups{
//		{Has: optim.Below("backbone"), Optimizer: optim.NewAdamW(0.01), Rate: 0.1},
//		{Optimizer: optim.NewAdamW(0.01)},
//	}
type Groups []Group

// Update is an Optimizer's.
func (list Groups) Update(state *nn.Parameters, w nn.Parameter, gradient *tensor.Tensor, now Moment) *tensor.Tensor {
	for _, group := range list {
		if group.Has != nil && !group.Has(w) {
			continue
		}
		if group.Optimizer == nil {
			break
		}
		if group.Rate != 0 {
			now.Rate = now.Rate.MulScalar(group.Rate)
		}
		return group.Optimizer.Update(state, w, gradient, now)
	}
	return w.Tensor
}

// Below has the parameters whose names begin with one of these scopes.
func Below(scopes ...string) func(w nn.Parameter) bool {
	return func(w nn.Parameter) bool {
		for _, scope := range scopes {
			if rest, ok := strings.CutPrefix(w.Name, scope); ok && (rest == "" || rest[0] == '.') {
				return true
			}
		}
		return false
	}
}
