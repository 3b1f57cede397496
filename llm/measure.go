package llm

import (
	"fmt"

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

func (s *Session) describe(st *step, vars map[string]int64) *CompiledStep {
	return &CompiledStep{
		Compiled: st.engine.Compiled,
		Binding:  engine.Binding{Vars: st.engine.Compiled.Values(vars), Buffers: describeBuffers(s.model, st.graph)},
	}
}
