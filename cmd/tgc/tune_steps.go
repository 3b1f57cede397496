package main

import (
	"context"
	"fmt"

	"tgc/engine"
	"tgc/ir"
	"tgc/llm"
	"tgc/llm/bench"
	"tgc/search"
	"tgc/search/job"
)

// openedStep is a step with its buffers on the device.
type openedStep struct {
	search.NamedStep
	tokens int // fed at once, to all sequences
	roles  func(c *engine.Compiled) roles
}

// roles say what kernels of a step are for.
type roles map[*engine.Kernel]string

// steps opens the steps of a run, which share the weights. free ends them, also after an error.
func (t *tuner) steps(ctx context.Context, run tuneRun) (list []openedStep, free func(), err error) {
	if job.IsGraph(run.name) {
		return t.graph(ctx, run.name)
	}
	var closers []func()
	free = func() {
		for i := range closers {
			closers[len(closers)-1-i]()
		}
	}
	m, err := openModel(ctx, run.name, openFile)
	if err != nil {
		return nil, free, err
	}
	closers = append(closers, func() { m.Close() })
	var first *llm.Batch
	for _, step := range run.steps {
		batch, err := t.batch(ctx, m, run, step, first)
		if err != nil {
			return nil, free, stepError(step, err)
		}
		closers = append(closers, batch.Close)
		if first == nil {
			first = batch
		}
		opened, err := t.open(ctx, batch, m, run, step)
		if err != nil {
			return nil, free, stepError(step, err)
		}
		list = append(list, opened)
	}
	return list, free, nil
}

func stepError(step job.Step, err error) error {
	if step.Text == "" {
		return err
	}
	return fmt.Errorf("step %s: %w", step.Text, err)
}

// batch is where a step runs; weights are those of another one, if there is one.
func (t *tuner) batch(ctx context.Context, m *llm.Model, run tuneRun, step job.Step, weights *llm.Batch) (*llm.Batch, error) {
	rows := min(t.flags.context, m.Config.Context)
	if step.Depth+step.Tokens > rows {
		return nil, fmt.Errorf("depth %d and %d tokens do not fit the context of %d", step.Depth, step.Tokens, rows)
	}
	batch, err := llm.NewBatch(ctx, m, t.dev, llm.BatchOptions{Sequences: step.Batch, Context: rows, Mode: run.mode, Cache: t.flags.device.kv.CacheType, Config: t.config, Weights: weights})
	if err != nil {
		return nil, err
	}
	if n := batch.FirstChunk(step.Tokens); n < step.Tokens {
		batch.Close()
		return nil, fmt.Errorf("%d tokens, a step feeds at most %d", step.Tokens, n)
	}
	return batch, batch.Seek(step.Depth)
}

// open compiles a step.
func (t *tuner) open(ctx context.Context, batch *llm.Batch, m *llm.Model, run tuneRun, step job.Step) (s openedStep, err error) {
	loaded, capture, err := batch.Loaded(ctx, bench.Tokens(step.Batch, step.Tokens, m.Config.Vocabulary))
	if err != nil {
		return s, err
	}
	s.Step = search.Step{Compiled: loaded.Compiled, Vars: loaded.Binding.Vars, Capture: capture}
	s.Name, s.Times = step.Text, step.Times
	s.Log = search.LogStep{Shape: run.name, Mode: run.mode.String(), Batch: step.Batch, Tokens: step.Tokens, Context: t.flags.context, Depth: step.Depth}
	s.tokens = step.Tokens * step.Batch
	s.roles = func(c *engine.Compiled) roles { return rolesOf(c, loaded.Binding) }
	return s, nil
}

// graph is a graph in text form, or a kernel.
func (t *tuner) graph(ctx context.Context, name string) (list []openedStep, free func(), err error) {
	free = func() {}
	text, err := readInput(t.cmd, name)
	if err != nil {
		return nil, free, err
	}
	root, err := ir.Parse(ir.NewArena(), text)
	if err != nil {
		return nil, free, err
	}
	compiled, err := engine.Compile(ctx, root, t.dev.Target(), t.config)
	if err != nil {
		return nil, free, err
	}
	step, free, err := search.GraphStep(ctx, t.dev, compiled, t.flags.seed)
	s := openedStep{NamedStep: search.NamedStep{Step: step, Log: search.LogStep{Shape: name}}, tokens: 0}
	s.roles = func(c *engine.Compiled) roles { return rolesOf(c, engine.Bind(c, step.Vars)) }
	return []openedStep{s}, free, err
}

func rolesOf(c *engine.Compiled, b engine.Binding) roles {
	var m engine.Manifest
	m.Describe(c, b)
	list := make(roles)
	for i := range m.Kernels {
		list[m.Kernels[i].Compiled()] = bench.Role(&m.Kernels[i])
	}
	return list
}
