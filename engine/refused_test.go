package engine_test

import (
	"strings"
	"testing"

	"tgc/engine"
	"tgc/heuristic"
	"tgc/ir"
	"tgc/target"
	"tgc/tensor"
)

// Knobs that ask for more threads than a block has are refused when the plan is carried
// out: the kernel has the plan that it has without them, and says why.
func TestRefusedKnobs(t *testing.T) {
	desc, err := target.Parse("ptx:sm_90")
	if err != nil {
		t.Fatal(err)
	}
	compile := func(knobs heuristic.Knobs) *engine.Kernel {
		g := tensor.NewGraph()
		g.Output("y", g.Input("x", ir.F32, 2048).Linear(g.Input("w", ir.F32, 2048, 2048)))
		c, err := g.Compile(t.Context(), desc, engine.Config{Knobs: knobs})
		if err != nil {
			t.Fatal(err)
		}
		return c.Kernels[0]
	}
	plain, refused := compile(heuristic.Knobs{}), compile(heuristic.Knobs{BlockSize: 1024, ThreadsPerRow: 32})
	if refused.Plan.String() != plain.Plan.String() || !strings.HasPrefix(refused.Why, plain.Why+"; not as the knobs say: ") || !strings.Contains(refused.Why, "threads a block") {
		t.Errorf("plan %s: %s\nwant that of\n%s: %s", refused.Plan, refused.Why, plain.Plan, plain.Why)
	}
}
