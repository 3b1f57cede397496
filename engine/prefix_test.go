package engine_test

import (
	"errors"
	"fmt"
	"testing"

	"tgc/engine"
	"tgc/ir"
	"tgc/runtime/interp"
	"tgc/target"
	"tgc/tensor"
)

// Running sums have lanes along their results, or along what lies beside them, and what
// two results have in common is added once.
func TestRunningSums(t *testing.T) {
	desc, err := target.Parse("llvm:x86-64-v4")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		shape []int
		axis  int
		plan  string
	}{
		{[]int{5, 64}, 1, "VECTOR s1 16; UPCAST s1 4; UNROLL r0 64; FMA"},
		{[]int{7, 61}, 1, "VECTOR s1 16; UPCAST s1 4; UNROLL r0 61; FMA"},
		{[]int{33, 40}, 0, "VECTOR s1 16; UPCAST s0 33; UNROLL r0 33; FMA"},
		{[]int{3, 17, 35}, 1, "VECTOR s2 16; UPCAST s1 17; UNROLL r0 17; FMA"},
	} {
		t.Run(fmt.Sprint(c.shape, c.axis), func(t *testing.T) {
			g := tensor.NewGraph()
			g.Output("y", g.Input("x", ir.F32, c.shape...).Cumsum(c.axis))
			f, err := tensor.Compile(t.Context(), g, interp.New(interp.Options{Target: desc}), engine.Config{Verify: true})
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if got := f.Step().Compiled.Kernels[0].Plan.String(); got != c.plan {
				t.Errorf("plan %s, want %s", got, c.plan)
			}
			step, n := 1, 1
			for k, extent := range c.shape {
				n *= extent
				if k > c.axis {
					step *= extent
				}
			}
			x, want := make([]float32, n), make([]float32, n)
			for i := range x {
				x[i] = float32(i%13) - 5
				want[i] = x[i]
				if i/step%c.shape[c.axis] > 0 {
					want[i] += want[i-step]
				}
			}
			if err := errors.Join(tensor.Set(t.Context(), f, "x", x), f.Run(t.Context(), nil)); err != nil {
				t.Fatal(err)
			}
			y, err := tensor.Get[float32](t.Context(), f, "y")
			if err != nil {
				t.Fatal(err)
			}
			for i := range want {
				if y[i] != want[i] { // whole numbers: exact
					t.Fatalf("element %d is %g, want %g", i, y[i], want[i])
				}
			}
		})
	}
}
