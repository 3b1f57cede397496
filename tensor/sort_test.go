package tensor

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tgc/engine"
	_ "tgc/internal/steadyseed"
	"tgc/ir"
	"tgc/runtime/interp"
	"tgc/target"
)

// All ways to sort give what a stable sort gives: NaN last, both zeros equal,
// equal elements in order. The network also where the length is no power of two.
func TestSortingWays(t *testing.T) {
	values := rapid.SampledFrom([]float32{
		0, float32(math.Copysign(0, -1)), 1, -1, 2.5, -3, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()),
	})
	for _, n := range []int{2, 7, 8} {
		for _, descending := range []bool{false, true} {
			f := sorters(t, n, descending)
			rapid.Check(t, func(r *rapid.T) {
				x := rapid.SliceOfN(values, n, n).Draw(r, "x")
				want := make([]int32, len(x))
				for i := range want {
					want[i] = int32(i)
				}
				slices.SortStableFunc(want, func(i, j int32) int {
					if descending {
						i, j = j, i
					}
					return compareNaNLast(x[i], x[j])
				})
				for name, got := range positions(r, f, x) {
					if !slices.Equal(got, want) {
						r.Fatalf("%s: got %v, want %v", name, got, want)
					}
				}
			})
		}
	}
}

// Many rows that are not short go through a network where comparing all pairs would take
// long, others do not.
func TestSortingByPrice(t *testing.T) {
	for name, want := range map[string]map[int]bool{"llvm:x86-64-v4": {3: false, 100: true, 2000: true}, "ptx:sm_90": {256: false, 2000: false}} {
		desc, err := target.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		for n, network := range want {
			g := NewGraph()
			values, _ := g.Input("x", ir.F32, 64, n).Sort(1, false)
			g.Output("y", values)
			c, err := g.Compile(t.Context(), desc, engine.Config{})
			if err != nil {
				t.Fatal(err)
			}
			if got := len(c.Launches) > 5; got != network {
				t.Errorf("%s: 64 rows of %d take %d launches, through a network: want %t", name, n, len(c.Launches), network)
			}
		}
	}
}

func compareNaNLast(x, y float32) int {
	if x != x || y != y {
		return cmp.Compare(boolInt(x != x), boolInt(y != y))
	}
	return cmp.Compare(x, y)
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// sorters compiles all ways for vectors of n elements.
func sorters(t *testing.T, n int, descending bool) *Function {
	t.Helper()
	g := NewGraph()
	key := g.Input("x", ir.F32, n).sortKey(descending)
	g.Output("ranked", key.ranked(n))
	items := key.withPositions()
	g.Output("network", positionsOf(network(items, 1)).SliceInts(-1, 0, n))
	g.Output("winners", positionsOf([]*Tensor{items[0].firstWords(n, leastPart)}))
	f, err := Compile(t.Context(), g, interp.New(interp.Options{}), engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

func positions(r *rapid.T, f *Function, x []float32) map[string][]int32 {
	ctx := r.Context()
	if err := Set(ctx, f, "x", x); err != nil {
		r.Fatal(err)
	}
	if err := f.Run(ctx, nil); err != nil {
		r.Fatal(err)
	}
	results := make(map[string][]int32)
	for _, name := range []string{"ranked", "network", "winners"} {
		got, err := Get[int32](ctx, f, name)
		if err != nil {
			r.Fatal(err)
		}
		results[name] = got
	}
	return results
}

// Winners of blocks, of which the last is cut short, and then of those in several rounds,
// are the first of all in order: of many equals, too.
func TestWinners(t *testing.T) {
	const rows, n, count = 2, 5*leastPart + 17, 16
	g := NewGraph()
	words := g.Input("x", ir.F32, rows, n).sortKey(true).withPositions()[0]
	g.Output("winners", positionsOf([]*Tensor{words.firstWords(count, 2*leastPart)}))
	f, err := Compile(t.Context(), g, interp.New(interp.Options{}), engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	random := rand.New(rand.NewPCG(1, 2))
	x := make([]float32, rows*n)
	for i := range x {
		x[i] = float32(random.IntN(999))
	}
	if err := Set(t.Context(), f, "x", x); err != nil {
		t.Fatal(err)
	}
	if err := f.Run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	got, err := Get[int32](t.Context(), f, "winners")
	if err != nil {
		t.Fatal(err)
	}
	for row := range rows {
		want := make([]int32, n)
		for i := range want {
			want[i] = int32(i)
		}
		slices.SortStableFunc(want, func(i, j int32) int { return cmp.Compare(x[row*n+int(j)], x[row*n+int(i)]) })
		if own := got[row*count : (row+1)*count]; !slices.Equal(own, want[:count]) {
			t.Errorf("row %d: got %v, want %v", row, own, want[:count])
		}
	}
}

// On a GPU the best of a long row take a few launches, however many they are.
func TestTopOfLongRowsOnGPU(t *testing.T) {
	desc, err := target.Parse("ptx:sm_90")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ n, count, launches int }{{32000, 50, 8}, {100000, 8, 10}, {35, 8, 4}} {
		g := NewGraph()
		values, _ := g.Input("x", ir.F32, 1, row.n).TopK(row.count, 1, true)
		g.Output("values", values)
		compiled, err := g.Compile(t.Context(), desc, engine.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if got := len(compiled.Launches); got > row.launches {
			t.Errorf("the best %d of %d: %d launches, want at most %d", row.count, row.n, got, row.launches)
		}
	}
}

// The best of many long rows are found in a few kernels, whose programs are small, also
// where nobody reads their positions.
func TestTopOfManyRowsIsSmall(t *testing.T) {
	desc, err := target.Parse("llvm:x86-64-v4")
	if err != nil {
		t.Fatal(err)
	}
	for _, count := range []int{1, 8} {
		g := NewGraph()
		values, _ := g.Input("x", ir.F32, 64, 1024).TopK(count, 1, true)
		g.Output("values", values)
		compiled, err := g.Compile(t.Context(), desc, engine.Config{})
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range compiled.Kernels {
			if n := len(ir.Toposort(k.AST)); len(compiled.Kernels) > 5 || n > 100 {
				t.Errorf("the best %d: kernel %s of %d has %d nodes", count, k.Name, len(compiled.Kernels), n)
			}
		}
	}
}

// The steps of a network are two tensors each that read both of the step before: as many
// ways lead to the first step as there are subsets of steps, and no pass may go them all.
func TestSoftmaxOfManyStepsCompiles(t *testing.T) {
	const steps = 40
	for _, name := range []string{"llvm:x86-64-v4", "ptx:sm_90"} {
		desc, err := target.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		g := NewGraph()
		x, y := g.Input("x", ir.F32, 64, 256), g.Input("y", ir.F32, 64, 256)
		for range steps {
			x, y = x.Minimum(y.Flip(1)), y.Maximum(x.Flip(1))
		}
		g.Output("z", x.Softmax(0))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := g.Compile(ctx, desc, engine.Config{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Keys of all types are ordered alike by counting, by a network and one after the other:
// those of 64 bits beside their positions, others in one word with them.
func TestSortingTypes(t *testing.T) {
	bounds := map[ir.DType][2]float64{
		ir.U8: {0, 255}, ir.I16: {math.MinInt16, math.MaxInt16}, ir.I32: {math.MinInt32, math.MaxInt32},
		ir.U32: {0, math.MaxUint32}, ir.I64: {-1 << 53, 1 << 53}, ir.F16: {-7, 9}, ir.F64: {-1e300, 1e300},
	}
	for dtype, b := range bounds {
		for _, descending := range []bool{false, true} {
			g := NewGraph()
			x := g.Table(dtype, []float64{b[1], 3, b[0], 3, 5, b[1], b[0], 4, 3}, 9)
			key := x.sortKey(descending)
			want := []int32{2, 6, 1, 3, 8, 7, 4, 0, 5}
			if descending {
				want = []int32{0, 5, 4, 7, 1, 3, 8, 2, 6}
			}
			results := map[string]*Tensor{"ranked": key.ranked(9), "network": positionsOf(network(key.withPositions(), 1)).SliceInts(-1, 0, 9), "rows": positionsOf(network(key.withPositions(), 4)).SliceInts(-1, 0, 9)}
			if items := key.withPositions(); len(items) == 1 {
				results["selected"] = items[0].selected(4)
			} else if dtype.Size() < 8 {
				t.Errorf("%s: no word has key and position", dtype)
			}
			for name, r := range results {
				got, err := realized(t, r)
				if err != nil || !slices.Equal(got, want[:len(got)]) || len(got) < 4 {
					t.Errorf("%s, descending %t: %s: got %v, want %v: %v", dtype, descending, name, got, want, err)
				}
			}
		}
	}
}

func realized(t *testing.T, x *Tensor) ([]int32, error) {
	t.Helper()
	x.graph.On(interp.New(interp.Options{}))
	if err := x.Realize(t.Context()); err != nil {
		return nil, err
	}
	return Data[int32](x)
}
