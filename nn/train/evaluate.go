package train

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tgc/engine"
	"tgc/ir"
	"tgc/nn"
	"tgc/nn/data"
	"tgc/runtime"
	"tgc/tensor"
)

// evaluator measures a network with the weights of a training step, on their memory. It
// compiles a function for each shape of batch.
type evaluator struct {
	network Network
	device  runtime.Device
	config  engine.Config
	weights *tensor.Function
	scope   string // of the parameters: empty, or the averages'
	known   map[string]*evaluation
}

// evaluation is a network compiled for a shape of batch.
type evaluation struct {
	*tensor.Function
	prefix string // of its inputs and results
	names  []string
}

// measure gives the means over one pass of a loader.
func (e *evaluator) measure(ctx context.Context, loader *data.Loader) (map[string]float64, error) {
	if err := loader.Check(); err != nil {
		return nil, err
	}
	sums, samples := make(map[string]float64), 0
	for batch, err := range loader.Batches(ctx, 0, loader.PerEpoch()) {
		if err != nil {
			return nil, err
		}
		f, err := e.function(ctx, batch)
		if err != nil {
			return nil, err
		}
		means, err := f.run(ctx, batch)
		if err != nil {
			return nil, err
		}
		count := batchSize(batch)
		for name, mean := range means {
			sums[name] += mean * float64(count)
		}
		samples += count
	}
	for name := range sums {
		sums[name] /= float64(max(samples, 1))
	}
	return sums, nil
}

// batchSize is the number of samples of a batch.
func batchSize(batch nn.Values) int {
	for _, v := range batch {
		return v.Shape[0]
	}
	return 0
}

// function is the evaluation of batches of the same shapes as this one.
func (e *evaluator) function(ctx context.Context, batch nn.Values) (*evaluation, error) {
	key := ""
	for _, name := range slices.Sorted(maps.Keys(batch)) {
		key += fmt.Sprintf("%s %s%v;", name, batch[name].DType, batch[name].Shape)
	}
	if f := e.known[key]; f != nil {
		return f, nil
	}
	f, err := e.compile(ctx, batch, fmt.Sprintf("train.valid%d.", len(e.known)))
	if err == nil {
		e.known[key] = f
	}
	return f, err
}

func (e *evaluator) compile(ctx context.Context, batch nn.Values, prefix string) (*evaluation, error) {
	g := tensor.NewGraph()
	out := e.network(nn.NewParameters(g).In(e.scope), newInputs(g, batch, prefix)).measured()
	f := &evaluation{prefix: prefix, names: slices.Sorted(maps.Keys(out))}
	for _, name := range f.names {
		g.Output(prefix+"mean."+name, mean(out[name], ir.F32))
	}
	var err error
	f.Function, err = tensor.Compile(ctx, g, e.device, e.config, e.weights)
	return f, err
}

// mean is the mean of all elements: [1].
func mean(t *tensor.Tensor, dtype ir.DType) *tensor.Tensor {
	return t.Cast(ir.F32).Mean().Cast(dtype).Reshape(1)
}

// run evaluates a batch.
func (f *evaluation) run(ctx context.Context, batch nn.Values) (map[string]float64, error) {
	if err := feed(ctx, f.Function, batch, f.prefix); err != nil {
		return nil, err
	}
	if err := f.Run(ctx, nil); err != nil {
		return nil, err
	}
	means := make(map[string]float64)
	for _, name := range f.names {
		v, err := tensor.Get[float32](ctx, f.Function, f.prefix+"mean."+name)
		if err != nil {
			return nil, err
		}
		means[name] = float64(v[0])
	}
	return means, nil
}

// feed fills the inputs of a function that it uses.
func feed(ctx context.Context, f *tensor.Function, batch nn.Values, prefix string) error {
	for _, b := range f.Buffers() {
		name, ours := strings.CutPrefix(b.Name, prefix)
		value, ok := batch[name]
		if !ours || !ok {
			continue
		}
		if err := f.Write(ctx, b.Name, value.Data); err != nil {
			return err
		}
	}
	return nil
}

func (e *evaluator) close() {
	for _, f := range e.known {
		f.Close()
	}
}
