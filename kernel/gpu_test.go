package kernel_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	_ "tgc/internal/steadyseed"
	"tgc/ir"
	"tgc/ir/program"
	"tgc/kernel"
	"tgc/kernel/plan"
	"tgc/target"
)

func hopper(t fataler) *target.Desc {
	desc, err := target.ForGPU(90, true)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return desc
}

// gpuCase is a kernel with plans whose digits are threads.
type gpuCase struct {
	name  string
	build func(b *builder) *ir.UOp
	plans []string
}

var gpuCases = []gpuCase{
	{"elementwise", func(b *builder) *ir.UOp { return elementwise(b, 96) }, []string{
		"", "LOCAL s0 32", "VECTOR s0 4; LOCAL s0 8", "LOCAL s0 8; UPCAST s0 3", "LOCAL s0 96",
	}},
	{"ragged", func(b *builder) *ir.UOp { return elementwise(b, 37) }, []string{"LOCAL s0 32", "LOCAL s0 8; UPCAST s0 2"}},
	{"matvec", func(b *builder) *ir.UOp { return matvec(b, 6, 96) }, []string{
		"WARP r0 32", "WARP r0 32; UPCAST s0 2; LOCAL s0 3; FMA", "VECTOR r0 4; WARP r0 8; LOCAL s0 2", "GROUP r0 4", "GROUP r0 4; LOCAL s0 3",
		"WARP r0 8; GROUP r0 4; LOCAL s0 2; UPCAST s0 3", "GROUP r0 96", "WARP r0 32; GROUP r0 3",
		"GROUP r0 6; WARP r0 4", "TC r0 4; WARP r0 8", "WARP r0 32; UNROLL r0 2",
	}},
	{"Q8_0", func(b *builder) *ir.UOp { return packedMatvec(b, "Q8_0", 4, 256, true) }, []string{
		"WARP r0 32; FMA", "VECTOR r0 4; WARP r0 32; STAGE r0; UPCAST s0 2; LOCAL s0 2; FMA", "VECTOR r0 8; WARP r0 8; GROUP r0 4; STAGE r0",
		"WARP r0 32; STAGE r0; GROUP r0 2; LOCAL s0 4",
	}},
	{"Q6_K", func(b *builder) *ir.UOp { return packedMatvec(b, "Q6_K", 4, 512, true) }, []string{
		"WARP r0 32; STAGE r0; LOCAL s0 4; GROUP r0 4; FMA", "UNROLL r0 4; WARP r0 16; STAGE r0; LOCAL s0 2; UPCAST s0 2",
	}},
	{"Q6_K rows", func(b *builder) *ir.UOp { return packedMatvec(b, "Q6_K", 12, 512, true) }, []string{
		rowsLoadedAhead, rowsLoadedAhead + "; STAGE r0", "WARP r0 32; UPCAST s0 2; LOCAL s0 2; ROLL s0; PRELOAD p2", "UNROLL r0 4; WARP r0 32; ROLL s0; PRELOAD p2",
		"VECTOR r0 16; UNROLL r0 4; WARP r0 8; UPCAST s0 2; ROLL s0 4; PRELOAD p2; FMA",
	}},
	{"Q8_0 rows", func(b *builder) *ir.UOp { return packedMatvec(b, "Q8_0", 12, 2048, true) }, []string{
		rowsReread, rowsAtOnce, rowsReread + "; AHEAD 32; CACHE p2 l2; TRIGGER wait; REREAD never; LOADS 8",
	}},
	{"Q8_0 long rows", func(b *builder) *ir.UOp { return packedMatvec(b, "Q8_0", 12, 1536, false) }, []string{loopAlongARow}},
	{"Q5_0", func(b *builder) *ir.UOp { return packedMatvec(b, "Q5_0", 4, 256, false) }, []string{ // bits of a word whose places differ between threads
		"VECTOR r0 16; WARP r0 16; FMA", "VECTOR r0 4; WARP r0 32; LOCAL s0 2", "VECTOR r0 8; WARP r0 4; UNROLL r0 2; UPCAST s0 2; LOCAL s0 2",
	}},
	{"Q5_1", func(b *builder) *ir.UOp { return packedMatvec(b, "Q5_1", 4, 256, false) }, []string{"VECTOR r0 16; WARP r0 16; FMA"}},
	{"IQ4_NL", func(b *builder) *ir.UOp { return packedMatvec(b, "IQ4_NL", 3, 128, false) }, []string{"WARP r0 32; LOCAL s0 2"}},
	{"matmul", func(b *builder) *ir.UOp { return packedMatmul(b, "Q6_K", 8, 8, 512) }, []string{
		"UPCAST s0 2; LOCAL s0 2; UPCAST s1 2; LOCAL s1 4", "UPCAST s0 4; LOCAL s0 2; UPCAST s1 2; LOCAL s1 4; STAGE s1; UNROLL r0 4",
	}},
	{"panels", func(b *builder) *ir.UOp { return superblockMatmul(b, "Q6_K", 8, 8, 512) }, []string{
		"UPCAST s0 4; LOCAL s0 2; UPCAST s1 2; LOCAL s1 4; STAGE s1 256; VECTOR r1 4; WARP r1 4; FMA", "LOCAL s0 4; LOCAL s1 2; STAGE s1 256; WARP r1 8; UNROLL r1 4",
		"LOCAL s0 4; UPCAST s1 2; STAGE s1 128; STAGE s0 256; WARP r1 8",
	}},
	{"factored", func(b *builder) *ir.UOp { return factoredMatmul(b, 8, 8, 4, 64) }, []string{
		"STAGE s1 64; UPCAST s0 4; LOCAL s0 2; UPCAST s1 2; LOCAL s1 4; VECTOR r1 4; WARP r1 4; FMA", "STAGE s1 256; LOCAL s0 4; LOCAL s1 8; UNROLL r1 4", "LOCAL s1 8; STAGE s1 64",
	}},
	{"attention", func(b *builder) *ir.UOp { return attention(b, 2, 6, 64) }, []string{
		"LOCAL s1 64", "WARP r1 32; LOCAL s1 4; UPCAST s1", "LOCAL s1 16; VECTOR s1 4; WARP r1 16", "UPCAST s1 4; LOCAL s1 16; VECTOR r1 4; WARP r1 16",
	}},
	{"attention even", func(b *builder) *ir.UOp { return attentionParts(b, 2, 3, 8, 16) }, []string{
		"WARP r0 8; UPCAST s2", "WARP r0 2; GROUP r0 4; UPCAST s2", "GROUP r0 8; VECTOR s2 4; LOCAL s2 4", "GROUP r0 4; WARP r1 16; VECTOR s2 16",
		"WARP r1 16; LOCAL s2 16; GROUP r0 4", "LOCAL s1 3; WARP r0 4; UPCAST s2 4",
	}},
	{"tiles", func(b *builder) *ir.UOp { return tiles(b, 4, 2, 32) }, []string{
		"LOCAL z0 2; WARP r0 16; LOCAL s1 2", "LOCAL s0 4; LOCAL z0 2; WARP r0 32; LOCAL s1 2", "UNROLL z0; WARP r0 32; UPCAST s1", "LOCAL s0 2; WARP r0 16",
	}},
	{"norm", func(b *builder) *ir.UOp { return normRow(b, 3, 24) }, []string{
		"LOCAL s1 8; LOCAL z0 8; WARP r0 8; WARP r1 8", "LOCAL s1 24; LOCAL z0 24; GROUP r0 24; GROUP r1 8", "LOCAL s0 3; LOCAL z0 8; WARP r0 8; LOCAL s1 8",
	}},
	{"groups", func(b *builder) *ir.UOp { return groups(b, 8, 16, 32) }, []string{
		heldGroups, "WARP r0 16; STAGE r0; LOCAL s0 4; WARP r1 2; LOCAL z0 16; LOCAL z2 32; LOCAL z1 2",
		"STAGE r0; LOCAL s0 8; VECTOR r1 4; WARP r1 8; LOCAL z0 4; VECTOR r5 4; WARP r5 8; VECTOR z2 4; LOCAL z2 8; LOCAL z1 4",
		"TC r3 4; TC r4 4; STAGE r0; WARP r0 8; VECTOR r5 8; WARP r5 4; VECTOR z2 8; LOCAL z2 4; LOCAL z1 4; UNROLL z1 4", "LOCAL s0 8",
	}},
	{"groups of tokens", func(b *builder) *ir.UOp { return groupsOfTokens(b, 3, 8, 16, 32) }, []string{
		heldGroupsOfTokens, "UPCAST s0 3; WARP r0 16; STAGE r0; LOCAL s1 4; WARP r1 2; LOCAL z0 16; LOCAL z2 32; LOCAL z1 2", "UPCAST s0 3; STAGE r0; LOCAL s1 8",
		"LOCAL s0 3; WARP r0 16; STAGE r0; LOCAL s1 4", "UPCAST s0 2; WARP r0 16; STAGE r0; LOCAL s1 4", "WARP r0 16; STAGE r0; LOCAL s1 4",
	}},
	{"minima", func(b *builder) *ir.UOp { return minima(b, 8, 16, 32) }, []string{heldMinima, "LOCAL s0 8; STAGE r0"}},
	{"tokens", func(b *builder) *ir.UOp { return tokens(b, 7, 32) }, []string{"WARP r0 32; GROUP r1 32", "GROUP r0 8; WARP r1 8; ROLL s0"}},
	{"clusters of a sum", func(b *builder) *ir.UOp { return matvec(b, 6, 100) }, []string{
		"CLUSTER r0 4", "WARP r0 32; CLUSTER r0 2", "VECTOR r0 4; WARP r0 4; LOCAL s0 3; UPCAST s0 2; CLUSTER r0 8; FMA", "GROUP r0 4; LOCAL s0 3; CLUSTER r0 2",
	}},
	{"clusters of a softmax", func(b *builder) *ir.UOp { return attentionParts(b, 2, 3, 64, 16) }, []string{
		"WARP r0 2; CLUSTER r0 4; UPCAST s2", "WARP r0 2; GROUP r0 4; CLUSTER r0 8; UPCAST s2", "VECTOR s2 4; LOCAL s2 4; GROUP r0 2; CLUSTER r0 4",
	}},
	{"clusters of a norm", func(b *builder) *ir.UOp { return normRow(b, 3, 24) }, []string{
		"LOCAL s1 8; LOCAL z0 8; WARP r0 8; CLUSTER r0 2; WARP r1 8; CLUSTER r1 2", "LOCAL s1 8; LOCAL z0 8; WARP r0 8; WARP r1 8; CLUSTER r1 2",
	}},
	{"cache", func(b *builder) *ir.UOp { return cacheRow(b, 2, 5, 8) }, []string{"LOCAL s1 8", "LOCAL s0 2; VECTOR s1 4; LOCAL s1 2"}},
}

// heldGroups holds four neighbouring points of a group in a thread, in all stages
// alike. The axes: r0 the groups, r2 the halves, r3 and r4 the sums in them, r1 and
// r5 the maxima; z0 the largest, z1 and z2 the integers.
const heldGroups = "TC r3 4; TC r4 4; WARP r0 16; STAGE r0; LOCAL s0 8; VECTOR r1 4; WARP r1 8; LOCAL z0 16; VECTOR r5 4; WARP r5 8; VECTOR z2 4; LOCAL z2 8; LOCAL z1 16"

// heldGroupsOfTokens is that of groupsOfTokens with three tokens, all of a thread.
const heldGroupsOfTokens = "UPCAST s0 3; TC r3 4; TC r4 4; WARP r0 16; STAGE r0; LOCAL s1 8; VECTOR r1 4; WARP r1 8; LOCAL z0 16; VECTOR r5 4; WARP r5 8; VECTOR z2 4; LOCAL z2 8; LOCAL z1 16"

// heldMinima is that of minima.
const heldMinima = "TC r2 4; TC r5 4; WARP r0 16; STAGE r0; LOCAL s0 8; VECTOR r3 4; WARP r3 8; LOCAL z0 16; VECTOR r4 4; WARP r4 8; VECTOR z2 4; LOCAL z2 8; LOCAL z1 16"

// Threads that hold the same elements in all stages load them once, find the
// largest once, sum up integers that they have, and meet once.
func TestStagesShareRegisters(t *testing.T) {
	wantCounts(t, heldGroups, func(b *builder) *ir.UOp { return groups(b, 8, 16, 32) },
		map[string]int{"barrier": 1, "f32x4 = load": 2, "fold max": 1, "fdiv": 1, ":i32 = shufflelane": 2, "i8x4 = cast": 1})
}

// The stages of all tokens that a thread has are filled between two barriers, and sums of integers that depend on the token lie in one.
func TestStagesOfTokensMeetOnce(t *testing.T) {
	wantCounts(t, heldGroupsOfTokens, func(b *builder) *ir.UOp { return groupsOfTokens(b, 3, 8, 16, 32) },
		map[string]int{"barrier": 1, "fold max": 3, "i8x4 = cast": 3, ":i32 = shufflelane": 6})
}

// The sum by which a minimum is multiplied is staged without its scale, which is in
// another stage: together they would be a third stage, behind a barrier.
func TestMinimaMeetOnce(t *testing.T) {
	wantCounts(t, heldMinima, func(b *builder) *ir.UOp { return minima(b, 8, 16, 32) }, map[string]int{"barrier": 1})
}

// wantCounts lowers a kernel by a plan and counts parts of the program's text.
func wantCounts(t *testing.T, text string, build func(b *builder) *ir.UOp, counts map[string]int) {
	t.Helper()
	b := newBuilder()
	chosen, err := plan.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	p, err := kernel.Lower(b.Arena, build(b), chosen, hopper(t))
	if err != nil {
		t.Fatal(err)
	}
	for part, want := range counts {
		if got := strings.Count(show(p), part); got != want {
			t.Errorf("%d of %q, want %d\n%s", got, part, want, show(p))
		}
	}
}

// What is loaded behind the first barrier, such as the weights of a norm, is on its
// way while the row is summed up.
func TestLoadsAheadOfBarrier(t *testing.T) {
	b := newBuilder()
	plan, err := plan.Parse("VECTOR r0 4; WARP r0 32; LOCAL s0 4; STAGE r0; FMA; PRELOAD p2")
	if err != nil {
		t.Fatal(err)
	}
	p, err := kernel.Lower(b.Arena, packedMatvec(b, "Q8_0", 8, 512, true), plan, hopper(t))
	if err != nil {
		t.Fatal(err)
	}
	wait, rest, ok := strings.Cut(show(p), "waitgrid")
	front, _, both := strings.Cut(rest, "barrier")
	if !ok || !both || strings.Count(front, "f32x4 = load") != 2 {
		t.Errorf("ahead of the wait\n%s\nin front of the first barrier\n%s\nwant the loads of the row, once, and of the weights of the norm", wait, front)
	}
}

// gpuScatterCases write elements again and again, one thread each.
var gpuScatterCases = []gpuCase{
	{"scatter rows", func(b *builder) *ir.UOp { return scatterRows(b, 21, 3000, 16) }, []string{
		"SCATTER s0; ROLL s0", "SCATTER s0; LOCAL s1 16; ROLL s0 3", "SCATTER s0; VECTOR s1 4; LOCAL s1 4; LOCAL s0 8",
		"SCATTER s0; VECTOR s1 2; LOCAL s1 8; LOCAL s0 4; ROLL s0 3", "SCATTER s0; LOCAL s1 16; LOCAL s0 3; ROLL s0 2", "SCATTER s0; LOCAL s0 16; ROLL s0 2; ROLL s1", "SCATTER s0; LOCAL s1 16",
	}},
	{"scatter last", func(b *builder) *ir.UOp { return scatterLast(b, 70, 110, 5) }, []string{
		"SCATTER s0; LOCAL s1 5; LOCAL s0 16", "SCATTER s0; LOCAL s0 64; ROLL s0 2; ROLL s1", "SCATTER s0; LOCAL s0 48; ROLL s1",
	}},
	{"scatter counts", func(b *builder) *ir.UOp { return scatterCounts(b, 70, 1100) }, []string{
		"SCATTER s0; LOCAL s0 16", "SCATTER s0; LOCAL s0 32; ROLL s0 2", "SCATTER s0; LOCAL s0 64; ROLL s0 2", "SCATTER s0; ROLL s0",
	}},
}

// Integers are added where they belong by the thread that looks at them, floats in their order.
func TestScatterInAnyOrder(t *testing.T) {
	for name, want := range map[string]struct {
		build func(b *builder) *ir.UOp
		added string
		times int
	}{
		"integers": {func(b *builder) *ir.UOp { return scatterCounts(b, 70, 1100) }, "atomic add", 8},
		"largest":  {func(b *builder) *ir.UOp { return scatterLast(b, 70, 1100, 1) }, "atomic max", 8},
		"floats":   {func(b *builder) *ir.UOp { return scatterRows(b, 70, 1100, 1) }, "atomic or", 16},
	} {
		b := newBuilder()
		p, err := kernel.Lower(b.Arena, want.build(b), plan.Plan{Opts: []plan.Opt{{Kind: plan.SCATTER, Axis: "s0"}, {Kind: plan.LOCAL, Axis: "s0", Amount: 64}}}, hopper(t))
		if err != nil {
			t.Fatal(err)
		}
		if text := show(p); strings.Count(text, want.added) != want.times || strings.Count(text, "atomic") != want.times {
			t.Errorf("%s: want %d times %q in\n%s", name, want.times, want.added, text)
		}
	}
}

func TestGPUPlans(t *testing.T) {
	for _, c := range slices.Concat(gpuCases, gpuScatterCases) {
		t.Run(c.name, func(t *testing.T) {
			for _, text := range c.plans {
				b := newBuilder()
				sink := c.build(b)
				plan, err := plan.Parse(text)
				if err != nil {
					t.Fatal(err)
				}
				p, err := kernel.Lower(b.Arena, sink, plan, hopper(t))
				if err != nil {
					t.Fatalf("%s: %v", text, err)
				}
				if err := program.VerifyGPU(p); err != nil {
					t.Fatalf("%s: %v\n%s", text, err, show(p))
				}
				compare(t, b.Arena, sink, p, plan, map[string]int64{"pos": 4, "T": 5})
			}
		})
	}
}

// Any plan of threads that is accepted keeps every value.
func TestRandomGPUPlans(t *testing.T) {
	kernels := []func(b *builder) *ir.UOp{
		func(b *builder) *ir.UOp { return elementwise(b, 60) },
		func(b *builder) *ir.UOp { return matvec(b, 6, 48) },
		func(b *builder) *ir.UOp { return packedMatvec(b, "Q8_0", 4, 128, true) },
		func(b *builder) *ir.UOp { return packedMatvec(b, "Q4_K", 2, 256, false) },
		func(b *builder) *ir.UOp { return packedMatmul(b, "Q6_K", 5, 4, 256) },
		func(b *builder) *ir.UOp { return attention(b, 2, 6, 16) },
		func(b *builder) *ir.UOp { return attentionParts(b, 2, 3, 4, 16) },
		func(b *builder) *ir.UOp { return tiles(b, 4, 2, 32) },
		func(b *builder) *ir.UOp { return groups(b, 4, 4, 16) },
		func(b *builder) *ir.UOp { return normRow(b, 3, 24) },
		func(b *builder) *ir.UOp { return tokens(b, 7, 32) },
		func(b *builder) *ir.UOp { return cacheRow(b, 2, 5, 8) },
		func(b *builder) *ir.UOp { return scatterRows(b, 37, 130, 8) },
	}
	often := []plan.OptKind{plan.VECTOR, plan.UNROLL, plan.LOCAL, plan.LOCAL, plan.GROUP, plan.WARP, plan.WARP}
	rapid.Check(t, func(rt *rapid.T) {
		b := newBuilder()
		sink := rapid.SampledFrom(kernels).Draw(rt, "kernel")(b)
		var chosen plan.Plan
		axes := plan.Axes(sink)
		for range rapid.IntRange(0, 7).Draw(rt, "opts") {
			chosen.Opts = append(chosen.Opts, drawOpt(rt, often, axes, hopper(rt)))
		}
		chosen = chosen.Extend(sink, drawOptions(rt), hopper(rt))
		if err := kernel.Feasible(b.Arena, sink, chosen, hopper(rt)); err != nil {
			return
		}
		p, err := kernel.Lower(b.Arena, sink, chosen, hopper(rt))
		if err != nil {
			if strings.Contains(err.Error(), "of shared memory") {
				return
			}
			rt.Fatalf("%s: feasible, but: %v", chosen, err)
		}
		if err := program.VerifyGPU(p); err != nil {
			rt.Fatalf("%s: %v\n%s", chosen, err, show(p))
		}
		compare(rt, b.Arena, sink, p, chosen, map[string]int64{"pos": int64(rapid.IntRange(0, 3).Draw(rt, "pos")), "T": int64(rapid.IntRange(1, 7).Draw(rt, "T"))})
	})
}

// Bits of a word whose places differ between threads are tested at places that are known, of the word shifted by what
// differs.
func TestBitsOfLanes(t *testing.T) {
	for _, name := range []string{"Q5_0", "Q5_1"} {
		b := newBuilder()
		text := program.Print(lowerText(t, b, packedMatvec(b, name, 4, 256, false), "VECTOR r0 16; WARP r0 16; FMA", hopper(t)))
		if !strings.Contains(text, "constlanes 1 2 4 8 16 32 64 128 256") {
			t.Errorf("%s: lanes test bits that are not known:\n%s", name, text)
		}
	}
}
