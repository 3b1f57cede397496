package engine_test

import (
	"testing"

	"tgc/engine"
	"tgc/ir"
	"tgc/tensor"
)

// Results that are stored past the caches are there when the step is done, and
// the next kernel of the step reads them.
func TestStreamedResults(t *testing.T) {
	dev := openCPU(t)
	const n = 3 << 22 // 48 MB of f32
	g := tensor.NewGraph()
	y := g.Input("x", ir.F32, n).AddScalar(1).Contiguous()
	g.Output("y", y)
	g.Output("sums", y.Reshape(n/4096, 4096).Sum(1))
	f, err := tensor.Compile(t.Context(), g, dev, engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(i % 8)
	}
	if err := tensor.Set(t.Context(), f, "x", x); err != nil {
		t.Fatal(err)
	}
	if err := f.Run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	got, err := tensor.Get[float32](t.Context(), f, "y")
	if err != nil {
		t.Fatal(err)
	}
	for i := range x {
		if got[i] != x[i]+1 {
			t.Fatalf("element %d is %g, want %g", i, got[i], x[i]+1)
		}
	}
	sums, err := tensor.Get[float32](t.Context(), f, "sums")
	if err != nil {
		t.Fatal(err)
	}
	for i, sum := range sums {
		if sum != 4096*4.5 {
			t.Fatalf("sum %d is %g, want %g", i, sum, 4096*4.5)
		}
	}
	streamed := false
	for _, k := range f.Step().Compiled.Kernels {
		for _, opt := range k.Plan.Opts {
			streamed = streamed || opt.Kind.String() == "STREAM"
		}
	}
	if !streamed {
		t.Error("no kernel stores past the caches: the test tests nothing")
	}
}
