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

// A store writes its points and nothing beside them: not those before the start or past
// the end of a buffer, not those that pad a range, and runs of lanes at places that are
// aligned less than their rows.
func TestStoresKeepToTheirPoints(t *testing.T) {
	for name, c := range map[string]struct {
		build func(b *builder) *ir.UOp
		plans []string
	}{
		"before the start": {func(b *builder) *ir.UOp {
			x, out := b.param(0, ir.F32, 24), b.param(1, ir.F32, 24)
			i := b.rng(24)
			return b.sink(b.Store(out, b.Load(x, i), list(b.Add(i, b.n(-5))), list(i)))
		}, []string{"", "VECTOR s0 4", "UPCAST s0 3"}},
		"past the end": {func(b *builder) *ir.UOp {
			x, out := b.param(0, ir.F32, 24), b.param(1, ir.F32, 24)
			i := b.rng(24)
			return b.sink(b.Store(out, b.Load(x, i), list(b.Add(i, b.n(5))), list(i)))
		}, []string{"", "VECTOR s0 4", "UPCAST s0 3"}},
		"a part of a buffer": {func(b *builder) *ir.UOp {
			x, out := b.param(0, ir.F32, 22), b.param(1, ir.F32, 40)
			i := b.rng(22)
			return b.sink(b.Store(out, b.Load(x, i), list(b.Add(i, b.n(4))), list(i)))
		}, []string{"VECTOR s0 8", "UPCAST s0 4"}},
		"runs of lanes": {func(b *builder) *ir.UOp {
			x, out := b.param(0, ir.F32, 4, 4), b.param(1, ir.F32, 4, 6)
			i, j := b.rng(4), b.rng(4)
			return b.sink(b.Store(out, b.Load(x, j, i), list(i, j), list(i, j)))
		}, []string{"VECTOR s0 2; VECTOR s1 4", "VECTOR s1 2; VECTOR s0 4", "VECTOR s0 4; VECTOR s1 4"}},
	} {
		for _, desc := range []*target.Desc{avx512, hopper(t)} {
			for _, text := range c.plans {
				t.Run(name+"/"+text+"/"+desc.Name, func(t *testing.T) {
					b := newBuilder()
					sink := c.build(b)
					p := lowerText(t, b, sink, text, desc)
					compare(t, b.Arena, sink, p, plan.Plan{}, nil)
				})
			}
		}
	}
}
