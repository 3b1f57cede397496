package engine_test

import (
	"strings"
	"testing"

	"tgc/engine"
	"tgc/ir"
	"tgc/nn"
	"tgc/target"
	"tgc/tensor"
)

// Two products of one launch share a GPU by their bytes where a token is multiplied; of 512 tokens the few rows
// of one, in few blocks, would take as long as the many of the other: both have the plans that they have by themselves.
func TestProductsOfALaunchApart(t *testing.T) {
	for _, test := range []struct {
		tokens int
		apart  bool
	}{{1, false}, {512, true}} {
		few, many := productPlans(t, test.tokens, 512), productPlans(t, test.tokens, 2048)
		both := productPlans(t, test.tokens, 512, 2048)
		if got := strings.Contains(both, few) && strings.Contains(both, many); got != test.apart {
			t.Errorf("%d tokens: each planned as by itself is %v, want %v:\n%s\nby themselves:\n%s\n%s", test.tokens, got, test.apart, both, few, many)
		}
	}
}

// productPlans are the plans of products of tokens by Q6_K matrices of so many rows each, in one launch.
func productPlans(t *testing.T, tokens int, rows ...int) string {
	t.Helper()
	const points = 2048
	desc, err := target.Parse("ptx:sm_90")
	if err != nil {
		t.Fatal(err)
	}
	g := tensor.NewGraph()
	x := g.Input("x", ir.F32, tokens, points)
	for i, n := range rows {
		name := string(rune('a' + i))
		g.Output("y"+name, nn.Exact.Linear(x, g.Packed(name, "Q6_K", n, points)))
	}
	c, err := g.Compile(t.Context(), desc, engine.Config{Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	var plans []string
	for _, calls := range c.Launches {
		for _, call := range calls {
			for _, k := range append(call.Kernel.Parts, call.Kernel) {
				plans = append(plans, k.Plan.String())
			}
		}
	}
	return strings.Join(plans, "\n")
}
