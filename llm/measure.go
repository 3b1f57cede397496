package llm

import (
	"context"
	"fmt"
	"time"

	"tgc/engine"
)

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

func (s *Session) describe(st *step, vars map[string]int64) *CompiledStep {
	return &CompiledStep{
		Compiled: st.engine.Compiled,
		Binding:  engine.Binding{Vars: st.engine.Compiled.Values(vars), Buffers: describeBuffers(s.model, st.graph)},
	}
}
