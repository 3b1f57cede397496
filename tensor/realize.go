package tensor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"tgc/engine"
	"tgc/internal/lists"
	"tgc/ir"
	"tgc/runtime"
	"tgc/runtime/devices"
)

// On sets the device that Data, Realize and Function compute on, and returns the graph.
// Without one it is devices.Default, which is opened when it is first needed.
func (g *Graph) On(dev runtime.Device) *Graph {
	g.device = dev
	return g
}

// Realize computes tensors of one graph together, as one compiled graph; Data
// then reads them, and whatever is built on them starts from these values. The graph keeps
// them as long as a tensor that something refers to may ask for them: a loop that goes on with the
// tensors of its last step does not grow. All inputs must have values (FromSlice), and no size may be symbolic: for work that is
// repeated on changing inputs, Compile a Function.
func Realize(ctx context.Context, tensors ...*Tensor) error {
	if len(tensors) == 0 {
		return nil
	}
	var g *Graph
	var wanted []*Tensor
	for _, t := range tensors {
		if t == nil || t.graph == nil {
			return errors.New("tensor: realize: a tensor is nil")
		}
		if g == nil {
			g = t.graph
		}
		if t.graph != g {
			return fmt.Errorf("tensor: realize: tensors of different graphs")
		}
		if t.ok() && !g.known(t.node) && !slices.ContainsFunc(wanted, func(w *Tensor) bool { return w.node == t.node }) {
			wanted = append(wanted, t)
		}
	}
	if g.err != nil || len(wanted) == 0 {
		return g.err
	}
	g.sweep()
	return g.realize(ctx, wanted)
}

// Realize is Realize of one tensor.
func (t *Tensor) Realize(ctx context.Context) error { return Realize(ctx, t) }

// known reports a node that has values.
func (g *Graph) known(node *ir.UOp) bool {
	if _, ok := g.realised[node]; ok {
		return true
	}
	arg, ok := node.Arg.(ir.BufferArg)
	return ok && node.Op == ir.OpBuffer && g.values[arg.ID] != nil
}

// realize compiles a copy of the graph whose only results are the wanted
// tensors, runs it and keeps the values as buffers.
func (g *Graph) realize(ctx context.Context, wanted []*Tensor) error {
	work := &Graph{arena: g.arena, shapes: g.shapes, buffers: slices.Clone(g.buffers), variables: g.variables, values: g.values, others: g.others, larger: g.larger}
	for i, t := range wanted {
		work.Output(resultName(i), work.wrap(t.node))
	}
	if work.err != nil {
		return work.err
	}
	dev, config, err := g.surroundings()
	if err != nil {
		return fmt.Errorf("tensor: realize: %w", err)
	}
	compiled, err := work.compile(ctx, dev.Target(), config, g.realised)
	if err != nil {
		return err
	}
	f, err := bind(ctx, work, dev, compiled, nil)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, b := range f.Buffers() {
		if !b.Output && g.values[b.ID] == nil {
			return fmt.Errorf("tensor: realize: input %q has no values: make it with FromSlice, or use Compile", b.Name)
		}
	}
	if err := f.Run(ctx, nil); err != nil {
		return err
	}
	return g.keepValues(ctx, f, wanted)
}

// surroundings are the graph's device, which may be the default one, and the options of the
// environment.
func (g *Graph) surroundings() (dev runtime.Device, config engine.Config, err error) {
	if config, err = engine.ReadConfig(); err != nil || g.device != nil {
		return g.device, config, err
	}
	dev, err = devices.Default()
	return dev, config, err
}

func resultName(i int) string { return fmt.Sprintf("#result%d", i) }

// keepValues reads the results and puts a buffer with values in the place of each.
func (g *Graph) keepValues(ctx context.Context, f *Function, wanted []*Tensor) error {
	for i, t := range wanted {
		raw, err := f.Read(ctx, resultName(i))
		if err != nil {
			return err
		}
		shape := lists.Make(t.Rank(), t.Extent)
		stored := g.FromBytes(t.DType(), raw, shape...)
		if !stored.ok() {
			return g.err
		}
		if g.realised == nil {
			g.realised = make(map[*ir.UOp]*ir.UOp)
		}
		g.realised[t.node] = stored.node
	}
	return nil
}
