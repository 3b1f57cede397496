package tensor_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"tgc/ir"
	"tgc/runtime/interp"
	"tgc/tensor"
)

// Axes of any extent are resized as the definition says, where positions are whole steps apart and where they are not.
func TestInterpolateByDefinition(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		m := rapid.IntRange(1, 7).Draw(r, "m")
		n := rapid.OneOf(rapid.Custom(func(r *rapid.T) int { return m * rapid.IntRange(1, 5).Draw(r, "ratio") }),
			rapid.Custom(func(r *rapid.T) int { return (m-1)*rapid.IntRange(1, 5).Draw(r, "ratio") + 1 }), rapid.IntRange(1, 12)).Draw(r, "n")
		mode := rapid.SampledFrom([]tensor.Interpolation{tensor.Nearest, tensor.NearestExact, tensor.Linear, tensor.LinearAlign}).Draw(r, "mode")
		x := rapid.SliceOfN(rapid.Float64Range(-4, 4), n, n).Draw(r, "x")
		y := tensor.FromSlice(tensor.NewGraph().On(interp.New(interp.Options{})), x, 1, 1, n).Interpolate(mode, m)
		if err := y.Realize(t.Context()); err != nil {
			r.Fatal(err)
		}
		got, err := tensor.Data[float64](y)
		for i := range m {
			if want := interpolated(x, m, i, mode); err != nil || !(math.Abs(got[i]-want) <= 1e-12) {
				r.Fatalf("element %d: %v, want %v: %v", i, got[i], want, err)
			}
		}
	})
}

// interpolated is element i of m.
func interpolated(x []float64, m, i int, mode tensor.Interpolation) float64 {
	n, at := float64(len(x)), float64(i)
	switch mode {
	case tensor.Nearest:
		return x[i*len(x)/m]
	case tensor.NearestExact:
		return x[(2*i+1)*len(x)/(2*m)]
	case tensor.Linear:
		at = (at+0.5)*n/float64(m) - 0.5
	case tensor.LinearAlign:
		at *= (n - 1) / float64(max(m-1, 1))
	}
	at = min(max(at, 0), n-1)
	low := int(at)
	return x[low] + (x[min(low+1, len(x)-1)]-x[low])*(at-float64(low))
}

// An image of half the size is one kernel: neighbours are read in place.
func TestInterpolateToHalf(t *testing.T) {
	for _, to := range fusionTargets {
		g := tensor.NewGraph()
		g.Output("y", g.Input("x", ir.F32, 2, 3, 32, 32).Interpolate(tensor.Linear, 16, 16))
		if got := countKernels(t, "half", g, to); got != "1/1" {
			t.Errorf("%s: %s kernels/launches, want 1/1", to, got)
		}
	}
}
