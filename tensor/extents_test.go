package tensor_test

import (
	"slices"
	"testing"

	"tgc/ir"
	"tgc/runtime/devices"
	"tgc/tensor"
)

// An extent of a variable that has one value only is that number to every pass: min(n, 1) of
// an n from 1 on was one for some and not for others, and rules never ended.
func TestExtentsOfOneValue(t *testing.T) {
	g := tensor.NewGraph()
	n := g.Var("n", 1, 8)
	one := g.Arena().Binary(ir.OpMin, n, g.Arena().Index(1))
	x, at := g.Input("x", ir.F32, 8, 2), g.Input("at", ir.I32, 1)
	rows := at.Clamp(0, 7).Add(g.Iota(ir.I32, one))
	seen := rows.Lt(at.AddScalar(1)).Unsqueeze(-1)
	g.Output("y", seen.Where(x.Gather(0, rows), g.Scalar(ir.F32, -1)).Softmax(-1).Sum(0))
	if err := g.Err(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"interp", "cuda:emu"} {
		dev, _, err := devices.Open(t.Context(), name, devices.Options{})
		if err != nil {
			t.Fatal(err)
		}
		f := compiled(t, g, dev)
		values := make([]float32, 16)
		values[6] = 200 // of row 3: the softmax of 200 and 0 is 1 and 0
		if err := tensor.Set(t.Context(), f, "x", values); err != nil {
			t.Fatal(err)
		}
		if err := tensor.Set(t.Context(), f, "at", []int32{3}); err != nil {
			t.Fatal(err)
		}
		if err := f.Run(t.Context(), map[string]int64{"n": 5}); err != nil {
			t.Fatal(err)
		}
		if y, err := tensor.Get[float32](t.Context(), f, "y"); err != nil || !slices.Equal(y, []float32{1, 0}) {
			t.Errorf("%s: got %v, %v", name, y, err)
		}
	}
}
