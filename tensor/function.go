package tensor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"tgc/engine"
	"tgc/runtime"
)

// Function is a compiled graph with memory for all its buffers, ready to run
// again and again.
//
// Its methods, Set and Get may be called from several goroutines: they take turns. What a
// run reads is what was set last, by whomever; goroutines that want inputs and results of
// their own take a Function each, which can share weights (Compile). Functions that share
// a buffer must not use it at once if one of them writes it.
type Function struct {
	mu       sync.Mutex
	step     *engine.Step
	buffers  map[string]*buffer
	declared map[string]bool // variables of the graph, used or not
	// unchecked are the inputs of which it is not known for good that they hold values.
	unchecked []*buffer
	ran       bool
	closed    bool
}

// Compile compiles a graph for a device and allocates its buffers. Buffers that
// a function in share has under the same name are that function's memory, so
// that a training step and an evaluation work on the same weights; dtypes and
// shapes must agree. Memory is freed when the last function that has it is closed.
// Graph.Function is Compile for the graph's device and the options of the environment.
func Compile(ctx context.Context, g *Graph, dev runtime.Device, config engine.Config, share ...*Function) (*Function, error) {
	switch {
	case g == nil:
		return nil, errors.New("tensor: compile: the graph is nil")
	case isNil(dev):
		return nil, errors.New("tensor: compile: the device is nil")
	case slices.Contains(share, nil):
		return nil, errors.New("tensor: compile: a function to share with is nil")
	}
	compiled, err := g.Compile(ctx, dev.Target(), config)
	if err != nil {
		return nil, err
	}
	return bind(ctx, g, dev, compiled, share)
}

// Function compiles the graph for its device (On, or the default one) with the options of the
// environment (engine.ReadConfig): see Compile.
func (g *Graph) Function(ctx context.Context, share ...*Function) (*Function, error) {
	dev, config, err := g.surroundings()
	if err != nil {
		return nil, fmt.Errorf("tensor: function: %w", err)
	}
	return Compile(ctx, g, dev, config, share...)
}

// bind makes the function of a compiled graph.
func bind(ctx context.Context, g *Graph, dev runtime.Device, compiled *engine.Compiled, share []*Function) (_ *Function, err error) {
	f := &Function{buffers: make(map[string]*buffer), declared: g.variables}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	byID := make(map[int64]runtime.Memory)
	uses := usesOf(compiled.Schedule)
	for i, b := range compiled.Schedule.Buffers {
		if b.UserID < 0 {
			continue
		}
		own := &buffer{BufferInfo: g.buffers[b.UserID], layout: compiled.Layout(b.UserID), uses: uses[i]}
		if _, twice := f.buffers[own.Name]; twice {
			return nil, fmt.Errorf("tensor: two buffers are named %q", own.Name)
		}
		own.constant = g.values[b.UserID] != nil
		own.bytes = own.layout.Bytes(hostBytes(own.BufferInfo, b.Bytes))
		if err := own.provide(ctx, dev, share); err != nil {
			return nil, fmt.Errorf("tensor: buffer %q: %w", own.Name, err)
		}
		f.buffers[own.Name], byID[b.UserID] = own, own.memory.Memory
		if err := own.preset(ctx, g); err != nil {
			return nil, err
		}
		if own.uses.read {
			f.unchecked = append(f.unchecked, own)
		}
	}
	f.step, err = engine.Capture(ctx, dev, compiled, byID)
	return f, err
}

// Step gives access to the compiled kernels.
func (f *Function) Step() *engine.Step { return f.step }

// Run computes all results; vars are the values of symbolic sizes, within the bounds that
// they were declared with. Inputs that hold no values yet are an error, and so is a variable
// that the graph does not have.
func (f *Function) Run(ctx context.Context, vars map[string]int64) error {
	if err := f.open("run"); err != nil {
		return err
	}
	defer f.mu.Unlock()
	for name := range vars {
		if !f.declared[name] {
			return fmt.Errorf("tensor: run: the graph has no variable %q", name)
		}
	}
	if err := f.ready(vars); err != nil {
		return fmt.Errorf("tensor: run: %w", err)
	}
	if err := f.step.Run(ctx, vars); err != nil || f.ran {
		return err
	}
	f.ran = true
	for _, b := range f.buffers {
		if b.uses.written {
			b.memory.filled.Store(true)
		}
	}
	return nil
}

// ready reports the first input without values. What holds values keeps some, so that an
// input of constant shape is looked at until it has them.
func (f *Function) ready(vars map[string]int64) error {
	for _, b := range f.unchecked {
		if err := b.ready(vars); err != nil {
			return err
		}
	}
	f.unchecked = slices.DeleteFunc(f.unchecked, func(b *buffer) bool {
		_, constant := product(b.Shape)
		return constant
	})
	return nil
}

// open locks the function for a call; a nil or closed one is the call's error.
func (f *Function) open(call string) error {
	if f == nil {
		return fmt.Errorf("tensor: %s: the function is nil", call)
	}
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return fmt.Errorf("tensor: %s: the function is closed", call)
	}
	return nil
}

// Close frees the function's memory, but for what other functions share. Calls after it
// are errors; closing twice is not.
func (f *Function) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	f.closed = true
	if f.step != nil {
		f.step.Free()
	}
	for _, b := range f.buffers {
		b.memory.release()
	}
}

// Buffers lists the buffers that the function uses, in the graph's order. A
// buffer that no result needs is not among them.
func (f *Function) Buffers() []BufferInfo {
	list := make([]BufferInfo, 0, len(f.buffers))
	for _, b := range f.buffers {
		list = append(list, b.BufferInfo)
	}
	slices.SortFunc(list, func(a, b BufferInfo) int { return cmp.Compare(a.ID, b.ID) })
	return list
}
