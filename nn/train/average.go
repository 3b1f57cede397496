package train

import (
	"context"
	"maps"
	"strings"

	"tgc/ir"
	"tgc/nn"
	"tgc/nn/optim"
	"tgc/tensor"
)

// averages is the scope of averaged weights: a model that another graph builds in it has the
// averages as its weights.
const averages = "train.average"

// average keeps the averages of what the model owns, trained or kept by layers, in a scope of their
// own.
func average(a optim.Average, model *nn.Parameters, updates, unfinished *tensor.Tensor) {
	g := model.Graph()
	for _, v := range model.All() {
		if v.Tensor.DType() != ir.F32 || isOwn(v.Name) {
			continue
		}
		mean := model.In(averages).State(v.Name, ir.F32, nn.Zeros(), v.Shape...)
		g.Store(mean, unless(unfinished, mean, a.Next(mean, g.Latest(v.Tensor), updates)))
	}
}

// isOwn reports a name that is not the model's.
func isOwn(name string) bool { return strings.HasPrefix(name, "train.") }

// Weights reads the values of the model itself: trained ones and those that layers keep.
func (t *Trainer) Weights(ctx context.Context) (nn.Values, error) {
	values, err := t.Values(ctx)
	maps.DeleteFunc(values, func(name string, _ nn.Value) bool { return isOwn(name) })
	return values, err
}

// Averaged is Weights with the averages of Options.Average where there are any.
func (t *Trainer) Averaged(ctx context.Context) (nn.Values, error) {
	values, err := t.Values(ctx)
	own := make(nn.Values)
	for name, value := range values {
		if isOwn(name) {
			continue
		}
		if mean, ok := values[averages+"."+name]; ok {
			value = mean
		}
		own[name] = value
	}
	return own, err
}
