package search

import (
	"math"
	"slices"
	"testing"

	"tgc/ir"
)

// Elements that differ by more than the bound are found wherever they are, in order, and of too many
// of them more than may be.
func TestApart(t *testing.T) {
	for _, dtype := range []ir.DType{ir.F32, ir.F16, ir.I8} {
		n := 2*elementsAtOnce + 3
		want := make([]float64, n)
		for i := range want {
			want[i] = float64(i % 10)
		}
		got := slices.Clone(want)
		wrong := []int64{0, elementsAtOnce - 1, elementsAtOnce, int64(n - 1)}
		for _, at := range wrong {
			got[at] += 3
		}
		got[7] += 1
		list := func(most int) []int64 {
			return apart([]byte(ir.EncodeTable(dtype, got)), []byte(ir.EncodeTable(dtype, want)), dtype, 2, most)
		}
		if found := list(mostBeyond); !slices.Equal(found, wrong) {
			t.Errorf("%s: %v, want %v", dtype, found, wrong)
		}
		if found := list(2); len(found) <= 2 {
			t.Errorf("%s: %v, want more than 2", dtype, found)
		}
	}
	if got := numberOf(ir.F32)([]byte(ir.EncodeTable(ir.F32, []float64{1, math.Inf(-1)})), 1); !math.IsInf(got, -1) {
		t.Error(got)
	}
}

func BenchmarkApart(b *testing.B) {
	const n = 1 << 22
	got, want := make([]float64, n), make([]float64, n)
	for i := range want {
		got[i], want[i] = float64(i)+1e-3, float64(i)
	}
	x, y := []byte(ir.EncodeTable(ir.F32, got)), []byte(ir.EncodeTable(ir.F32, want))
	for b.Loop() {
		apart(x, y, ir.F32, 1, mostBeyond)
	}
}
