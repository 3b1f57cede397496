package tensor_test

import (
	"slices"
	"testing"

	"tgc/engine"
	"tgc/ir"
	"tgc/target"
	"tgc/tensor"
)

// A variable that may be made larger is rounded up by the grain of the target, within
// its bounds; another one never is.
func TestVarAtLeast(t *testing.T) {
	g := tensor.NewGraph()
	loose, strict := g.VarAtLeast("loose", 1, 20), g.Var("strict", 1, 20)
	ones := g.Input("ones", ir.F32, 20)
	count := func(n *ir.UOp) *tensor.Tensor { return ones.Slice(0, g.Dims(0)[0], n).SumKeep(0) }
	g.Output("y", count(loose).Cat(0, count(strict)))
	f, err := tensor.Compile(t.Context(), g, interpWith(func(n *target.Tuning) { n.Grain = 8 }), engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := tensor.Set(t.Context(), f, "ones", slices.Repeat([]float32{1}, 20)); err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int64]float32{1: 8, 8: 8, 9: 16, 17: 20, 20: 20} {
		if err := f.Run(t.Context(), map[string]int64{"loose": n, "strict": n}); err != nil {
			t.Fatal(err)
		}
		got, err := tensor.Get[float32](t.Context(), f, "y")
		if err != nil || !slices.Equal(got, []float32{want, float32(n)}) {
			t.Errorf("%d: ran with %v, want %v and %d (%v)", n, got, want, n, err)
		}
	}
}
