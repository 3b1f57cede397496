package tensor_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"tgc/engine"
	"tgc/grad"
	"tgc/ir"
	"tgc/runtime/devices"
	"tgc/tensor"
)

// runningCase is a running fold with its derivative by a loop: of a row x and cotangents g, and
// with the sum of the sizes of what each element of it is a sum of.
type runningCase struct {
	build func(x *tensor.Tensor, axis int) *tensor.Tensor
	back  func(x, g []float64) (dx, size []float64)
}

var runningCases = map[string]runningCase{
	"cumprod": {(*tensor.Tensor).Cumprod, func(x, g []float64) (dx, size []float64) {
		return byPairs(x, g, func(i, j int) float64 {
			product := 1.0
			for m := range j + 1 {
				if m != i {
					product *= x[m]
				}
			}
			return product
		})
	}},
	"cummax": {func(x *tensor.Tensor, axis int) *tensor.Tensor { y, _ := x.Cummax(axis); return y }, func(x, g []float64) (dx, size []float64) {
		return extremeBack(x, g, func(a, b float64) bool { return a >= b })
	}},
	"cummin": {func(x *tensor.Tensor, axis int) *tensor.Tensor { y, _ := x.Cummin(axis); return y }, func(x, g []float64) (dx, size []float64) {
		return extremeBack(x, g, func(a, b float64) bool { return a <= b })
	}},
	"logcumsumexp": {(*tensor.Tensor).LogCumSumExp, func(x, g []float64) (dx, size []float64) {
		return byPairs(x, g, func(i, j int) float64 {
			sum := 0.0
			for m := range j + 1 {
				sum += math.Exp(x[m] - x[i])
			}
			return 1 / sum
		})
	}},
}

// byPairs sums over j from i on g[j] times the derivative of result j by element i.
func byPairs(x, g []float64, derivative func(i, j int) float64) (dx, size []float64) {
	dx, size = make([]float64, len(x)), make([]float64, len(x))
	for i := range x {
		for j := i; j < len(x); j++ {
			term := g[j] * derivative(i, j)
			dx[i] += term
			size[i] += math.Abs(term)
		}
	}
	return dx, size
}

// extremeBack gives each cotangent to the last element that no one before it was better than.
func extremeBack(x, g []float64, better func(a, b float64) bool) (dx, size []float64) {
	dx, size = make([]float64, len(x)), make([]float64, len(x))
	at := 0
	for j := range x {
		if math.IsNaN(x[j]) || better(x[j], x[at]) {
			at = j
		}
		dx[at] += g[j]
		size[at] += math.Abs(g[j])
	}
	return dx, size
}

// Derivatives of running folds are those of a loop, along all axes and for rows of any length and number on each device: with
// zeros in products and equals among extremes.
func TestDerivativesOfRunningFolds(t *testing.T) {
	shapes := [][3]int{{1, 2, 1}, {2, 4, 3}, {3, 17, 1}, {17, 33, 1}, {1, 65, 16}, {2, 70, 20}, {1, 300, 1}, {2, 257, 3}}
	longer := map[string][][3]int{"cuda:emu": {{1, 1100, 1}}} // than a row that a block keeps
	for _, device := range []string{"interp", "cpu", "cuda:emu"} {
		dev, _, err := devices.Open(t.Context(), device, devices.Options{})
		if err != nil {
			t.Log(device, err)
			continue
		}
		defer dev.Close()
		for name, c := range runningCases {
			for _, shape := range append(shapes, longer[device]...) {
				t.Run(fmt.Sprint(device, " ", name, " ", shape), func(t *testing.T) {
					g := tensor.NewGraph()
					x, cotangent := g.Input("x", ir.F32, shape[:]...), g.Input("g", ir.F32, shape[:]...)
					g.Output("dx", grad.Of([]*tensor.Tensor{c.build(x, 1)}, []*tensor.Tensor{cotangent}, []*tensor.Tensor{x})[0])
					f, err := tensor.Compile(t.Context(), g, dev, engine.Config{})
					if err != nil {
						t.Fatal(err)
					}
					defer f.Close()
					checkRunning(t, f, c, shape)
				})
			}
		}
	}
}

func checkRunning(t *testing.T, f *tensor.Function, c runningCase, shape [3]int) {
	outer, n, inner := shape[0], shape[1], shape[2]
	random := rand.New(rand.NewPCG(uint64(n), uint64(outer)))
	values := map[string][]float32{}
	for _, name := range []string{"x", "g"} {
		v := make([]float32, outer*n*inner)
		for i := range v {
			if v[i] = float32(random.NormFloat64()); name == "x" && random.IntN(40) == 0 {
				v[i] = float32(random.IntN(2))
			}
		}
		if values[name] = v; tensor.Set(t.Context(), f, name, v) != nil {
			t.Fatal(name)
		}
	}
	if err := f.Run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	got, err := tensor.Get[float32](t.Context(), f, "dx")
	if err != nil {
		t.Fatal(err)
	}
	row := func(name string, o, i int) []float64 {
		r := make([]float64, n)
		for j := range r {
			r[j] = float64(values[name][(o*n+j)*inner+i])
		}
		return r
	}
	for o := range outer {
		for i := range inner {
			want, size := c.back(row("x", o, i), row("g", o, i))
			for j, w := range want {
				if v := float64(got[(o*n+j)*inner+i]); !(math.Abs(v-w) <= 1e-5*size[j]+1e-30) {
					t.Fatalf("row %d %d, element %d: %v, want %v", o, i, j, v, w)
				}
			}
		}
	}
}

// An element of -Inf has no part in a sum; one of Inf hides the others from there on, and a NaN all.
func TestDerivativeOfRunningLogSumOfInfinities(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, c := range [][2][]float32{
		{{-inf, -inf, 0, -inf, 0}, {0, 0, 1 + 1 + 0.5, 0, 0.5}},
		{{0, inf, 0}, {1, 0, 0}},
		{{0, nan, 0}, {nan, nan, nan}},
		{{-1000, 1000, 1000}, {1, 1.5, 0.5}},
	} {
		g := tensor.NewGraph()
		x := tensor.FromSlice(g, c[0], len(c[0]))
		dx := grad.Of([]*tensor.Tensor{x.LogCumSumExp(0)}, nil, []*tensor.Tensor{x})[0]
		if err := dx.Realize(t.Context()); err != nil {
			t.Fatal(err)
		}
		got, err := tensor.Data[float32](dx)
		for i, want := range c[1] {
			if v := got[i]; err != nil || !(math.Abs(float64(v-want)) < 1e-6) && (v == v || want == want) {
				t.Errorf("%v: %v, want %v: %v", c[0], got, c[1], err)
			}
		}
	}
}
