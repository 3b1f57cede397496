package engine_test

import (
	"strings"
	"testing"

	"tgc/engine"
	"tgc/ir"
	"tgc/target"
	"tgc/tensor"
)

// The exchanges between the stages of a sorted row start their next kernel as late as these
// do, what follows the last one early.
func TestStartLate(t *testing.T) {
	for name, late := range map[string]int{"ptx:sm_90": 3, "ptx:sm_87": 0} {
		desc, err := target.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		g := tensor.NewGraph()
		y, _ := g.Input("x", ir.F32, 64, 2000).Sort(-1, false)
		g.Output("y", y)
		c, err := g.Compile(t.Context(), desc, engine.Config{Verify: true})
		if err != nil {
			t.Fatal(err)
		}
		var plans []string
		for _, calls := range c.Launches {
			plans = append(plans, calls[0].Kernel.Plan.String())
		}
		if got := strings.Count(strings.Join(plans, "\n"), "TRIGGER wait"); got != late || len(plans) != 4 || strings.Contains(plans[3], "TRIGGER") {
			t.Errorf("%s: %d of %d kernels start the next one late, want the first %d of 4:\n%s", name, got, len(plans), late, strings.Join(plans, "\n"))
		}
	}
}
