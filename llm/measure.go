package llm

import (
	"context"
	"fmt"
	"maps"
	"time"

	"tgc/engine"
	"tgc/target"
	"tgc/tensor"
)

// Prepare compiles what feeding a prompt of n tokens, generating after it and
// sampling need, so that nothing is compiled while a user waits for a token.
func (s *Session) Prepare(ctx context.Context, n int, opt Sampling) error {
	// Where the device's loop feeds what is generated, a step of one token is only
	// for what is left of a prompt.
	if err := s.prepareSteps(ctx, n, s.ahead() == 0); err != nil {
		return err
	}
	if s.ahead() > 0 {
		if _, err := s.loop(ctx, opt.Temperature == 0); err != nil {
			return err
		}
	}
	_, err := s.sampler(ctx, opt)
	return err
}

// prepareSteps compiles the steps that a prompt of n tokens takes, and that of one
// token where single ones are fed after it.
func (s *Session) prepareSteps(ctx context.Context, n int, single bool) error {
	sizes := map[int]bool{1: single}
	for left := n; left > 0; left -= chunkFor(left) {
		sizes[chunkFor(left)] = true
	}
	for _, size := range chunks {
		if sizes[size] {
			if _, err := s.step(ctx, size); err != nil {
				return err
			}
		}
	}
	return nil
}

// CompileTime is the time spent so far in compiling and loading steps.
func (s *Session) CompileTime() time.Duration {
	var sum time.Duration
	for _, t := range s.compiling {
		sum += t
	}
	return sum
}

// CompileTimes is CompileTime by what it was spent in: building graphs ("graph"),
// the compiler's passes by their names, and rendering, assembling and recording on
// the device ("load").
func (s *Session) CompileTimes() map[string]time.Duration { return maps.Clone(s.compiling) }

// compile compiles a graph and notes the time of each pass.
func (s *Session) compile(ctx context.Context, g *tensor.Graph, desc *target.Desc, what string) (*engine.Compiled, error) {
	sink, err := g.Sink()
	if err != nil {
		return nil, err
	}
	compiled, err := engine.Compile(ctx, sink, desc, s.options.Config)
	if err != nil {
		return nil, fmt.Errorf("compiling %s: %w", what, err)
	}
	for _, p := range compiled.Passes {
		s.compiling[p.Name] += p.Time
	}
	return compiled, nil
}

// build makes a graph and notes the time.
func (s *Session) build(make func() (*tensor.Graph, error)) (g *tensor.Graph, err error) {
	err = s.timed("graph", func() error {
		g, err = make()
		return err
	})
	return g, err
}

// timed notes the time of a part of compiling that is no pass.
func (s *Session) timed(part string, f func() error) error {
	start := time.Now()
	err := f()
	s.compiling[part] += time.Since(start)
	return err
}

// Seek moves to a position without computing what lies before it: the cache
// keeps what it holds. Only measurements have a use for it.
func (s *Session) Seek(position int) error {
	if position < 0 || position > s.options.Context {
		return fmt.Errorf("llm: position %d, want 0 to %d", position, s.options.Context)
	}
	s.position, s.fed = position, 0
	return nil
}

// Profile runs one step on tokens without moving on, and returns the compiled
// step with the time of each of its calls, in the order of its launches.
func (s *Session) Profile(ctx context.Context, tokens []int32) (*CompiledStep, []time.Duration, error) {
	if err := s.checkTokens(tokens); err != nil {
		return nil, nil, err
	}
	st, vars, err := s.load(ctx, tokens)
	if err != nil {
		return nil, nil, err
	}
	times, err := st.engine.Profile(ctx, vars)
	return s.describe(st, vars), times, err
}

// Compiled returns the compiled step of so many tokens, as it is at the current
// position.
func (s *Session) Compiled(ctx context.Context, tokens int) (*CompiledStep, error) {
	st, err := s.step(ctx, chunkFor(tokens))
	if err != nil {
		return nil, err
	}
	length := min(s.position+st.variant.Tokens, s.options.Context)
	return s.describe(st, map[string]int64{VarLength: int64(length)}), nil
}

func (s *Session) describe(st *step, vars map[string]int64) *CompiledStep {
	return &CompiledStep{
		Compiled: st.engine.Compiled,
		Binding:  engine.Binding{Vars: vars, Buffers: describeBuffers(s.model, st.graph)},
	}
}
