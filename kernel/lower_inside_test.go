package kernel_test

import (
	"strings"
	"testing"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/kernel/plan"
)

// Lanes of which only some are inside of a buffer are loaded one by one inside; all of a run
// that divides the buffer are brought there together, without a mask, and those of a run that
// lies before or past it as a whole read at its start, under masks that hold nowhere.
func TestLanesReachTheirBuffer(t *testing.T) {
	for _, c := range []struct {
		size, half    int64
		guarded, back int // loads with masks, runs that are brought back
	}{
		{size: 64, half: 32},
		{size: 64, half: 16},
		{size: 62, half: 31, guarded: 2, back: 2},
		{size: 48, half: 11, guarded: 2, back: 1},
	} {
		b := newBuilder()
		x, out := b.param(0, ir.F32, c.size), b.param(1, ir.F32, c.size)
		i := b.rng(c.size)
		turned := b.Where(b.Lt(i, b.n(c.size-c.half)), b.Load(x, b.Add(i, b.n(c.half))), b.Load(x, b.Add(i, b.n(c.half-c.size))))
		sink := b.sink(b.Store(out, turned, list(i), list(i)))
		p := lowerText(t, b, sink, "VECTOR s0 16", avx512)
		compare(t, b.Arena, sink, p, plan.Plan{}, nil)
		text := program.Print(p)
		if n := strings.Count(text, "= guarded"); n != c.guarded {
			t.Errorf("half of %d from %d: %d loads with masks, want %d\n%s", c.size, c.half, n, c.guarded, text)
		}
		if n := strings.Count(text, ":i64 = where"); n != c.back {
			t.Errorf("half of %d from %d: %d runs brought back, want %d\n%s", c.size, c.half, n, c.back, text)
		}
	}
}
