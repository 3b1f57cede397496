package engine_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"tgc/engine"
	"tgc/ir"
	"tgc/runtime"
	"tgc/tensor"
)

// Many short rows are folded and divided by few threads each, in one kernel.
func TestShortRowsOnGPU(t *testing.T) {
	dev, host := openEmulated(t)
	rows := func(x *tensor.Tensor) []*tensor.Tensor {
		return []*tensor.Tensor{x.Softmax(1), x.LayerNorm(1, nil, nil, 1), x.LogSoftmax(1)}
	}
	for _, shape := range [][]int{{20001, 3}, {17000, 35}, {16500, 100}} {
		for k := range 3 {
			t.Run(fmt.Sprint(shape, k), func(t *testing.T) {
				build := func(x *tensor.Tensor) *tensor.Tensor { return rows(x)[k] }
				got, plans := ranOn(t, dev, build, shape)
				want, _ := ranOn(t, host, build, shape)
				if !strings.Contains(plans, "threads a row of") || strings.Contains(plans, "\n") {
					t.Errorf("planned as\n%s", plans)
				}
				for i, x := range want {
					if math.Abs(float64(got[i]-x)) > 1e-5*max(1, math.Abs(float64(x))) {
						t.Fatalf("element %d is %g, want %g", i, got[i], x)
					}
				}
			})
		}
	}
}

// ranOn is what a function of random numbers gives on a device, with why its kernels have their plans.
func ranOn(t *testing.T, dev runtime.Device, build func(x *tensor.Tensor) *tensor.Tensor, shape []int) (y []float32, plans string) {
	t.Helper()
	g := tensor.NewGraph()
	g.Output("y", build(g.Input("x", ir.F32, shape...)))
	f, err := tensor.Compile(t.Context(), g, dev, engine.Config{Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := tensor.Set(t.Context(), f, "x", randomFloats(rand.New(rand.NewPCG(1, 2)), shape[0]*shape[1])); err != nil {
		t.Fatal(err)
	}
	if err := f.Run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if y, err = tensor.Get[float32](t.Context(), f, "y"); err != nil {
		t.Fatal(err)
	}
	var why []string
	for _, k := range f.Step().Compiled.Kernels {
		why = append(why, k.Why)
	}
	return y, strings.Join(why, "\n")
}
