package llm

import (
	"context"

	"tgc/engine"
	"tgc/target"
	"tgc/tensor"
)

// CompiledStep is a compiled step with what its buffers are for.
type CompiledStep struct {
	Compiled *engine.Compiled
	Binding  engine.Binding
}

// Manifest describes a compiled step of a model: what manifest.json holds.
type Manifest struct {
	Target string `json:"target"`
	Step   string `json:"step"` // decode, prefill; graph for one that is no model's
	Mode   string `json:"mode"`
	KV     string `json:"kv,omitempty"` // type of the cache; empty: f32
	Model  string `json:"model"`
	Ctx    int    `json:"ctx"`    // rows of the cache
	Depth  int    `json:"depth"`  // position at which bytes are counted
	Tokens int    `json:"tokens"` // fed to each sequence
	Batch  int    `json:"batch"`  // sequences

	engine.Manifest
}

// CompileStep compiles a step for a target without a device or weights. depth
// is the position that the description of its traffic assumes.
func CompileStep(ctx context.Context, m *Model, v Variant, depth int, desc *target.Desc, config engine.Config) (*CompiledStep, error) {
	chooseRecords(&config, m.File, desc, v.Numeric, 0)
	v.Codes = codesFor(config.Records, desc)
	g, err := BuildStep(m.Config, m.File, v)
	if err != nil {
		return nil, err
	}
	compiled, err := g.Compile(ctx, desc, config)
	if err != nil {
		return nil, err
	}
	length := min(depth+v.Tokens, v.Context)
	return &CompiledStep{
		Compiled: compiled,
		Binding:  engine.Binding{Vars: map[string]int64{VarLength: int64(length)}, Buffers: describeBuffers(m, g)},
	}, nil
}

// describe says what a captured step is, at values of its variables.
func (s *Session) describe(st *step, vars map[string]int64) *CompiledStep {
	return &CompiledStep{
		Compiled: st.engine.Compiled,
		Binding:  engine.Binding{Vars: st.engine.Compiled.Values(vars), Buffers: describeBuffers(s.model, st.graph)},
	}
}

// describeBuffers tells name and role of a step's buffers.
func describeBuffers(m *Model, g *tensor.Graph) map[int64]engine.BufferUse {
	uses := make(map[int64]engine.BufferUse)
	for _, b := range g.Buffers() {
		role := engine.RoleInput
		switch _, weight := m.File.Tensor(b.Name); {
		case weight:
			role = engine.RoleWeight
		case isCache(b.Name):
			role = engine.RoleState
		case b.Output:
			role = engine.RoleOutput
		}
		uses[b.ID] = engine.BufferUse{Name: b.Name, Role: role}
	}
	return uses
}
