package tensor_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
	"tgc/engine"
	_ "tgc/internal/steadyseed"
	"tgc/ir"
	"tgc/runtime/devices"
	"tgc/target"
	"tgc/tensor"
)

// Running folds of short and long axes (which are folded in blocks), of several
// ranks, equal the loop.
func TestRunningFolds(t *testing.T) {
	for name, c := range map[string]struct {
		build func(x *tensor.Tensor, axis int) *tensor.Tensor
		step  func(sum, x int32) int32
	}{
		"cumsum":  {(*tensor.Tensor).Cumsum, func(sum, x int32) int32 { return sum + x }},
		"cumprod": {(*tensor.Tensor).Cumprod, func(sum, x int32) int32 { return sum * x }},
		"cummax":  {func(x *tensor.Tensor, axis int) *tensor.Tensor { v, _ := x.Cummax(axis); return v }, func(sum, x int32) int32 { return max(sum, x) }},
		"cummin":  {func(x *tensor.Tensor, axis int) *tensor.Tensor { v, _ := x.Cummin(axis); return v }, func(sum, x int32) int32 { return min(sum, x) }},
	} {
		t.Run(name, func(t *testing.T) {
			tried := 0
			rapid.Check(t, func(t *rapid.T) {
				if tried++; tried > 25 && !testing.Verbose() { // compiling takes the time
					return
				}
				outer, inner := rapid.IntRange(1, 3).Draw(t, "outer"), rapid.IntRange(1, 3).Draw(t, "inner")
				n := rapid.OneOf(rapid.IntRange(1, 9), rapid.IntRange(60, 150)).Draw(t, "n")
				values := rapid.SliceOfN(rapid.Int32Range(-5, 5), outer*n*inner, outer*n*inner).Draw(t, "values")
				g := tensor.NewGraph()
				y := c.build(tensor.FromSlice(g, values, outer, n, inner), 1)
				if err := y.Realize(t.Context()); err != nil {
					t.Fatal(err)
				}
				want := slices.Clone(values)
				for i := range want {
					if i/inner%n > 0 {
						want[i] = c.step(want[i-inner], want[i])
					}
				}
				if got, err := tensor.Data[int32](y); err != nil || !slices.Equal(got, want) {
					t.Fatalf("got %v, %v, want %v", got, err, want)
				}
			})
		})
	}
}

// Indices of running extremes are the last of equals; a NaN stays, with its own
// index.
func TestRunningExtremeIndices(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		values      []float32
		most, least []int32
	}{
		{[]float32{2, 2, 1, 3, 1}, []int32{0, 1, 1, 3, 3}, []int32{0, 1, 2, 2, 4}},
		{[]float32{1, nan, 5, nan, 0}, []int32{0, 1, 1, 3, 3}, []int32{0, 1, 1, 3, 3}},
	} {
		g := tensor.NewGraph()
		x := tensor.FromSlice(g, c.values, len(c.values))
		_, most := x.Cummax(0)
		_, least := x.Cummin(0)
		if err := tensor.Realize(t.Context(), most, least); err != nil {
			t.Fatal(err)
		}
		if got, err := tensor.Data[int32](most); err != nil || !slices.Equal(got, c.most) {
			t.Errorf("cummax of %v: got %v, %v, want %v", c.values, got, err, c.most)
		}
		if got, err := tensor.Data[int32](least); err != nil || !slices.Equal(got, c.least) {
			t.Errorf("cummin of %v: got %v, %v, want %v", c.values, got, err, c.least)
		}
	}
}

// The running log-sum-exp of a long axis neither overflows nor loses what went
// before.
func TestRunningLogSumExp(t *testing.T) {
	values := make([]float32, 200)
	for i := range values {
		values[i] = float32(1000*math.Sin(float64(i)) - 500)
	}
	values[0] = float32(math.Inf(-1))
	g := tensor.NewGraph()
	y := tensor.FromSlice(g, values, len(values)).LogCumSumExp(0)
	if err := y.Realize(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := tensor.Data[float32](y)
	if err != nil {
		t.Fatal(err)
	}
	sum := math.Inf(-1)
	for i, v := range values {
		hi, lo := max(sum, float64(v)), min(sum, float64(v))
		if sum = hi; !math.IsInf(hi, -1) {
			sum += math.Log1p(math.Exp(lo - hi))
		}
		if g := float64(got[i]); g != sum && !(math.Abs(g-sum) <= 1e-6*math.Abs(sum)) {
			t.Fatalf("element %d: got %v, want %v", i, g, sum)
		}
	}
}

// Long rows of a GPU are folded in runs, blocks and totals of blocks: of blocks that are
// full and not, of more of them than one kernel folds, and of rows of which each is one.
func TestRunningFoldsOfRowsOnGPU(t *testing.T) {
	dev, _, err := devices.Open(t.Context(), "cuda:emu", devices.Options{})
	if err != nil {
		t.Skip(err)
	}
	defer dev.Close()
	for _, shape := range [][]int{{3, 257}, {2, 1000}, {1, 5000}, {2, 4096}, {5, 65}} {
		n, size := shape[1], shape[0]*shape[1]
		values := make([]int32, size)
		random := rand.New(rand.NewPCG(1, uint64(n)))
		for i := range values {
			values[i] = random.Int32N(2000) - 1000
		}
		g := tensor.NewGraph()
		x := g.Input("x", ir.I32, shape...)
		largest, where := x.Cummax(-1)
		g.Output("sum", x.Cumsum(-1))
		g.Output("largest", largest)
		g.Output("where", where)
		f, err := tensor.Compile(t.Context(), g, dev, engine.Config{})
		if err != nil {
			t.Fatal(err)
		}
		sums, most, at := slices.Clone(values), slices.Clone(values), make([]int32, size)
		for i := range values {
			if j := int32(i % n); j > 0 {
				sums[i] += sums[i-1]
				if at[i] = j; most[i-1] > most[i] {
					most[i], at[i] = most[i-1], at[i-1]
				}
			}
		}
		if err := tensor.Set(t.Context(), f, "x", values); err != nil {
			t.Fatal(err)
		}
		if err := f.Run(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string][]int32{"sum": sums, "largest": most, "where": at} {
			if got, err := tensor.Get[int32](t.Context(), f, name); err != nil || !slices.Equal(got, want) {
				t.Errorf("%v: %s differs, %v", shape, name, err)
			}
		}
		f.Close()
	}
}

// A running sum of a long row of a GPU is three kernels, and a thread makes a run of the last
// with each term read once. A row that is no multiple of blocks is stored with one before, and cut after it.
func TestRunningSumOfALongRowOnGPU(t *testing.T) {
	desc, err := target.Parse("ptx:sm_90")
	if err != nil {
		t.Fatal(err)
	}
	for _, shape := range [][]int{{1, 1 << 20}, {1, 1000003}, {512, 4096}} {
		g := tensor.NewGraph()
		g.Output("y", g.Input("x", ir.F32, shape...).Cumsum(-1))
		c, err := g.Compile(t.Context(), desc, engine.Config{})
		if err != nil {
			t.Fatal(err)
		}
		most, runs := 3, 0
		if shape[1]%1024 != 0 {
			most = 5
		}
		for _, k := range c.Kernels {
			if strings.Contains(k.Why, "16 terms of 16 results") {
				runs++
			}
		}
		if len(c.Kernels) > most || runs != 1 {
			t.Errorf("%v: %d kernels, %d of them of runs", shape, len(c.Kernels), runs)
		}
	}
}
