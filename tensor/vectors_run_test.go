package tensor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"slices"

	"tgc/engine"
	"tgc/grad"
	"tgc/ir"
	"tgc/runtime/devices"
	"tgc/tensor"
)

// runForward compiles and runs the case in one graph and compares all outputs.
func (c *vectorCase) runForward(ctx context.Context, dev *devices.Device) error {
	g := tensor.NewGraph()
	_, outputs, err := c.build(g)
	if err != nil {
		return err
	}
	if err := c.checkOutputs(outputs); err != nil {
		return err
	}
	tol := tolerance{float64(c.Rtol), float64(c.Atol), c.Bitwise}
	wants := make([]*vectorTensor, len(c.Outputs))
	for i := range c.Outputs {
		wants[i] = &c.Outputs[i]
	}
	return c.realise(ctx, dev, g, outputs, wants, tol)
}

// runBackward does the same, in a fresh graph, with the gradients.
func (c *vectorCase) runBackward(ctx context.Context, dev *devices.Device) error {
	g := tensor.NewGraph()
	inputs, outputs, err := c.build(g)
	if err != nil {
		return err
	}
	var results, seeds, asked []*tensor.Tensor
	for i, seed := range c.cotangents() {
		if seed == nil {
			continue
		}
		results = append(results, outputs[i])
		seeds = append(seeds, g.Input(cotangentName(i), seed.dtype, seed.Shape...))
	}
	var wants []*vectorTensor
	for i, want := range c.Grads {
		if want != nil {
			asked, wants = append(asked, inputs[i]), append(wants, want)
		}
	}
	grads := grad.Of(results, seeds, asked)
	for i, grad := range grads {
		if grad == nil { // no path: zero
			grads[i] = g.Scalar(asked[i].DType(), 0).Expand(wants[i].Shape...)
		}
	}
	if err := g.Err(); err != nil {
		return err
	}
	return c.realise(ctx, dev, g, grads, wants, tolerance{rtol: float64(c.GradRtol), atol: float64(c.GradAtol)})
}

// build makes the case's inputs and outputs. A panic of the library is the
// case's failure.
func (c *vectorCase) build(g *tensor.Graph) (inputs, outputs []*tensor.Tensor, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v\n%s", cause, debug.Stack())
		}
	}()
	for _, v := range slices.Concat(c.Inputs, c.Outputs) {
		if v.dtype == ir.Void {
			return nil, nil, fmt.Errorf("%w: dtype %s", errMissing, v.Type)
		}
	}
	for i := range c.Inputs {
		in := &c.Inputs[i]
		inputs = append(inputs, g.Input(inputName(i), in.dtype, in.Shape...))
	}
	if c.Op == "program" {
		outputs, err = c.buildProgram(g, inputs)
	} else {
		outputs, err = apply(g, c.Op, c.Attrs, inputs)
	}
	if err == nil {
		err = g.Err()
	}
	return inputs, outputs, err
}

func inputName(i int) string     { return fmt.Sprint("in", i) }
func cotangentName(i int) string { return fmt.Sprint("cotangent", i) }
func outputName(i int) string    { return fmt.Sprint("out", i) }

// apply builds one operation through the dispatch table.
func apply(g *tensor.Graph, op string, attributes map[string]json.RawMessage, inputs []*tensor.Tensor) ([]*tensor.Tensor, error) {
	build, ok := vectorOps[op]
	if !ok {
		return nil, fmt.Errorf("%w: op %s", errMissing, op)
	}
	a := &attrs{graph: g, values: attributes, used: make(map[string]bool)}
	outputs := build(a, inputs)
	return outputs, a.finish()
}

// buildProgram runs the steps of a program in order.
func (c *vectorCase) buildProgram(g *tensor.Graph, inputs []*tensor.Tensor) ([]*tensor.Tensor, error) {
	named := make(map[string]*tensor.Tensor)
	for i := range c.Inputs {
		named[c.Inputs[i].Name] = inputs[i]
	}
	for _, step := range c.Steps {
		in := make([]*tensor.Tensor, len(step.In))
		for i, name := range step.In {
			if in[i] = named[name]; in[i] == nil {
				return nil, fmt.Errorf("step %s reads %q, which nothing names", step.Op, name)
			}
		}
		out, err := apply(g, step.Op, step.Attrs, in)
		if err != nil {
			return nil, err
		}
		if len(out) < len(step.Out) {
			return nil, fmt.Errorf("step %s has %d results, want %d", step.Op, len(out), len(step.Out))
		}
		for i, name := range step.Out {
			named[name] = out[i]
		}
	}
	outputs := make([]*tensor.Tensor, len(c.Outputs))
	for i := range c.Outputs {
		if outputs[i] = named[c.Outputs[i].Name]; outputs[i] == nil {
			return nil, fmt.Errorf("no step makes output %q", c.Outputs[i].Name)
		}
	}
	return outputs, nil
}

// checkOutputs compares number, shapes and dtypes.
func (c *vectorCase) checkOutputs(outputs []*tensor.Tensor) error {
	if len(outputs) != len(c.Outputs) {
		return fmt.Errorf("%d outputs, want %d", len(outputs), len(c.Outputs))
	}
	for i, got := range outputs {
		want := &c.Outputs[i]
		same := got.DType() == want.dtype || c.isIndex(i) && got.DType().IsInt()
		if !same || !slices.Equal(extents(got), want.Shape) {
			return fmt.Errorf("output %d is %s, want %s%v", i, got, want.dtype, want.Shape)
		}
	}
	return nil
}

// indexOutput is the output of an op that holds indices: they may come in any
// integer dtype.
var indexOutput = map[string]int{
	"argmax": 0, "argmin": 0, "argsort": 0, "sort": 1, "topk": 1, "cummax": 1, "cummin": 1,
}

func (c *vectorCase) isIndex(output int) bool {
	if c.Op != "program" {
		k, ok := indexOutput[c.Op]
		return ok && k == output
	}
	for _, step := range c.Steps {
		if k, ok := indexOutput[step.Op]; ok && k < len(step.Out) && step.Out[k] == c.Outputs[output].Name {
			return true
		}
	}
	return false
}

func extents(t *tensor.Tensor) []int {
	shape := make([]int, t.Rank())
	for k := range shape {
		shape[k] = t.Extent(k)
	}
	return shape
}

// realise compiles all results together, runs once and compares.
func (c *vectorCase) realise(ctx context.Context, dev *devices.Device, g *tensor.Graph, results []*tensor.Tensor, wants []*vectorTensor, tol tolerance) error {
	for i, r := range results {
		if r.DType() != wants[i].dtype && !r.DType().IsInt() || !slices.Equal(extents(r), wants[i].Shape) {
			return fmt.Errorf("result %d is %s, want %s%v", i, r, wants[i].dtype, wants[i].Shape)
		}
		g.Output(outputName(i), r)
	}
	config, err := engine.ReadConfig()
	if err != nil {
		return err
	}
	config.Verify = true
	f, err := tensor.Compile(ctx, g, dev, config)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := c.fill(ctx, f); err != nil {
		return err
	}
	if err := f.Run(ctx, nil); err != nil {
		return err
	}
	for i, r := range results {
		got, err := f.Read(ctx, outputName(i))
		if err != nil {
			return err
		}
		if err := compare(r.DType(), got, wants[i], tol); err != nil {
			return fmt.Errorf("result %d: %w", i, err)
		}
	}
	return nil
}

// fill writes the inputs and cotangents that the compiled graph reads.
func (c *vectorCase) fill(ctx context.Context, f *tensor.Function) error {
	raw := make(map[string][]byte)
	for i := range c.Inputs {
		raw[inputName(i)] = c.Inputs[i].Raw
	}
	for i, seed := range c.cotangents() {
		if seed != nil {
			raw[cotangentName(i)] = seed.Raw
		}
	}
	for _, b := range f.Buffers() {
		if data, ok := raw[b.Name]; ok {
			if err := f.Write(ctx, b.Name, data); err != nil {
				return err
			}
		}
	}
	return nil
}
