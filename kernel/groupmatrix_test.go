package kernel_test

import (
	"strings"
	"testing"

	"tgc/ir"
	"tgc/kernel"
	"tgc/kernel/plan"
	"tgc/target"
)

// groupCases are kernels with plans of warpgroups: how many of their instructions the program has.
var groupCases = []struct {
	name  string
	build func(b *builder) *ir.UOp
	plan  string
	count int
}{
	{"halves", func(b *builder) *ir.UOp { return halfMatmul(b, 16, 64, 4, 32, false) },
		"UPCAST s0 2; LOCAL s0 4; UPCAST s0 2; LOCAL s1 8; UPCAST s1 2; LOCAL s1 4; STAGE s0; STAGE s1; MMA r1; UNROLL r1 2; WGMMA; FMA", 2},
	{"halves with a scale of each group", func(b *builder) *ir.UOp { return halfMatmul(b, 16, 64, 4, 32, true) },
		"UPCAST s0 2; LOCAL s0 4; UPCAST s0 2; LOCAL s1 8; UPCAST s1 2; LOCAL s1 4; STAGE s0; STAGE s1; MMA r1; UNROLL r1 2; WGMMA; FMA", 2},
	{"two warpgroups of rows, two of columns", func(b *builder) *ir.UOp { return halfMatmul(b, 64, 128, 4, 32, false) },
		"UPCAST s0 2; LOCAL s0 4; UPCAST s0 4; LOCAL s0 2; LOCAL s1 8; UPCAST s1 2; LOCAL s1 4; LOCAL s1 2; STAGE s0; STAGE s1; MMA r1; UNROLL r1 2; WGMMA; FMA", 2},
	{"two tiles of rows", func(b *builder) *ir.UOp { return halfMatmul(b, 48, 256, 2, 64, false) },
		"UPCAST s0 2; LOCAL s0 4; UPCAST s0 3; LOCAL s0 2; LOCAL s1 8; UPCAST s1 2; LOCAL s1 4; UPCAST s1 2; STAGE s0; STAGE s1; MMA r1; UNROLL r1 4; WGMMA; FMA", 8},
	{"256 points at once", func(b *builder) *ir.UOp { return halfMatmul(b, 16, 64, 1, 768, false) },
		"UPCAST s0 2; LOCAL s0 4; UPCAST s0 2; LOCAL s1 8; UPCAST s1 2; LOCAL s1 4; STAGE s0; STAGE s1; MMA r1; UNROLL r1 16; WGMMA; FMA", 16},
	{"floats", func(b *builder) *ir.UOp { return floatMatmul(b, ir.F32, 16, 64, 64) },
		"UPCAST s0 2; LOCAL s0 4; UPCAST s0 2; LOCAL s1 8; UPCAST s1 2; LOCAL s1 4; STAGE s0; STAGE s1; MMA r0; UNROLL r0 2; WGMMA; FMA", 12},
	{"a row of columns", func(b *builder) *ir.UOp { return floatMatmul(b, ir.BF16, 8, 64, 64) },
		"UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; LOCAL s1 4; STAGE s0; STAGE s1; MMA r0; WGMMA; FMA", 3},
	{"terms of which one is scaled", func(b *builder) *ir.UOp { return termMatmul(b, 16, 64, 4, 32) },
		"UPCAST s0 2; LOCAL s0 4; UPCAST s0 2; LOCAL s1 8; UPCAST s1 2; LOCAL s1 4; STAGE s0; STAGE s1; MMA r1; UNROLL r1 2; WGMMA; FMA", 4},
	{"terms and codes of eleven bits", func(b *builder) *ir.UOp { return scaledTermMatmul(b, 16, 64, 4, 32) },
		"UPCAST s0 2; LOCAL s0 4; UPCAST s0 2; LOCAL s1 8; UPCAST s1 2; LOCAL s1 4; STAGE s0; STAGE s1; MMA r1; UNROLL r1 2; WGMMA; FMA", 4},
	{"terms and halves", func(b *builder) *ir.UOp { return halfTermMatmul(b, 16, 64, 4, 64) },
		"UPCAST s0 2; LOCAL s0 4; UPCAST s0 2; LOCAL s1 8; UPCAST s1 2; LOCAL s1 4; STAGE s0; STAGE s1; MMA r1; UNROLL r1 2; WGMMA; FMA", 4},
	{"odd sizes", func(b *builder) *ir.UOp { return floatMatmul(b, ir.BF16, 19, 77, 67) },
		"UPCAST s0 2; LOCAL s0 4; UPCAST s0 2; LOCAL s1 8; UPCAST s1 2; LOCAL s1 4; STAGE s0; STAGE s1; MMA r0; UNROLL r0 2; WGMMA; FMA", 6},
	{"Q6_K", func(b *builder) *ir.UOp { return superblockMatmul(b, "Q6_K", 32, 64, 512) },
		"UPCAST s0 2; LOCAL s0 4; UPCAST s0 4; LOCAL s1 8; UPCAST s1 2; LOCAL s1 4; STAGE s0; STAGE s1; MMA r1; UNROLL r1 2; WGMMA; FMA", 12},
	{"Q4_K", func(b *builder) *ir.UOp { return superblockMatmul(b, "Q4_K", 32, 128, 512) },
		"UPCAST s0 2; LOCAL s0 4; UPCAST s0 4; LOCAL s1 8; UPCAST s1 2; LOCAL s1 4; LOCAL s1 2; STAGE s0; STAGE s1; MMA r1; UNROLL r1 2; WGMMA; FMA", 12},
}

// termMatmul is a product of codes and activations that are two terms of f16 in a word, the second one times 2^-11, summed over
// groups, each with a scale.
func termMatmul(b *builder, tokens, rows, groups, size int64) *ir.UOp {
	return codeMatmul(b, tokens, rows, groups, size, func(w, _ *ir.UOp) *ir.UOp { return b.Add(b.Cast(b.And(w, b.ConstInt(ir.U8, 63)), ir.F32), b.f(-32)) })
}

// scaledTermMatmul is the same of codes times integer scales, up to 31*63.
func scaledTermMatmul(b *builder, tokens, rows, groups, size int64) *ir.UOp {
	bits := func(u *ir.UOp, most int64) *ir.UOp { return b.Cast(b.And(u, b.ConstInt(ir.U8, most)), ir.F32) }
	return codeMatmul(b, tokens, rows, groups, size, func(w, scale *ir.UOp) *ir.UOp { return b.Mul(bits(w, 31), bits(scale, 63)) })
}

// codeMatmul is a product of terms and a code of a weight, and the first weight of its group.
func codeMatmul(b *builder, tokens, rows, groups, size int64, code func(w, first *ir.UOp) *ir.UOp) *ir.UOp {
	w := b.param(1, ir.U8, rows, groups*size)
	return productOfTerms(b, tokens, rows, groups, size, 2048, func(n, k, first *ir.UOp) *ir.UOp { return code(b.Load(w, n, k), b.Load(w, n, first)) })
}

// halfTermMatmul is the same of weights of F16, in groups of 32, and terms of which the second one is scaled by apart.
func halfTermMatmul(b *builder, tokens, rows, groups int64, apart float64) *ir.UOp {
	w := b.param(1, ir.F16, rows, groups*32)
	return productOfTerms(b, tokens, rows, groups, 32, apart, func(n, k, _ *ir.UOp) *ir.UOp { return b.Cast(b.Load(w, n, k), ir.F32) })
}

// productOfTerms is a product of two terms of f16, of which the second one is scaled by apart, and weights.
func productOfTerms(b *builder, tokens, rows, groups, size int64, apart float64, weight func(n, k, first *ir.UOp) *ir.UOp) *ir.UOp {
	x, out := b.param(0, ir.F32, tokens, groups*size), b.param(3, ir.F32, tokens, rows)
	t, n, g, j := b.rng(tokens), b.rng(rows), b.rng(groups), b.rng(size)
	k := b.Add(b.Mul(g, b.n(size)), j)
	y := b.Load(x, t, k)
	high := b.Cast(y, ir.F16)
	low := b.Cast(b.Mul(b.Sub(y, b.Cast(high, ir.F32)), b.f(apart)), ir.F16)
	float := func(u *ir.UOp) *ir.UOp { return b.Cast(u, ir.F32) }
	terms := b.Add(float(high), b.Mul(float(low), b.f(1/apart)))
	product := b.Mul(terms, weight(n, k, b.Mul(g, b.n(size))))
	total := b.Mul(b.Load(b.param(2, ir.F32, rows, groups), n, g), b.sum(product, j))
	return b.sink(b.Store(out, b.sum(total, g), list(t, n), list(t, n)))
}

func TestGroupPlans(t *testing.T) {
	for _, c := range groupCases {
		t.Run(c.name, func(t *testing.T) { runMatrixPlan(t, c.build, c.plan, "groupmma", c.count) })
	}
}

// Plans that leave no place for a warpgroup's instruction are refused, as are targets without it.
func TestGroupRefusals(t *testing.T) {
	const columns, rows = "UPCAST s0 2; LOCAL s0 4; UPCAST s0 2; ", "LOCAL s1 8; UPCAST s1 2; LOCAL s1 4; "
	for _, c := range []struct{ plan, want string }{
		{columns + rows + "STAGE s0; STAGE s1; WGMMA", "no tiles in shared memory"},
		{columns + rows + "MMA r0; WGMMA", "no tiles in shared memory"},
		{columns + rows + "STAGE s0; MMA r0; WGMMA", "the factor of s1 is in no tile"},
		{columns + "LOCAL s1 8; UPCAST s1 2; UPCAST s1 4; STAGE s0; STAGE s1; MMA r0; WGMMA", "needs rows with LOCAL 8; UPCAST 2; LOCAL 4"},
		{"UPCAST s0 2; LOCAL s0 4; UPCAST s0 64; " + rows + "STAGE s0; STAGE s1; MMA r0; WGMMA", "512 columns"},
	} {
		chosen, err := plan.Parse(c.plan)
		if err != nil {
			t.Fatal(err)
		}
		b := newBuilder()
		sink := floatMatmul(b, ir.BF16, 1024, 128, 64)
		if _, err := kernel.Lower(b.Arena, sink, chosen, hopper(t)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.plan, err, c.want)
		}
		for _, name := range []string{"ptx:sm_90", "ptx:sm_80", "llvm:x86-64-v4"} {
			desc, err := target.Parse(name)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := kernel.Lower(b.Arena, sink, chosen, desc); err == nil {
				t.Errorf("%s accepts %s", name, c.plan)
			}
		}
	}
}

// Of doubles, and of factors that are the same for several rows, there is no such instruction.
func TestGroupSumsRefused(t *testing.T) {
	const opts = "UPCAST s0 2; LOCAL s0 4; UPCAST s0 2; LOCAL s1 8; UPCAST s1 2; LOCAL s1 4; STAGE s0; STAGE s1; MMA r0; WGMMA; FMA"
	for name, build := range map[string]func(b *builder) *ir.UOp{
		"doubles":  func(b *builder) *ir.UOp { return doubleMatmul(b, 16, 64, 64) },
		"integers": func(b *builder) *ir.UOp { return intMatmul(b, ir.I8, ir.I8, ir.I32, 16, 64, 64) },
	} {
		b := newBuilder()
		chosen, err := plan.Parse(opts)
		if err != nil {
			t.Fatal(err)
		}
		if err := kernel.Feasible(b.Arena, build(b), chosen, hopper(t)); err == nil {
			t.Errorf("%s: a plan is accepted", name)
		}
	}
}
