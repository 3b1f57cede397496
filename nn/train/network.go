package train

import (
	"maps"
	"slices"
	"strings"

	"tgc/ir"
	"tgc/nn"
	"tgc/tensor"
)

// Network builds a model for a batch: it registers its parameters in p and says what the
// model gives for the inputs. Fit calls it for the training step and for each size of batch
// that is evaluated.
type Network func(p *nn.Parameters, in Inputs) Outputs

// Inputs are what a batch holds, by the names of the dataset.
type Inputs struct {
	graph   *tensor.Graph
	tensors map[string]*tensor.Tensor
}

// newInputs declares the inputs of a batch, whose buffers are named with a prefix.
func newInputs(g *tensor.Graph, batch nn.Values, prefix string) Inputs {
	in := Inputs{graph: g, tensors: make(map[string]*tensor.Tensor)}
	for _, name := range slices.Sorted(maps.Keys(batch)) {
		in.tensors[name] = g.Input(prefix+name, batch[name].DType, batch[name].Shape...)
	}
	return in
}

// Get is the input of this name: [batch, shape of a sample..].
func (in Inputs) Get(name string) *tensor.Tensor {
	if t := in.tensors[name]; t != nil {
		return t
	}
	return in.graph.Fail("input", "the batches have no %q, only %s", name, strings.Join(slices.Sorted(maps.Keys(in.tensors)), ", "))
}

// Outputs is what a network gives for a batch.
type Outputs struct {
	Loss *tensor.Tensor // a scalar, the mean over the batch
	// Metrics are measured beside the loss, as the mean of all their elements: of any shape
	// and dtype, the hits of each sample, say. What trains is the loss alone.
	Metrics map[string]*tensor.Tensor
}

// measured are the loss and the metrics by name.
func (o Outputs) measured() map[string]*tensor.Tensor {
	all := maps.Clone(o.Metrics)
	if all == nil {
		all = make(map[string]*tensor.Tensor)
	}
	all["loss"] = o.Loss
	return all
}

// Classification is the cross entropy of logits [.., classes] with their classes [..], and
// the accuracy: the share of those whose largest logit is that of their class.
func Classification(logits, classes *tensor.Tensor) Outputs {
	if logits.Rank() > 2 {
		logits, classes = logits.Flatten(0, -2), classes.Flatten(0, -1)
	}
	hits := logits.Argmax(-1).Eq(classes.Cast(ir.I32))
	return Outputs{Loss: logits.CrossEntropy(classes), Metrics: map[string]*tensor.Tensor{"accuracy": hits}}
}

// Regression is the mean squared error, with the mean absolute error beside it.
func Regression(prediction, target *tensor.Tensor) Outputs {
	return Outputs{
		Loss:    prediction.MSELoss(target),
		Metrics: map[string]*tensor.Tensor{"error": prediction.Sub(target).Abs()},
	}
}
