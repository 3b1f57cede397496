package native

import (
	"errors"
	"fmt"
	"testing"

	"tgc/runtime/cpu/llvmc"
)

func skipWithoutLLVM(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, llvmc.ErrNoLLVM) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestProbes only asks for plausible figures; BenchmarkProbes prints them.
func TestProbes(t *testing.T) {
	read, err := MeasureRead(t.Context(), 1)
	skipWithoutLLVM(t, err)
	fma, err := MeasureFMA(t.Context(), 1)
	skipWithoutLLVM(t, err)
	if read < 0.1 || read > 10_000 || fma < 0.1 || fma > 10_000 {
		t.Errorf("read %.1f GB/s, FMA %.1f GFLOP/s: out of any machine's range", read, fma)
	}
	t.Logf("1 thread: read %.1f GB/s, FMA %.1f GFLOP/s", read, fma)
}

func BenchmarkProbes(b *testing.B) {
	for _, threads := range []int{1, 2} {
		b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) {
			var read, fma float64
			for b.Loop() {
				var err error
				read, err = MeasureRead(b.Context(), threads)
				skipWithoutLLVM(b, err)
				fma, err = MeasureFMA(b.Context(), threads)
				skipWithoutLLVM(b, err)
			}
			b.ReportMetric(read, "GB/s")
			b.ReportMetric(fma, "GFLOP/s")
		})
	}
}
