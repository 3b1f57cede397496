package engine_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"tgc/engine"
	"tgc/ir"
	"tgc/runtime"
	"tgc/tensor"
)

// On a GPU convolutions and products of odd sizes take matrix instructions: values are those
// of the interpreter.
func TestWindowsAreProductsOnGPU(t *testing.T) {
	gpu, host := openEmulated(t)
	conv := func(batch, channels, side, outputs, kernel int, o tensor.ConvOptions) func(in makeInput) *tensor.Tensor {
		return func(in makeInput) *tensor.Tensor {
			return in("x", batch, channels, side, side).Conv(in("w", outputs, channels/max(o.Groups, 1), kernel, kernel), nil, o)
		}
	}
	for name, build := range map[string]func(in makeInput) *tensor.Tensor{
		"3 x 3":            conv(1, 48, 21, 40, 3, tensor.ConvOptions{Padding: []int{1}}),
		"3 x 3 of a batch": conv(2, 17, 23, 33, 3, tensor.ConvOptions{}),
		"7 x 7, stride 2":  conv(1, 3, 77, 24, 7, tensor.ConvOptions{Padding: []int{3}, Stride: []int{2}}),
		"5 x 5, groups":    conv(1, 48, 19, 48, 5, tensor.ConvOptions{Padding: []int{2}, Groups: 2}),
		"1 x 1, stride 2":  conv(1, 96, 15, 40, 1, tensor.ConvOptions{Stride: []int{2}}),
		"dilated":          conv(1, 32, 25, 24, 3, tensor.ConvOptions{Dilation: []int{2}}),
		"of few outputs":   conv(1, 32, 35, 3, 3, tensor.ConvOptions{Padding: []int{1}}),
		"product":          func(in makeInput) *tensor.Tensor { return in("x", 130, 150).MatMul(in("w", 150, 131)) },
		"batched product":  func(in makeInput) *tensor.Tensor { return in("x", 5, 65, 67).MatMul(in("w", 5, 67, 61)) },
		"product and biases": func(in makeInput) *tensor.Tensor {
			return in("x", 1, 32, 24, 24).Conv(in("w", 32, 32, 3, 3), in("b", 32)).Relu()
		},
	} {
		got, matrix := productOf(t, gpu, build)
		want, _ := productOf(t, host, build)
		if name != "of few outputs" && !matrix {
			t.Errorf("%s: no matrix instructions", name)
		}
		for i := range want {
			if d := math.Abs(float64(got[i] - want[i])); !(d <= 1e-4*max(1, math.Abs(float64(want[i])))) {
				t.Errorf("%s: element %d is %g, want %g", name, i, got[i], want[i])
				break
			}
		}
	}
}

// makeInput makes an input of a program.
type makeInput func(name string, shape ...int) *tensor.Tensor

// productOf runs a program on random floats, and says whether a plan has matrix instructions.
func productOf(t *testing.T, dev runtime.Device, build func(in makeInput) *tensor.Tensor) (values []float32, matrix bool) {
	t.Helper()
	g, sizes := tensor.NewGraph(), make(map[string]int)
	g.Output("y", build(func(name string, shape ...int) *tensor.Tensor {
		sizes[name] = 1
		for _, n := range shape {
			sizes[name] *= n
		}
		return g.Input(name, ir.F32, shape...)
	}))
	f, err := tensor.Compile(t.Context(), g, dev, engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for name, n := range sizes {
		if err := tensor.Set(t.Context(), f, name, randomFloats(rand.New(rand.NewPCG(uint64(n), 7)), n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for _, k := range f.Step().Compiled.Kernels {
		matrix = matrix || strings.Contains(k.Plan.String(), "MMA")
	}
	values, err = tensor.Get[float32](t.Context(), f, "y")
	if err != nil {
		t.Fatal(err)
	}
	return values, matrix
}
