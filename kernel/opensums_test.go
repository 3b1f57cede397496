package kernel_test

import (
	"strings"
	"testing"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/kernel/plan"
)

// Sums inside of sums, both over threads of a warp. Where the inner one does not depend
// on the outer range, both have the same threads: what a thread has of the inner sum is
// not a summand of the outer one.
func TestSumsOverTheSameThreads(t *testing.T) {
	for name, value := range map[string]func(b *builder, x, y, inner *ir.UOp) *ir.UOp{
		"factor":       func(b *builder, x, _, inner *ir.UOp) *ir.UOp { return b.Mul(x, inner) },
		"first factor": func(b *builder, x, _, inner *ir.UOp) *ir.UOp { return b.Mul(inner, x) },
		"summand":      func(b *builder, x, _, inner *ir.UOp) *ir.UOp { return b.Add(x, inner) },
		"alone":        func(b *builder, _, _, inner *ir.UOp) *ir.UOp { return inner },
		"chosen":       func(b *builder, x, _, inner *ir.UOp) *ir.UOp { return b.Where(b.Lt(x, b.f(0)), inner, x) },
		"halves":       func(b *builder, x, _, inner *ir.UOp) *ir.UOp { return b.Mul(b.Mul(x, b.f(0.5)), b.Mul(inner, b.f(2))) },
		"added":        func(b *builder, x, y, inner *ir.UOp) *ir.UOp { return b.Mul(b.Add(x, inner), y) },
		"cast":         func(b *builder, x, y, inner *ir.UOp) *ir.UOp { return b.Mul(b.Cast(b.Cast(inner, ir.F64), ir.F32), y) },
		"neg":          func(b *builder, x, y, inner *ir.UOp) *ir.UOp { return b.Unary(ir.OpNeg, inner) },
	} {
		for _, text := range []string{"WARP r0 32; WARP r1 32", "WARP r0 32; WARP r1 8", "GROUP r0 32; WARP r1 32", "WARP r0 8; UNROLL r0 4; WARP r1 32; FMA", "WARP r1 32"} {
			t.Run(name+"/"+text, func(t *testing.T) {
				const n = 32
				b := newBuilder()
				x, y, out := b.param(0, ir.F32, n), b.param(1, ir.F32, n), b.param(2, ir.F32, 2)
				s, i, j := b.rng(2), b.rng(n), b.rng(n)
				inner := b.sum(b.Mul(b.Load(y, j), b.f(0.25)), j)
				sink := b.sink(b.Store(out, b.sum(value(b, b.Load(x, i), b.Load(y, i), inner), i), list(s), list(s)))
				p := lowerText(t, b, sink, text, hopper(t))
				compare(t, b.Arena, sink, p, plan.Plan{}, nil)
			})
		}
	}
}

// The lanes of a sum are folded before it meets a factor with lanes of its own: each of
// those would have all lanes of the sum.
func TestSumsBesideLanes(t *testing.T) {
	b := newBuilder()
	x, y, out := b.param(0, ir.F32, 3, 48), b.param(1, ir.F32, 3, 32), b.param(2, ir.F32, 3, 32)
	n, i, k := b.rng(3), b.rng(32), b.rng(48)
	v := b.Mul(b.Mul(b.sum(b.Load(x, n, k), k), b.f(0.5)), b.Load(y, n, i))
	sink := b.sink(b.Store(out, v, list(n, i), list(n, i)))
	p := evaluate(t, b.Arena, sink, "VECTOR r0 16; VECTOR s1 16; ROLL s1", nil)
	if text := program.Print(p); strings.Contains(text, "f32x256") || strings.Count(text, "fold add") != 1 {
		t.Errorf("want one fold of 16 lanes\n%s", text)
	}
}

// A gate is folded once for all that is made of it, and what it gates beside it, not after it.
func TestSharedSumsAreFoldedOnce(t *testing.T) {
	b := newBuilder()
	const n = 32
	x, y, out := b.param(0, ir.F32, 4, n), b.param(1, ir.F32, 4, n), b.param(2, ir.F32, 4)
	s, i := b.rng(4), b.rng(n)
	gate := b.Mul(b.f(0.5), b.sum(b.Load(x, s, i), i))
	open := b.Unary(ir.OpRecip, b.Add(b.Unary(ir.OpExp2, b.Mul(gate, b.f(-1.5))), b.f(1)))
	up := b.sum(b.Load(y, s, i), i)
	sink := b.sink(b.Store(out, b.Mul(b.Mul(gate, open), up), list(s), list(s)))
	p := lowerText(t, b, sink, "WARP r0 32; UPCAST s0 4", hopper(t))
	compare(t, b.Arena, sink, p, plan.Plan{}, nil)
	if text := program.Print(p); strings.Count(text, "shufflelane") != 2*5*4 {
		t.Errorf("want two folds of five shuffles for each of four rows\n%s", text)
	}
}
