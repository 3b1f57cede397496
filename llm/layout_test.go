package llm_test

import (
	"slices"
	"testing"

	"tgc/engine"
	"tgc/ir"
	"tgc/llm"
	"tgc/nn"
	"tgc/tensor"
)

// A product with packed weights that a program builds by itself has the plan, and so
// the layout of weights, that it has in a step of a model.
func TestProductsHaveTheStepsPlans(t *testing.T) {
	const name = "llama3.2:1b-q6_k"
	m, desc := openOutline(t, name), mustTarget(t, "ptx:sm_90")
	step, err := llm.CompileStep(t.Context(), m, llm.Variant{Batch: 1, Tokens: 1, Context: 64}, 8, desc, engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	last := step.Compiled.Launches[len(step.Compiled.Launches)-1][0].Kernel

	g := tensor.NewGraph()
	c := m.Config
	w, _ := m.File.Tensor("token_embd.weight")
	x := nn.RMSNorm(g.Input("x", ir.F32, 1, 1, c.Width), g.Input("norm", ir.F32, c.Width), c.Epsilon)
	g.Output("y", x.Linear(g.Packed("w", w.Type.String(), c.Vocabulary, c.Width)).Reshape(1, c.Vocabulary))
	alone, err := g.Compile(t.Context(), desc, engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if k := alone.Kernels[len(alone.Kernels)-1]; !slices.Equal(k.Plan.Opts, last.Plan.Opts) {
		t.Errorf("alone it has the plan %s, in a step %s", k.Plan, last.Plan)
	}
	if !alone.Target.Planes || !step.Compiled.Target.Planes {
		t.Error("the weights lie as in the file")
	}
}
