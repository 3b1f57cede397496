package schedule_test

import (
	"testing"

	"tgc/ir"
	"tgc/schedule"
)

// 28: equal layers give equal kernels, whether they read the input or a temporary:
// sixteen layers compile as one.
func TestTrap28EqualLayers(t *testing.T) {
	unique := func(layers int) int {
		g := llama1B(layers).build()
		sink, err := g.Sink()
		if err != nil {
			t.Fatal(err)
		}
		a := ir.NewArena()
		s, err := schedule.Run(t.Context(), a, a.Import(sink), schedule.DefaultOptions())
		if err != nil {
			t.Fatal(err)
		}
		seen := make(map[*ir.UOp]bool)
		for _, l := range s.Launches {
			for _, k := range l.Kernels {
				if !seen[k.AST] && testing.Verbose() {
					t.Log(k.Name)
				}
				seen[k.AST] = true
			}
		}
		return len(seen)
	}
	three, four := unique(3), unique(4)
	if three != four {
		t.Errorf("%d unique kernels in 3 layers, %d in 4", three, four)
	}
}
