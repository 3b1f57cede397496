package tensor_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
	_ "tgc/internal/steadyseed"
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
