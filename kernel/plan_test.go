package kernel_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/kernel"
	"tgc/kernel/plan"
	"tgc/target"
)

// planCases are kernels with plans that must not change their values.
var planCases = []struct {
	name  string
	build func(b *builder) *ir.UOp
	plans []string
}{
	{"elementwise", func(b *builder) *ir.UOp { return elementwise(b, 96) }, []string{
		"VECTOR s0 16", "VECTOR s0 16; UPCAST s0 2", "UPCAST s0 3; ROLL s0", "LOCAL s0 8", "VECTOR s0 32; ROLL s0",
	}},
	{"ragged", func(b *builder) *ir.UOp { return elementwise(b, 37) }, []string{
		"UPCAST s0 4", "UPCAST s0 8", "ROLL s0 5",
	}},
	{"matvec", func(b *builder) *ir.UOp { return matvec(b, 6, 96) }, []string{
		"VECTOR r0 16", "VECTOR r0 32; UNROLL r0", "VECTOR r0 16; UNROLL r0 2; FMA", "UPCAST s0 3; VECTOR r0 16; FMA",
		"VECTOR s0 6", "GROUP r0 4; VECTOR r0 8", "UPCAST s0 4; UNROLL r0 5", "VECTOR r0 16; PREFETCH p1 1024",
		"VECTOR r0 64",
	}},
	{"Q8_0", func(b *builder) *ir.UOp { return packedMatvec(b, "Q8_0", 4, 256, true) }, []string{
		"VECTOR r0 32; FMA", "VECTOR r0 32; UNROLL r0 4; FMA; STAGE r0; PREFETCH p2 8192",
		"VECTOR r0 32; FMA; STAGE r0; UPCAST s0 2",
	}},
	{"Q6_K", func(b *builder) *ir.UOp { return packedMatvec(b, "Q6_K", 4, 512, true) }, []string{
		"VECTOR r0 32; UNROLL r0 8; FMA; STAGE r0; PREFETCH p2 8192",
		"VECTOR r0 64; UNROLL r0 4; FMA; STAGE r0; UPCAST s0 2",
		"VECTOR r0 32; UNROLL r0 8; FMA; STAGE r0",
	}},
	{"pack Q6_K", func(b *builder) *ir.UOp { return packedMatvec(b, "Q6_K", 4, 512, true) }, []string{"PACK r0; FMA", "PACK r0; FMA; PREFETCH p2 8192; UPCAST s0 2", "PACK r0", "PACK r0 8; FMA; PREFETCH p2 8192; LINES 2; CHUNK 3", "PACK r0 4; FMA; UPCAST s0 2"}},
	{"pack Q4_K", func(b *builder) *ir.UOp { return packedMatvec(b, "Q4_K", 4, 512, true) }, []string{"PACK r0; FMA"}},
	{"pack Q5_K", func(b *builder) *ir.UOp { return packedMatvec(b, "Q5_K", 4, 512, false) }, []string{"PACK r0; FMA"}},
	{"pack Q2_K", func(b *builder) *ir.UOp { return packedMatvec(b, "Q2_K", 4, 512, false) }, []string{"PACK r0; FMA"}},
	{"pack Q3_K", func(b *builder) *ir.UOp { return packedMatvec(b, "Q3_K", 4, 512, false) }, []string{"PACK r0; FMA"}},
	{"pack Q6_K, tokens", func(b *builder) *ir.UOp { return packedMatmul(b, "Q6_K", 3, 4, 512) }, []string{
		"UPCAST s0 3; PACK r0; FMA", "UPCAST s0 3; UPCAST s1 2; PACK r0; FMA; PREFETCH p2 8192", "UPCAST s0 2; PACK r0", "ROLL s0; PACK r0; FMA", "PACK r0; FMA",
	}},
	{"pack Q4_K, tokens", func(b *builder) *ir.UOp { return packedMatmul(b, "Q4_K", 5, 2, 512) }, []string{"UPCAST s0 5; PACK r0; FMA", "UPCAST s0 2; ROLL s0; PACK r0; FMA"}},
	{"Q4_K", func(b *builder) *ir.UOp { return packedMatvec(b, "Q4_K", 3, 512, false) }, []string{
		"VECTOR r0 32; UNROLL r0 8; FMA", "VECTOR r0 16", "VECTOR r0 64; UNROLL r0 2; FMA",
	}},
	{"matmul Q6_K", func(b *builder) *ir.UOp { return packedMatmul(b, "Q6_K", 8, 8, 512) }, []string{
		"ROLL s0; VECTOR r0 16; FMA", "UPCAST s0 4; ROLL s0; UPCAST s1 4; VECTOR r0 16; STAGE s1; FMA; PREFETCH p2 8192",
		"UPCAST s0 2; ROLL s0; UPCAST s1 4; VECTOR r0 16; UNROLL r0 2; STAGE s1; FMA",
	}},
	{"matmul ragged", func(b *builder) *ir.UOp { return packedMatmul(b, "Q8_0", 6, 8, 64) }, []string{
		"UPCAST s0 4; ROLL s0; UPCAST s1 4; VECTOR r0 16; STAGE s1; FMA",
	}},
	{"IQ4_NL", func(b *builder) *ir.UOp { return packedMatvec(b, "IQ4_NL", 3, 128, false) }, []string{
		"VECTOR r0 32; FMA", "VECTOR r0 16; UNROLL r0 2",
	}},
	{"scatter rows", func(b *builder) *ir.UOp { return scatterRows(b, 9, 11, 16) }, []string{
		"SCATTER s0; ROLL s0", "SCATTER s0; ROLL s0; VECTOR s1 4; UPCAST s1 2", "SCATTER s0; ROLL s0 4; VECTOR s1 16",
		"ROLL s0 3; SCATTER s0; ROLL s1 8", "SCATTER s0; ROLL s0 5; VECTOR s1 6",
	}},
	{"scatter last", func(b *builder) *ir.UOp { return scatterLast(b, 6, 11, 5) }, []string{
		"SCATTER s0; ROLL s0", "SCATTER s0; ROLL s0 3; ROLL s1", "SCATTER s0; ROLL s0 3; VECTOR s1 5",
	}},
	{"attention", func(b *builder) *ir.UOp { return attention(b, 2, 6, 64) }, []string{
		"VECTOR s1 16; UPCAST s1; VECTOR r1 16; UNROLL r1; FMA", "VECTOR s1 64; VECTOR r1 64",
		"UPCAST s1; VECTOR r1 16", "ROLL s1", "ROLL s1; VECTOR s1 16; VECTOR r1 32", "ROLL s0; VECTOR s1 32",
	}},
}

func TestPlans(t *testing.T) {
	for _, c := range planCases {
		t.Run(c.name, func(t *testing.T) {
			for _, plan := range c.plans {
				b := newBuilder()
				evaluate(t, b.Arena, c.build(b), plan, map[string]int64{"pos": 4})
			}
		})
	}
}

// Any plan that is accepted keeps every value; one that is refused says why.
func TestRandomPlans(t *testing.T) {
	kernels := []func(b *builder) *ir.UOp{
		func(b *builder) *ir.UOp { return elementwise(b, 60) },
		func(b *builder) *ir.UOp { return matvec(b, 6, 48) },
		func(b *builder) *ir.UOp { return packedMatvec(b, "Q8_0", 4, 128, true) },
		func(b *builder) *ir.UOp { return packedMatvec(b, "Q4_K", 2, 256, false) },
		func(b *builder) *ir.UOp { return packedMatmul(b, "Q6_K", 5, 4, 256) },
		func(b *builder) *ir.UOp { return attention(b, 2, 6, 16) },
		func(b *builder) *ir.UOp { return attentionParts(b, 2, 3, 4, 16) },
		func(b *builder) *ir.UOp { return tiles(b, 4, 2, 32) },
		func(b *builder) *ir.UOp { return normRow(b, 3, 24) },
		func(b *builder) *ir.UOp { return tokens(b, 7, 32) },
		func(b *builder) *ir.UOp { return cacheRow(b, 2, 5, 8) },
		func(b *builder) *ir.UOp { return scatterRows(b, 7, 9, 8) },
		func(b *builder) *ir.UOp { return scatterLast(b, 6, 9, 4) },
	}
	rapid.Check(t, func(rt *rapid.T) {
		b := newBuilder()
		sink := rapid.SampledFrom(kernels).Draw(rt, "kernel")(b)
		var chosen plan.Plan
		axes := plan.Axes(sink)
		often := []plan.OptKind{plan.VECTOR, plan.VECTOR, plan.UPCAST, plan.UNROLL, plan.ROLL, plan.STAGE, plan.FMA}
		for range rapid.IntRange(0, 7).Draw(rt, "opts") {
			chosen.Opts = append(chosen.Opts, drawOpt(rt, often, axes, avx512))
		}
		if opt, err := plan.Parse(chosen.String()); err != nil || opt.String() != chosen.String() {
			rt.Fatalf("plan %q parses to %q, %v", chosen, opt, err)
		}
		if err := kernel.Feasible(b.Arena, sink, chosen, avx512); err != nil {
			return
		}
		p, err := kernel.Lower(b.Arena, sink, chosen, avx512)
		if err != nil {
			rt.Fatalf("%s: feasible, but: %v", chosen, err)
		}
		compare(rt, b.Arena, sink, p, chosen, map[string]int64{"pos": int64(rapid.IntRange(0, 3).Draw(rt, "pos")), "T": int64(rapid.IntRange(1, 7).Draw(rt, "T"))})
	})
}

// drawOpt draws an Opt of a kind that the target accepts; often are drawn more often.
func drawOpt(t *rapid.T, often []plan.OptKind, axes []plan.Axis, desc *target.Desc) plan.Opt {
	kinds := slices.DeleteFunc(slices.Concat(often, plan.OptKinds()), func(k plan.OptKind) bool { return !k.On(desc) || k.Sets() != program.NoOption })
	opt := plan.Opt{Kind: rapid.SampledFrom(kinds).Draw(t, "kind")}
	ofBuffer, amount := opt.Kind.OfBuffer()
	switch {
	case ofBuffer:
		opt.Axis = "p2"
	case opt.Kind.TakesAxis():
		opt.Axis = rapid.SampledFrom(axes).Draw(t, "axis").Name
		amount = opt.Kind.TakesAmount()
	}
	switch {
	case opt.Kind == plan.SWAP:
		opt.Amount = int64(rapid.IntRange(0, 1).Draw(t, "other"))
	case opt.Kind.Words() != nil:
		opt.Amount = int64(rapid.IntRange(1, len(opt.Kind.Words())).Draw(t, "word"))
	case amount && opt.Kind != plan.STAGE:
		opt.Amount = int64(rapid.SampledFrom([]int{2, 3, 4, 8, 16}).Draw(t, "amount"))
	}
	return opt
}
