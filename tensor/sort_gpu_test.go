package tensor_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tgc/engine"
	"tgc/ir"
	"tgc/ir/program"
	"tgc/runtime/devices"
	"tgc/target"
	"tgc/tensor"
)

// Blocks of a GPU sort rows of any length as a stable sort does: NaN last, zeros equal, equals in
// their order, and both zeros and NaN as they were. The last is longer than what a block keeps.
func TestSortingOnGPU(t *testing.T) {
	dev, _, err := devices.Open(t.Context(), "cuda:emu", devices.Options{})
	if err != nil {
		t.Skip(err)
	}
	defer dev.Close()
	special := []float32{0, float32(math.Copysign(0, -1)), float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))}
	for _, c := range []struct{ rows, n, count int }{{3, 1, 1}, {5, 16, 16}, {2, 33, 33}, {2, 100, 7}, {1, 257, 257}, {1, 5000, 5}, {1, 2100, 2100}} {
		random := rand.New(rand.NewPCG(1, uint64(c.n)))
		x := make([]float32, c.rows*c.n)
		for i := range x {
			if x[i] = float32(random.IntN(c.n)) - float32(c.n/2); random.IntN(8) == 0 {
				x[i] = special[random.IntN(len(special))]
			}
		}
		for _, largest := range []bool{false, true} {
			best, at := tensor.FromSlice(tensor.NewGraph().On(dev), x, c.rows, c.n).TopK(c.count, 1, largest)
			if err := tensor.Realize(t.Context(), best, at); err != nil {
				t.Fatal(err)
			}
			got, _ := tensor.Data[float32](best)
			where, _ := tensor.Data[int32](at)
			for row := range c.rows {
				for i, k := range inOrder(x[row*c.n:][:c.n], largest)[:c.count] {
					j := row*c.count + i
					if want := x[row*c.n+k]; int(where[j]) != k || math.Float32bits(got[j]) != math.Float32bits(want) {
						t.Fatalf("%v, largest %t, row %d, place %d: %v at %d, want %v at %d", c, largest, row, i, got[j], where[j], want, k)
					}
				}
			}
		}
	}
}

// inOrder are the places of the elements of a row in order, NaN above all numbers.
func inOrder[F float32 | float64](x []F, descending bool) []int {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		if descending {
			i, j = j, i
		}
		if a, b := x[i] != x[i], x[j] != x[j]; a != b {
			return map[bool]int{true: 1, false: -1}[a]
		}
		if x[i] != x[i] {
			return 0
		}
		return cmp.Compare(x[i]+0, x[j]+0)
	})
	return order
}

// A row that a block keeps is one kernel, whose stages take turns in the shared memory of two.
func TestRowsOfABlock(t *testing.T) {
	desc, err := target.Parse("ptx:sm_90")
	if err != nil {
		t.Fatal(err)
	}
	g := tensor.NewGraph()
	_, at := g.Input("x", ir.F32, 9, 1000).Sort(1, false)
	g.Output("y", at)
	c, err := g.Compile(t.Context(), desc, engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Launches) != 1 {
		t.Fatalf("%d launches, want 1", len(c.Launches))
	}
	bytes := int64(0)
	for _, in := range c.Launches[0][0].Kernel.Program.Body.Instrs {
		if in.Op == program.Alloca && in.Result.Type.Space == program.SharedSpace {
			bytes += in.Count * int64(in.Result.Type.Elem.Size())
		}
	}
	if want := int64(2 * 1024 * ir.I64.Size()); bytes != want {
		t.Errorf("%d bytes of shared memory for rows of 1,024 words, want %d", bytes, want)
	}
}
