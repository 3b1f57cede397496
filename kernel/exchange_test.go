package kernel_test

import (
	"testing"

	"tgc/ir"
	"tgc/kernel/plan"
	"tgc/target"
)

// Stores of one kernel read what was there before any of them wrote: two buffers may
// change places, point by point.
func TestStoresReadWhatWasThere(t *testing.T) {
	for _, desc := range []*target.Desc{avx512, hopper(t)} {
		for _, text := range []string{"", "VECTOR s0 4", "UPCAST s0 3", "ROLL s0"} {
			b := newBuilder()
			x, y := b.param(0, ir.F32, 24), b.param(1, ir.F32, 24)
			i := b.rng(24)
			first := b.Store(x, b.Add(b.Load(y, i), b.f(1)), list(i), list(i))
			second := b.Store(y, b.Mul(b.Load(x, i), b.f(2)), list(i), list(i))
			sink := b.sink(first, second)
			p := lowerText(t, b, sink, text, desc)
			compare(t, b.Arena, sink, p, plan.Plan{}, nil)
		}
	}
}
