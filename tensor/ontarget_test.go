package tensor_test

import (
	"slices"
	"strings"
	"testing"

	"tgc/engine"
	"tgc/ir"
	"tgc/runtime/interp"
	"tgc/target"
	"tgc/tensor"
)

// interpWith is the interpreter as a target with other numbers.
func interpWith(change func(*target.Tuning)) *interp.Device {
	desc := target.Interp()
	change(&desc.Tuning)
	return interp.New(interp.Options{Target: desc})
}

// A sum in parts has the values of the sum on every target, and partial sums only
// where the target asks for them.
func TestSumInParts(t *testing.T) {
	for parts, launches := range map[int]int{0: 1, 1: 1, 4: 2, 7: 2} {
		g := tensor.NewGraph()
		values := make([]float32, 3*12)
		for i := range values {
			values[i] = float32(i)
		}
		g.Output("y", tensor.FromSlice(g, values, 3, 12).AddScalar(1).SumInParts(-1))
		f, err := tensor.Compile(t.Context(), g, interpWith(func(n *target.Tuning) { n.SumParts = parts }), engine.Config{Verify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := f.Run(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		got, err := tensor.Get[float32](t.Context(), f, "y")
		if want := []float32{78, 222, 366}; err != nil || !slices.Equal(got, want) {
			t.Errorf("in %d parts: %v, want %v (%v)", parts, got, want, err)
		}
		if got := len(f.Step().Compiled.Launches); got != launches {
			t.Errorf("in %d parts: %d launches, want %d", parts, got, launches)
		}
	}
}

// What a target computes in another way may hold tensors of which that is true too;
// values that are known already are used in both.
func TestOnTargetNests(t *testing.T) {
	g := tensor.NewGraph().On(interpWith(func(n *target.Tuning) { n.RunsAhead = 5 }))
	x := tensor.FromSlice(g, []float32{1, 2, 3}, 3)
	y := x.AddScalar(1)
	if err := y.Realize(t.Context()); err != nil {
		t.Fatal(err)
	}
	instead := func(scale float64, of *tensor.Tensor) func(*target.Desc) *tensor.Tensor {
		return func(desc *target.Desc) *tensor.Tensor {
			if desc.Tuning.RunsAhead < 5 {
				return nil
			}
			return of.MulScalar(scale)
		}
	}
	inner := y.Neg().OnTarget(instead(10, y))
	outer := inner.Neg().OnTarget(instead(100, inner))
	z := outer.AddScalar(0.5)
	if err := z.Realize(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := tensor.Data[float32](z)
	if want := []float32{2000.5, 3000.5, 4000.5}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, want %v (%v)", got, want, err)
	}
}

// A mistake in what a target computes instead comes out of Compile.
func TestOnTargetFails(t *testing.T) {
	g := tensor.NewGraph()
	x := g.Input("x", ir.F32, 2)
	g.Output("y", x.Neg().OnTarget(func(*target.Desc) *tensor.Tensor { return x.Add(g.Input("w", ir.F32, 3)) }))
	if _, err := g.Compile(t.Context(), target.Interp(), engine.Config{}); err == nil || !strings.Contains(err.Error(), "[2] and [3]") {
		t.Errorf("error %v", err)
	}
}
