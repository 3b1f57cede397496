package schedule_test

import (
	"math"
	"testing"

	"tgc/ir"
	"tgc/nn"
	"tgc/schedule"
	"tgc/tensor"
)

// Sines that many readers use are computed once, however many positions there are:
// the table is the last value of the chain that reads no buffer, not the angles.
func TestTablesEndChains(t *testing.T) {
	frequencies := make([]float64, 64)
	for i := range frequencies {
		frequencies[i] = math.Pow(10000, -float64(i)/64)
	}
	for _, tokens := range []int{128, 512} {
		g := tensor.NewGraph()
		start := g.Input("start", ir.I32, 1, 1)
		positions := g.Iota(ir.I32, g.Dims(tokens)[0]).Reshape(1, tokens).Add(start)
		rotation := nn.NewRotation(positions, frequencies)
		for _, name := range []string{"a", "b", "c", "d"} {
			x := g.Input(name, ir.F32, 1, tokens, 2, 128)
			g.Output("y"+name, rotation.Apply(x, nn.PairNeighbours))
		}
		sink, err := g.Sink()
		if err != nil {
			t.Fatal(err)
		}
		a := ir.NewArena()
		s, err := schedule.Run(t.Context(), a, a.Import(sink), schedule.DefaultOptions())
		if err != nil {
			t.Fatal(err)
		}
		sines := 0
		for _, l := range s.Launches {
			for _, k := range l.Kernels {
				for _, u := range ir.Toposort(k.AST) {
					if u.Op == ir.OpSin {
						sines++
					}
				}
			}
		}
		if sines != 2 {
			t.Errorf("%d tokens: %d sines in all kernels, want 2\n%s", tokens, sines, s)
		}
	}
}
