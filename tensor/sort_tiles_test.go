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
	"tgc/target"
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

// Elements of all types are in order, with rows of any length and of any number: those whose keys are 64 bits,
// too, which differ in either half or in both.
func TestSortingTypesInTiles(t *testing.T) {
	limits := map[ir.DType][2]float64{
		ir.Bool: {0, 1}, ir.U8: {0, 255}, ir.I8: {-128, 127}, ir.U16: {0, 1<<16 - 1}, ir.I16: {-1 << 15, 1<<15 - 1}, ir.U32: {0, 1<<32 - 1}, ir.I32: {-1 << 31, 1<<31 - 1},
		ir.U64: {0, 0x1p63}, ir.I64: {-0x1p63, 0x1p62}, ir.F16: {-2048, 2048}, ir.BF16: {-256, 256}, ir.F32: {-1 << 24, 1 << 24}, ir.F64: {-0x1p52, 0x1p1023},
	}
	for dtype, limit := range limits {
		t.Run(dtype.String(), func(t *testing.T) {
			tried := 0
			rapid.Check(t, func(r *rapid.T) {
				if tried++; tried > 8 { // compiling takes the time
					return
				}
				rows, n := rapid.OneOf(rapid.IntRange(1, 9), rapid.IntRange(30, 70)).Draw(r, "rows"), rapid.IntRange(90, 400).Draw(r, "n")
				count, largest := rapid.IntRange(1, 2*n).Draw(r, "count"), rapid.Bool().Draw(r, "largest")
				count = min(count, n)
				part := rapid.OneOf(rapid.Float64Range(0, 3), rapid.SampledFrom([]float64{0, -0x1p32, 0x1p32, 0x1p33, -0x1p40 + 1, limit[0], limit[1]}))
				whole := rapid.Custom(func(r *rapid.T) float64 {
					return min(max(math.Floor(part.Draw(r, "part"))+math.Floor(part.Draw(r, "another")), limit[0]), limit[1])
				})
				x := rapid.SliceOfN(whole, rows*n, rows*n).Draw(r, "x")
				_, at := tensor.FromSlice(tensor.NewGraph().On(interp.New(interp.Options{})), x, rows, n).Cast(dtype).TopK(count, 1, largest)
				if err := at.Realize(t.Context()); err != nil {
					r.Fatal(err)
				}
				got, err := tensor.Data[int32](at)
				for row := range rows {
					for i, k := range inOrder(x[row*n:][:n], largest)[:count] {
						if err != nil || int(got[row*count+i]) != k {
							r.Fatalf("row %d, place %d: %d, want %d: %v", row, i, got[row*count+i], k, err)
						}
					}
				}
			})
		})
	}
}

// Keys of 64 bits are sorted by a block of a GPU in a kernel a half.
func TestSortingLongKeysOnGPU(t *testing.T) {
	desc, err := target.Parse("ptx:sm_90")
	if err != nil {
		t.Fatal(err)
	}
	g := tensor.NewGraph()
	g.Output("y", g.Input("x", ir.F64, 9, 1000).Argsort(1, false))
	if c, err := g.Compile(t.Context(), desc, engine.Config{}); err != nil || len(c.Launches) > 3 {
		t.Fatalf("%d launches, want at most 3: %v", len(c.Launches), err)
	}
}

// Keys of 16 bits are in one word of 32 bits with their positions as long as these fit: NaN last, zeros equal.
func TestSortingShortKeys(t *testing.T) {
	cpu, _, err := devices.Open(t.Context(), "cpu", devices.Options{})
	if err != nil {
		t.Skip(err)
	}
	defer cpu.Close()
	for _, dtype := range []ir.DType{ir.F16, ir.BF16, ir.U16} {
		for _, c := range []sortCase{{40, 100, 100, 1}, {1, 1<<16 - 1, 1<<16 - 1, 1}, {1, 1<<16 + 1, 1<<16 + 1, 1}} {
			x, random := make([]float32, c.rows*c.n), rand.New(rand.NewPCG(1, uint64(c.n)))
			for i := range x {
				switch x[i] = float32(random.IntN(1 << 8)); {
				case dtype == ir.U16:
					x[i] *= 257
				case random.IntN(8) == 0:
					x[i] = []float32{0, float32(math.Copysign(0, -1)), float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 1e-7}[random.IntN(6)]
				default:
					x[i] -= 1 << 7
				}
			}
			for _, descending := range []bool{false, true} {
				at := tensor.FromSlice(tensor.NewGraph().On(cpu), x, c.rows, c.n).Cast(dtype).Argsort(1, descending)
				if err := at.Realize(t.Context()); err != nil {
					t.Fatal(err)
				}
				got, _ := tensor.Data[int32](at)
				for row := range c.rows {
					for i, k := range inOrder(x[row*c.n:][:c.n], descending) {
						if int(got[row*c.n+i]) != k {
							t.Fatalf("%s, %v, descending %t: row %d, place %d: %d, want %d", dtype, c, descending, row, i, got[row*c.n+i], k)
						}
					}
				}
			}
		}
	}
}
