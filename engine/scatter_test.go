package engine_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"tgc/engine"
	"tgc/grad"
	"tgc/ir"
	"tgc/runtime"
	"tgc/runtime/cpu"
	"tgc/runtime/interp"
	"tgc/tensor"
)

// scatterSizes are of rows that lanes divide or not, that workers share, and of none.
var scatterSizes = []struct{ points, terms, row int }{
	{40, 200, 1}, {64, 300, 48}, {37, 111, 30}, {33, 70, 7}, {50, 90, 1100},
}

// Terms that go to one point are folded in their order, bit for bit, whatever the
// number of workers: the plan is the one that goes over them once.
func TestScatters(t *testing.T) {
	workers := map[string]runtime.Device{"interp": interp.New(interp.Options{})}
	for _, threads := range []int{1, 3} {
		dev, err := cpu.New(t.Context(), cpu.Options{NoCache: true, Threads: threads})
		if errors.Is(err, cpu.ErrNoLLVM) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { dev.Close() })
		workers[fmt.Sprint("cpu ", threads)] = dev
	}
	for name, dev := range workers {
		for _, size := range scatterSizes {
			t.Run(fmt.Sprint(name, size), func(t *testing.T) {
				if name == "interp" && size.row > 100 {
					t.Skip("the interpreter takes long")
				}
				scatters(t, dev, size.points, size.terms, size.row)
			})
		}
	}
}

// On a GPU the threads of a block look for the terms of its points, and warps take their
// own in order: what results is the same, bit for bit.
func TestScattersOnGPU(t *testing.T) {
	dev, _ := openEmulated(t)
	for _, size := range []struct{ points, terms, row int }{
		{2999, 301, 33}, // threads have several points each
		{900, 400, 160}, // rows of several warps, lanes along them
	} {
		t.Run(fmt.Sprint(size), func(t *testing.T) { scatters(t, dev, size.points, size.terms, size.row) })
	}
}

func scatters(t *testing.T, dev runtime.Device, points, terms, row int) {
	rng := rand.New(rand.NewPCG(uint64(points), uint64(row)))
	into, from := randomFloats(rng, points*row), randomFloats(rng, terms*row)
	at := make([]int32, terms)
	for i := range at {
		at[i] = int32(rng.IntN(points+4) - 2) // some of no row
	}
	g := tensor.NewGraph()
	x, y := g.Input("x", ir.F32, points, row), g.Input("y", ir.F32, terms, row)
	index := g.Input("i", ir.I32, terms)
	wide := index.Reshape(terms, 1).ExpandDims(y.Shape()...)
	g.Output("add", x.IndexAdd(0, index, y))
	g.Output("relu", x.IndexAdd(0, index, y).Relu())
	g.Output("columns", x.Transpose(0, 1).IndexAdd(1, index, y.Transpose(0, 1)).Transpose(0, 1))
	g.Output("last", x.ScatterElements(0, wide, y))
	g.Output("largest", x.ScatterElementsReduce(0, wide, y, tensor.ScatterMax, true))
	g.Output("gradient", grad.Of([]*tensor.Tensor{x.Gather(0, index).Mul(y).Sum()}, nil, []*tensor.Tensor{x})[0])
	f, err := tensor.Compile(t.Context(), g, dev, engine.Config{Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	planned := 0
	for _, k := range f.Step().Compiled.Kernels {
		planned += strings.Count(k.Why, "scatter: ") // of a merged launch, several
	}
	if planned < 3 {
		t.Errorf("%d kernels are planned as scatters", planned)
	}
	for name, data := range map[string]any{"x": into, "y": from, "i": at} {
		var err error
		switch data := data.(type) {
		case []float32:
			err = tensor.Set(t.Context(), f, name, data)
		case []int32:
			err = tensor.Set(t.Context(), f, name, data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for name, want := range scattered(into, from, at, row) {
		got, err := tensor.Get[float32](t.Context(), f, name)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v (%v)", name, got, want, err)
		}
	}
}

// scattered is what loops over the terms give.
func scattered(into, from []float32, at []int32, row int) map[string][]float32 {
	sums, gradient := make([]float32, len(into)), make([]float32, len(into))
	last, largest := slices.Clone(into), slices.Clone(into)
	for i, k := range at {
		clamped := min(max(int(k), 0), len(into)/row-1)
		for c := range row {
			v := from[i*row+c]
			gradient[clamped*row+c] += v
			if to := int(k)*row + c; k >= 0 && to < len(into) {
				sums[to] += v
				last[to] = v
				largest[to] = max(largest[to], v)
			}
		}
	}
	add, relu := slices.Clone(into), make([]float32, len(into))
	for i := range add {
		add[i] += sums[i]
		relu[i] = max(add[i], 0)
	}
	return map[string][]float32{"add": add, "relu": relu, "columns": add, "last": last, "largest": largest, "gradient": gradient}
}

func randomFloats(rng *rand.Rand, n int) []float32 {
	list := make([]float32, n)
	for i := range list {
		list[i] = rng.Float32() - 0.5
	}
	return list
}
