package heuristic_test

import (
	"slices"
	"testing"

	"tgc/heuristic"
	"tgc/ir"
	"tgc/kernel/plan"
	"tgc/nn"
	"tgc/target"
	"tgc/tensor"
)

// What a format takes off its codes is multiplied with sums of activations. They may be no part of the sums of
// codes, as where two matrices share them, and are still computed once for all rows.
func TestSumsOfActivationsAreStaged(t *testing.T) {
	desc := target.ForCPU("znver4", nil, 2)
	for _, format := range []string{"Q4_0", "Q6_K", "Q4_K"} {
		g := tensor.NewGraph()
		x := nn.RMSNorm(g.Input("x", ir.F32, 2048), g.Input("gamma", ir.F32, 2048), 1e-5)
		g.Output("y", nn.Int8.Linear(x, g.Packed("gate", format, 512, 2048)).Silu().Mul(nn.Int8.Linear(x, g.Packed("up", format, 512, 2048))))
		a, s := scheduled(t, g, desc)
		for _, launch := range s.Launches {
			for _, k := range launch.Kernels {
				choice, err := heuristic.Choose(a, k.AST, desc, heuristic.Knobs{})
				if err != nil {
					t.Fatal(err)
				}
				has := func(kind plan.OptKind) bool {
					return slices.ContainsFunc(choice.Plan.Opts, func(o plan.Opt) bool { return o.Kind == kind })
				}
				if has(plan.TC) && !has(plan.STAGE) {
					t.Errorf("%s: sums of activations in the loop over a row (%s)", format, choice.Plan)
				}
			}
		}
	}
}
