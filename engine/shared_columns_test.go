package engine_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"tgc/engine"
	"tgc/ir"
	"tgc/runtime"
	"tgc/tensor"
)

// On a GPU products of a matrix with itself take matrix instructions, and columns are folded
// by many threads, of which others then make the points: values are those of the interpreter.
func TestSharedColumnsOnGPU(t *testing.T) {
	gpu, host := openEmulated(t)
	for name, build := range map[string]func(x *tensor.Tensor) *tensor.Tensor{
		"rows with rows":         func(x *tensor.Tensor) *tensor.Tensor { return x.MatMul(x.Transpose(0, 1)) },
		"rows with columns":      func(x *tensor.Tensor) *tensor.Tensor { return x.MatMul(x) },
		"softmax of columns":     func(x *tensor.Tensor) *tensor.Tensor { return x.Softmax(0) },
		"softmax of a transpose": func(x *tensor.Tensor) *tensor.Tensor { return x.Transpose(0, 1).Softmax(-1) },
		"norm of columns":        func(x *tensor.Tensor) *tensor.Tensor { return x.Sub(x.MeanKeep(0)).Div(x.StdKeep(0, 0)) },
	} {
		for _, n := range []int{128, 131} {
			got, want := resultOf(t, gpu, n, build), resultOf(t, host, n, build)
			for i := range want {
				if d := math.Abs(float64(got[i] - want[i])); !(d <= 1e-4*max(1, math.Abs(float64(want[i])))) {
					t.Errorf("%s of %d: element %d is %g, want %g", name, n, i, got[i], want[i])
					break
				}
			}
		}
	}
}

// resultOf runs a program of n x n random floats.
func resultOf(t *testing.T, dev runtime.Device, n int, build func(x *tensor.Tensor) *tensor.Tensor) []float32 {
	t.Helper()
	g := tensor.NewGraph()
	g.Output("y", build(g.Input("x", ir.F32, n, n)))
	f, err := tensor.Compile(t.Context(), g, dev, engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := tensor.Set(t.Context(), f, "x", randomFloats(rand.New(rand.NewPCG(uint64(n), 7)), n*n)); err != nil {
		t.Fatal(err)
	}
	return run(t, f)
}

// run runs a program and gives its output "y".
func run(t *testing.T, f *tensor.Function) []float32 {
	t.Helper()
	if err := f.Run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	y, err := tensor.Get[float32](t.Context(), f, "y")
	if err != nil {
		t.Fatal(err)
	}
	return y
}
