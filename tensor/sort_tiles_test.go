package tensor_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"tgc/engine"
	"tgc/ir"
	"tgc/runtime"
	"tgc/runtime/devices"
	"tgc/runtime/interp"
	"tgc/tensor"
)

// sortCase is rows of n elements along an axis, of which the first count are asked for.
type sortCase struct{ rows, n, count, axis int }

// Networks in tiles order as a stable sort does: rows that are lanes and that do not fill vectors, segments of
// long rows as lanes, the best of parts, other axes than the last; NaN last, zeros equal, equals in their order.
func TestSortingInTiles(t *testing.T) {
	cpu, _, err := devices.Open(t.Context(), "cpu", devices.Options{})
	if err != nil {
		t.Skip(err)
	}
	defer cpu.Close()
	for _, c := range []sortCase{
		{33, 33, 33, 1}, {40, 5, 5, 1}, {64, 16, 16, 0}, {35, 70, 20, 0}, {3, 257, 257, 1}, {9, 130, 130, 0},
		{1, 1025, 1025, 1}, {1, 1500, 20, 1}, {2, 4500, 4500, 1}, {5, 3000, 40, 0},
	} {
		t.Run(fmt.Sprint("cpu ", c), func(t *testing.T) { checkSorts(t, cpu, c) })
		if c.rows*c.n < 1100 {
			t.Run(fmt.Sprint("interp ", c), func(t *testing.T) { checkSorts(t, interp.New(interp.Options{}), c) })
		}
	}
}

// checkSorts compares the first elements of rows, upwards and downwards, with those of a stable sort.
func checkSorts(t *testing.T, dev runtime.Device, c sortCase) {
	shape := []int{c.rows, c.n}
	if c.axis == 0 {
		shape = []int{c.n, c.rows}
	}
	g := tensor.NewGraph()
	x := g.Input("x", ir.F32, shape...)
	for name, largest := range map[string]bool{"up": false, "down": true} {
		values, at := x.TopK(c.count, c.axis, largest)
		g.Output(name, values.MoveAxis(c.axis, 1))
		g.Output(name+" at", at.MoveAxis(c.axis, 1))
	}
	f, err := tensor.Compile(t.Context(), g, dev, engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rapid.Check(t, func(r *rapid.T) {
		x := manyEquals(r, c)
		stored := make([]float32, len(x))
		for i, v := range x {
			if c.axis == 1 {
				stored[i] = v
			} else {
				stored[i%c.n*c.rows+i/c.n] = v
			}
		}
		if err := tensor.Set(t.Context(), f, "x", stored); err != nil {
			r.Fatal(err)
		}
		if err := f.Run(t.Context(), nil); err != nil {
			r.Fatal(err)
		}
		checkSorted(r, f, c, x, "up", false)
		checkSorted(r, f, c, x, "down", true)
	})
}

// manyEquals draws rows of few different numbers, with special ones among them.
func manyEquals(r *rapid.T, c sortCase) []float32 {
	special := []float32{0, float32(math.Copysign(0, -1)), float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))}
	random := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 0))
	kinds := rapid.IntRange(1, 2*c.n).Draw(r, "kinds")
	x := make([]float32, c.rows*c.n)
	for i := range x {
		if x[i] = float32(random.IntN(kinds)) - float32(kinds/2); random.IntN(8) == 0 {
			x[i] = special[random.IntN(len(special))]
		}
	}
	return x
}

func checkSorted(r *rapid.T, f *tensor.Function, c sortCase, x []float32, name string, descending bool) {
	got, err := tensor.Get[float32](r.Context(), f, name)
	if err != nil {
		r.Fatal(err)
	}
	at, err := tensor.Get[int32](r.Context(), f, name+" at")
	if err != nil {
		r.Fatal(err)
	}
	for row := range c.rows {
		own := x[row*c.n:][:c.n]
		for i, k := range inOrder(own, descending)[:c.count] {
			j := row*c.count + i
			if int(at[j]) != k || math.Float32bits(got[j]) != math.Float32bits(own[k]) {
				r.Fatalf("%s, row %d, place %d: %v at %d, want %v at %d", name, row, i, got[j], at[j], own[k], k)
			}
		}
	}
}
