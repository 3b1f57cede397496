package heuristic_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"tgc/heuristic"
	"tgc/ir"
	"tgc/kernel/plan"
	"tgc/packed"
	"tgc/target"
)

func mustTarget(t testing.TB, name string) *target.Desc {
	t.Helper()
	d, err := target.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func mustPlan(t testing.TB, text string) plan.Plan {
	t.Helper()
	p, err := plan.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func choose(t testing.TB, b *builder, sink *ir.UOp, desc *target.Desc, knobs heuristic.Knobs) heuristic.Choice {
	t.Helper()
	c, err := heuristic.Choose(b.Arena, sink, desc, knobs)
	if err != nil {
		t.Fatal(err)
	}
	if err := plan.Legality(sink, c.Plan, desc); err != nil {
		t.Fatal(err)
	}
	return c
}

// family is a kernel with the heuristic that must take it and, at the real size,
// the plan for AVX-512. small is the same kernel at a size that the interpreter
// runs.
type family struct {
	name      string
	heuristic string
	plan      string
	big       func(b *builder) *ir.UOp
	small     func(b *builder) *ir.UOp
}

var families = []family{
	{"Q6_K with norm", "matvec", "PACK r0; PREFETCH p1 8192; FMA",
		func(b *builder) *ir.UOp { return b.matvec("Q6_K", 2048, 2048, variant{norm: true}) },
		func(b *builder) *ir.UOp { return b.matvec("Q6_K", 512, 256, variant{norm: true}) }},
	{"Q4_K", "matvec", "PACK r0; PREFETCH p1 8192; FMA",
		func(b *builder) *ir.UOp { return b.matvec("Q4_K", 2048, 2048, variant{}) },
		func(b *builder) *ir.UOp { return b.matvec("Q4_K", 520, 256, variant{}) }},
	{"Q8_0 with residual", "matvec", "VECTOR r0 32; UNROLL r0 4; PREFETCH p1 8192; FMA",
		func(b *builder) *ir.UOp { return b.matvec("Q8_0", 2048, 2048, variant{residual: true}) },
		func(b *builder) *ir.UOp { return b.matvec("Q8_0", 301, 224, variant{residual: true}) }},
	{"two matrices", "matvec", "PACK r0; PREFETCH p1 8192; PREFETCH p6 8192; FMA",
		func(b *builder) *ir.UOp { return b.matvec("Q6_K", 8192, 2048, variant{norm: true, gate: true}) },
		func(b *builder) *ir.UOp { return b.matvec("Q6_K", 320, 256, variant{norm: true, gate: true}) }},
	{"f16", "matvec", "VECTOR r0 32; UNROLL r0 4; PREFETCH p1 8192; FMA",
		func(b *builder) *ir.UOp { return b.matvec("F16", 2048, 2048, variant{}) },
		func(b *builder) *ir.UOp { return b.matvec("F16", 256, 160, variant{}) }},
	{"bf16", "matvec", "VECTOR r0 32; UNROLL r0 4; PREFETCH p1 8192; FMA",
		func(b *builder) *ir.UOp { return b.matvec("BF16", 2048, 2048, variant{}) },
		func(b *builder) *ir.UOp { return b.matvec("BF16", 300, 128, variant{}) }},
	{"transposed", "matvec", "VECTOR s0 32; UPCAST s0 2; UNROLL r0 4; PREFETCH p1 8192; FMA",
		func(b *builder) *ir.UOp { return b.matvec("F32", 2048, 2048, variant{transposed: true}) },
		func(b *builder) *ir.UOp { return b.matvec("F32", 128, 200, variant{transposed: true}) }},
	{"odd inner extent", "matvec", "VECTOR r0 32; UNROLL r0 4; PREFETCH p1 8192; FMA",
		func(b *builder) *ir.UOp { return b.matvec("F32", 2048, 4*131, variant{}) },
		func(b *builder) *ir.UOp { return b.matvec("F32", 200, 4*33, variant{}) }},
	{"neighbouring pairs", "matvec", "PACK r0; UNROLL z0 2; UPCAST s2 2; PREFETCH p1 8192; FMA",
		func(b *builder) *ir.UOp { return b.pairs("Q6_K", 32, 2048, false) },
		func(b *builder) *ir.UOp { return b.pairs("Q6_K", 6, 256, false) }},
	{"halves", "matvec", "PACK r0; UNROLL z0 2; UPCAST s2 2; PREFETCH p1 8192; FMA",
		func(b *builder) *ir.UOp { return b.pairs("Q6_K", 32, 2048, true) },
		func(b *builder) *ir.UOp { return b.pairs("Q6_K", 6, 256, true) }},
	{"head norm", "matvec", "",
		func(b *builder) *ir.UOp { return b.headNorm("Q8_0", 16, 1024) },
		func(b *builder) *ir.UOp { return b.headNorm("Q8_0", 9, 128) }},
	{"experts", "matvec", "PACK r0; PREFETCH p1 8192; FMA",
		func(b *builder) *ir.UOp { return b.experts("Q4_K", 8, 64, 1024, 2048) },
		func(b *builder) *ir.UOp { return b.experts("Q4_K", 2, 4, 128, 256) }},
	{"staged row", "matvec", "",
		func(b *builder) *ir.UOp { return b.layerNormed("Q8_0", 2304, 768) },
		func(b *builder) *ir.UOp { return b.layerNormed("Q8_0", 500, 160) }},
	{"integers", "matvec", "",
		func(b *builder) *ir.UOp { return b.integers(2048, 2048) },
		func(b *builder) *ir.UOp { return b.integers(256, 256) }},
	{"two tokens", "matmul", "UPCAST s0 2; PACK r0; PREFETCH p1 8192; FMA",
		func(b *builder) *ir.UOp { return b.matmul("Q6_K", 2, 2048, 2048, variant{}) },
		func(b *builder) *ir.UOp { return b.matmul("Q6_K", 2, 320, 256, variant{spread: true}) }},
	{"three tokens", "matmul", "",
		func(b *builder) *ir.UOp { return b.matmul("Q4_K", 3, 2048, 2048, variant{gate: true}) },
		func(b *builder) *ir.UOp { return b.matmul("Q4_K", 3, 600, 256, variant{gate: true}) }},
	{"five tokens", "matmul", "UPCAST s0 5; PACK r0; UPCAST s1 2; PREFETCH p1 8192; FMA",
		func(b *builder) *ir.UOp { return b.matmul("Q6_K", 5, 2048, 2048, variant{}) },
		func(b *builder) *ir.UOp { return b.matmul("Q6_K", 5, 320, 256, variant{}) }},
	{"six tokens", "matmul", "UPCAST s0 6; VECTOR r0 16; UNROLL r0 16; UPCAST s1 2; PREFETCH p1 8192; FMA",
		func(b *builder) *ir.UOp { return b.matmul("Q6_K", 6, 2048, 2048, variant{}) },
		func(b *builder) *ir.UOp { return b.matmul("Q6_K", 6, 320, 256, variant{}) }},
	{"few tokens", "matmul", "",
		func(b *builder) *ir.UOp { return b.matmul("Q6_K", 4, 2048, 2048, variant{}) },
		func(b *builder) *ir.UOp { return b.matmul("Q6_K", 3, 320, 256, variant{}) }},
	{"prompt", "matmul", "",
		func(b *builder) *ir.UOp { return b.matmul("Q6_K", 128, 2048, 2048, variant{}) },
		func(b *builder) *ir.UOp { return b.matmul("Q6_K", 12, 320, 256, variant{spread: true}) }},
	{"prompt, two matrices", "matmul", "",
		func(b *builder) *ir.UOp { return b.matmul("Q4_K", 128, 8192, 2048, variant{gate: true}) },
		func(b *builder) *ir.UOp { return b.matmul("Q8_0", 9, 256, 256, variant{gate: true}) }},
	{"prompt, f16", "matmul", "",
		func(b *builder) *ir.UOp { return b.matmul("F16", 128, 2048, 2048, variant{bias: true}) },
		func(b *builder) *ir.UOp { return b.matmul("F16", 12, 320, 128, variant{bias: true}) }},
	{"dense", "matmul", "STAGE s1; VECTOR s1 64; UPCAST s0 6; ROLL s0; FMA",
		func(b *builder) *ir.UOp { return b.dense("NN", 1024, 1024, 1024, 1024) },
		func(b *builder) *ir.UOp { return b.dense("NN", 50, 128, 130, 128) }},
	{"dense, long sum", "matmul", "STAGE s1; VECTOR s1 32; UPCAST s0 12; ROLL s0; FMA",
		func(b *builder) *ir.UOp { return b.dense("NN", 4096, 4096, 4096, 4096) },
		func(b *builder) *ir.UOp { return b.dense("NN", 37, 160, 600, 32) }},
	{"dense, few columns", "matmul", "STAGE s1; VECTOR s1 64; UPCAST s0 6; ROLL s0 86; FMA",
		func(b *builder) *ir.UOp { return b.dense("NN", 4096, 128, 512, 128) },
		func(b *builder) *ir.UOp { return b.dense("NN", 100, 64, 260, 64) }},
	{"dense, first transposed", "matmul", "STAGE s1; VECTOR s1 64; UPCAST s0 6; ROLL s0; FMA",
		func(b *builder) *ir.UOp { return b.dense("TN", 1024, 1024, 1024, 1024) },
		func(b *builder) *ir.UOp { return b.dense("TN", 50, 128, 130, 128) }},
	{"halves of one matrix", "matmul", "UPCAST s0 4; UPCAST s1 3; ROLL s1 8; ROLL s0; VECTOR r1 16; VECTOR r0 16; FMA",
		func(b *builder) *ir.UOp { return b.halves(35, 498, 512) },
		func(b *builder) *ir.UOp { return b.halves(35, 130, 96) }},
	{"attention", "attention", "",
		func(b *builder) *ir.UOp { return b.attention(8, 4, 4096, 64, 0) },
		func(b *builder) *ir.UOp { return b.attention(2, 4, 12, 32, 0) }},
	{"attention of a prompt", "attention", "",
		func(b *builder) *ir.UOp { return b.attention(8, 4, 4096, 128, 128) },
		func(b *builder) *ir.UOp { return b.attention(2, 2, 12, 16, 3) }},
	{"norm", "reduce", "",
		func(b *builder) *ir.UOp { return b.normed(4096) },
		func(b *builder) *ir.UOp { return b.normed(192) }},
	{"row sums", "reduce", "",
		func(b *builder) *ir.UOp { return b.rowSums(64, 4096) },
		func(b *builder) *ir.UOp { return b.rowSums(7, 96) }},
	{"rounded groups", "reduce", "",
		func(b *builder) *ir.UOp { return b.rounded(512, 64) },
		func(b *builder) *ir.UOp { return b.rounded(3, 5) }},
	{"column sums", "reduce", "",
		func(b *builder) *ir.UOp { return b.columnSums(4096, 64) },
		func(b *builder) *ir.UOp { return b.columnSums(9, 96) }},
	{"columns that lie apart", "reduce", "VECTOR s0 32; FMA",
		func(b *builder) *ir.UOp { return b.columnsApart(64, 512) },
		func(b *builder) *ir.UOp { return b.columnsApart(9, 96) }},
	{"rows with a factor for each group", "reduce", "VECTOR r0 16; UNROLL r0 4; FMA",
		func(b *builder) *ir.UOp { return b.groupFactors(64, 4096) },
		func(b *builder) *ir.UOp { return b.groupFactors(7, 128) }},
	{"rows whose points read apart", "reduce", "VECTOR r0 16; UNROLL r0 4; VECTOR s1 16; ROLL s1; FMA",
		func(b *builder) *ir.UOp { return b.pairsOfRows(64, 4096) },
		func(b *builder) *ir.UOp { return b.pairsOfRows(7, 128) }},
	{"largest logit", "reduce", "",
		func(b *builder) *ir.UOp { return b.argmax(128256) },
		func(b *builder) *ir.UOp { return b.argmax(500) }},
	{"embedding", "elementwise", "",
		func(b *builder) *ir.UOp { return b.embedding("Q6_K", 1, 128256, 2048) },
		func(b *builder) *ir.UOp { return b.embedding("Q6_K", 3, 8, 512) }},
	{"elementwise", "elementwise", "",
		func(b *builder) *ir.UOp { return b.elementwise(1 << 16) },
		func(b *builder) *ir.UOp { return b.elementwise(4 * 37) }},
	{"elementwise, past the caches", "elementwise", "VECTOR s0 32; ROLL s0 32; FMA; STREAM p2",
		func(b *builder) *ir.UOp { return b.elementwise(1 << 24) },
		func(b *builder) *ir.UOp { return b.elementwise(4 * 37) }},
	{"odd elementwise", "elementwise", "VECTOR s0 32; FMA",
		func(b *builder) *ir.UOp { return b.elementwise(1231) },
		func(b *builder) *ir.UOp { return b.elementwise(37) }},
}

var testTargets = []string{"llvm:x86-64-v4", "llvm:x86-64-v3", "llvm:x86-64-v2", "llvm:arm64", "interp"}

// Every family gets its heuristic on every CPU, with the plan that is pinned.
func TestFamilies(t *testing.T) {
	for _, f := range families {
		for _, name := range testTargets {
			b := &builder{Arena: ir.NewArena()}
			c := choose(t, b, f.big(b), mustTarget(t, name), heuristic.Knobs{})
			if got, _, _ := strings.Cut(c.Why, ":"); got != f.heuristic {
				t.Errorf("%s on %s: %s, want %s\n%s", f.name, name, c.Why, f.heuristic, recordLines(c.Records))
			}
			if name == "llvm:x86-64-v4" && f.plan != "" && c.Plan.String() != f.plan {
				t.Errorf("%s: plan\n\t%s\nwant\n\t%s", f.name, c.Plan, f.plan)
			}
		}
	}
}

// A CPU whose registers have more lanes than a window has points sums windows over rows in lanes
// of the results.
func TestSumsOfWindows(t *testing.T) {
	for _, name := range testTargets[:2] {
		b := &builder{Arena: ir.NewArena()}
		if c := choose(t, b, b.windowSums(512, 2048, 5), mustTarget(t, name), heuristic.Knobs{}); !strings.HasPrefix(c.Why, "reduce:") || !strings.HasPrefix(c.Plan.String(), "VECTOR s0") {
			t.Errorf("%s: %s, %s", name, c.Why, c.Plan)
		}
		b = newBuilder()
		small := b.windowSums(9, 96, 5)
		checkPlan(t, b.Arena, small, choose(t, b, small, mustTarget(t, name), heuristic.Knobs{}).Plan, mustTarget(t, name), nil)
	}
}

// A product of a matrix with itself is one, though both operands are one buffer.
func TestProductWithItself(t *testing.T) {
	for _, rows := range []bool{true, false} {
		for _, name := range []string{"llvm:x86-64-v4", "llvm:x86-64-v3", "ptx:sm_90"} {
			b, desc := newBuilder(), mustTarget(t, name)
			c := choose(t, b, b.gram(256, rows), desc, heuristic.Knobs{})
			if !strings.HasPrefix(c.Why, "matmul:") || desc.Kind == target.GPU && !strings.Contains(c.Why, "matrix instructions") {
				t.Errorf("rows %v on %s: %s\n%s", rows, name, c.Why, recordLines(c.Records))
			}
			if desc.Kind != target.GPU {
				b := &builder{Arena: ir.NewArena()}
				small := b.gram(37, rows)
				checkPlan(t, b.Arena, small, choose(t, b, small, desc, heuristic.Knobs{}).Plan, desc, nil)
			}
		}
	}
}

func recordLines(records []heuristic.Record) string {
	var s strings.Builder
	for _, r := range records {
		s.WriteString(r.String() + "\n")
	}
	return s.String()
}

// Every plan computes what the kernel says.
func TestPlansCompute(t *testing.T) {
	for _, f := range families {
		for k, name := range testTargets[:4] {
			if f.heuristic == "matmul" && k%2 == 1 {
				continue // evaluating the kernel takes a second
			}
			t.Run(f.name+"/"+name, func(t *testing.T) {
				b := &builder{Arena: ir.NewArena()}
				sink := f.small(b)
				desc := mustTarget(t, name)
				c := choose(t, b, sink, desc, heuristic.Knobs{})
				if got, _, _ := strings.Cut(c.Why, ":"); got != f.heuristic && f.heuristic != "fallback" {
					t.Errorf("small size: %s, want %s\n%s", c.Why, f.heuristic, recordLines(c.Records))
				}
				positions := []int64{0}
				if f.heuristic == "attention" {
					positions = []int64{0, 8, 9}
				}
				for _, pos := range positions {
					checkPlan(t, b.Arena, sink, c.Plan, desc, map[string]int64{"pos": pos})
				}
			})
		}
	}
}

// What changes form but not meaning changes neither heuristic nor split.
func TestMetamorphic(t *testing.T) {
	desc := mustTarget(t, "llvm:x86-64-v4")
	for _, format := range []string{"Q6_K", "Q8_0", "Q4_0", "IQ4_NL", "F16"} {
		b := &builder{Arena: ir.NewArena()}
		want := choose(t, b, b.matvec(format, 2048, 2048, variant{}), desc, heuristic.Knobs{})
		for bits := 1; bits < 64; bits++ {
			v := variant{cast: bits&1 != 0, swap: bits&2 != 0, norm: bits&4 != 0, bias: bits&8 != 0, residual: bits&16 != 0, spread: bits&32 != 0}
			b := &builder{Arena: ir.NewArena()}
			got := choose(t, b, b.matvec(format, 2048, 2048, v), desc, heuristic.Knobs{})
			// A folded norm brings STAGE of its product and, where its sum has a range
			// of its own, lanes for that.
			kept := slices.DeleteFunc(slices.Clone(got.Plan.Opts), func(o plan.Opt) bool {
				return o.Kind == plan.STAGE
			})
			if !slices.Equal(kept, want.Plan.Opts) {
				t.Errorf("%s %+v: plan\n\t%s\nwant\n\t%s", format, v, got.Plan, want.Plan)
			}
		}
	}
	for _, v := range []variant{{cast: true}, {swap: true}, {bias: true}, {spread: true}, {cast: true, swap: true, bias: true}} {
		b := &builder{Arena: ir.NewArena()}
		want := choose(t, b, b.matmul("Q6_K", 128, 2048, 2048, variant{}), desc, heuristic.Knobs{})
		b = newBuilder()
		got := choose(t, b, b.matmul("Q6_K", 128, 2048, 2048, v), desc, heuristic.Knobs{})
		if !slices.Equal(got.Plan.Opts, want.Plan.Opts) {
			t.Errorf("matmul %+v: plan\n\t%s\nwant\n\t%s", v, got.Plan, want.Plan)
		}
	}
}

// Permuting the axes of the activations and of the output changes nothing.
func TestPermutedAxes(t *testing.T) {
	desc := mustTarget(t, "llvm:x86-64-v4")
	plan := func(permuted bool) heuristic.Choice {
		b := &builder{Arena: ir.NewArena()}
		x, out := b.param(0, ir.F32, 2048), b.param(2, ir.F32, 32, 64)
		h, e, r := b.rng(32), b.rng(64), b.rng(2048)
		row := b.Add(b.Mul(h, b.Index(64)), e)
		at, loops := list(h, e), list(h, e)
		if permuted {
			out = b.param(2, ir.F32, 64, 32)
			at, loops = list(e, h), list(h, e)
		}
		value := b.sum(b.Mul(b.Load(x, r), b.weight(1, "Q6_K", 2048, 2048)(row, r)), r)
		return choose(t, b, b.sink(b.Store(out, value, at, loops)), desc, heuristic.Knobs{})
	}
	a, b := plan(false), plan(true)
	if a.Plan.String() != b.Plan.String() || a.Why != b.Why {
		t.Errorf("got %s\n%s\nand %s\n%s", a.Why, a.Plan, b.Why, b.Plan)
	}
}

func TestKnobs(t *testing.T) {
	desc := mustTarget(t, "llvm:x86-64-v4")
	for _, tt := range []struct {
		knobs heuristic.Knobs
		why   string
		plan  string
	}{
		{heuristic.Knobs{NoMatvec: true}, "reduce", "VECTOR r0 16; UNROLL r0 4; FMA"},
		{heuristic.Knobs{RowsPerThread: 4}, "matvec", "PACK r0; UPCAST s0 4; PREFETCH p1 8192; FMA"},
		{heuristic.Knobs{ThreadsPerRow: 8}, "matvec", "VECTOR r0 8; UNROLL r0 32; PREFETCH p1 8192; FMA"},
		{heuristic.Knobs{BlockSize: 8}, "matvec", "PACK r0; ROLL s0 8; PREFETCH p1 8192; FMA"},
		{heuristic.Knobs{BlockSize: 8, RowsPerThread: 2}, "matvec", "PACK r0; UPCAST s0 2; ROLL s0 8; PREFETCH p1 8192; FMA"},
	} {
		b := &builder{Arena: ir.NewArena()}
		c := choose(t, b, b.matvec("Q6_K", 2048, 2048, variant{}), desc, tt.knobs)
		if got, _, _ := strings.Cut(c.Why, ":"); got != tt.why || c.Plan.String() != tt.plan {
			t.Errorf("%+v: %s\n\t%s\nwant %s\n\t%s", tt.knobs, c.Why, c.Plan, tt.why, tt.plan)
		}
		if tt.knobs.NoMatvec && !slices.ContainsFunc(c.Records, func(r heuristic.Record) bool {
			return r.Heuristic == "matvec" && !r.Applied && r.Reason == "switched-off"
		}) {
			t.Errorf("MV=0: records %v", c.Records)
		}
		b = newBuilder()
		sink := b.matvec("Q6_K", 320, 256, variant{})
		c = choose(t, b, sink, desc, tt.knobs)
		checkPlan(t, b.Arena, sink, c.Plan, desc, nil)
	}
}

// GPUs: the knobs are threads, and every plan is legal.
func TestGPUPlans(t *testing.T) {
	desc := mustTarget(t, "ptx:sm_90a")
	for _, f := range families {
		b := &builder{Arena: ir.NewArena()}
		c := choose(t, b, f.big(b), desc, heuristic.Knobs{})
		if got, _, _ := strings.Cut(c.Why, ":"); got != f.heuristic {
			t.Errorf("%s: %s, want %s\n%s", f.name, c.Why, f.heuristic, recordLines(c.Records))
		}
	}
	// A thread holds 8 of 2048 values in front of the rows, in both stages.
	b := &builder{Arena: ir.NewArena()}
	c := choose(t, b, b.integers(2048, 2048), desc, heuristic.Knobs{BlockSize: 8, ThreadsPerRow: 32, RowsPerThread: 1})
	if want := "VECTOR r1 8; WARP r1 4; LOCAL z0 64; VECTOR r3 8; WARP r3 4; VECTOR z2 8; LOCAL z2 4; LOCAL z1 64"; !strings.Contains(c.Plan.String(), want) {
		t.Errorf("plan %s, want %s in it", c.Plan, want)
	}
	b = newBuilder() // threads hold the same elements for the largest and for the quotients
	c = choose(t, b, b.rounded(512, 64), desc, heuristic.Knobs{})
	if want := "VECTOR r0 4; WARP r0 8; VECTOR s2 4; LOCAL s2 8; LOCAL s1 32; FMA"; c.Plan.String() != want {
		t.Errorf("plan %s, want %s", c.Plan, want)
	}
	b = newBuilder()
	c = choose(t, b, b.matvec("Q6_K", 2048, 2048, variant{}), desc, heuristic.Knobs{BlockSize: 8, ThreadsPerRow: 16, RowsPerThread: 2})
	if want := "VECTOR r0 4; WARP r0 16; UNROLL r0 8; UPCAST s0 2; LOCAL s0 8; FMA; PRELOAD p1"; c.Plan.String() != want {
		t.Errorf("plan %s, want %s", c.Plan, want)
	}
	b = newBuilder() // more threads than a warp has: several warps share a row
	c = choose(t, b, b.matvec("Q6_K", 2048, 2048, variant{}), desc, heuristic.Knobs{ThreadsPerRow: 64})
	if want := "WARP r0 32; GROUP r0 2;"; !strings.Contains(c.Plan.String(), want) {
		t.Errorf("plan %s, want %s in it", c.Plan, want)
	}
}

// A reduce of any length is shared among all threads of its block: points past
// the end count as the identity.
func TestReducesOfAnyLength(t *testing.T) {
	desc := mustTarget(t, "ptx:sm_90a")
	for _, c := range []struct {
		length int64
		want   string
	}{
		{96, "WARP r0 32; UNROLL r0 3; FMA"}, {1009, "WARP r0 32; GROUP r0 8"}, {4099, "WARP r0 32; GROUP r0 8"}, {50257, "WARP r0 32; GROUP r0 32; UNROLL"},
	} {
		for name, build := range map[string]func(*builder, int64, int64) *ir.UOp{"sums": (*builder).rowSums, "maxima": (*builder).rowMaxima} {
			b := &builder{Arena: ir.NewArena()}
			sink := build(b, 1, c.length)
			plan := choose(t, b, sink, desc, heuristic.Knobs{}).Plan
			if !strings.Contains(plan.String(), c.want) {
				t.Errorf("%s of %d: plan %s, want %s in it", name, c.length, plan, c.want)
			}
			checkPlan(t, b.Arena, sink, plan, desc, nil)
		}
	}
}

// A thread of a GPU takes a few short rows, or points of odd rows, where they fill the device all the same.
func TestPointsOfAThread(t *testing.T) {
	desc := mustTarget(t, "ptx:sm_90a")
	odd := func(b *builder, rows int64) *ir.UOp {
		r, c := b.rng(rows), b.rng(97)
		x := b.Load(b.param(0, ir.F32, rows, 97), r, c)
		return b.sink(b.Store(b.param(1, ir.F32, rows, 97), b.Mul(x, x), list(r, c), list(r, c)))
	}
	for _, c := range []struct {
		name  string
		build func(b *builder) *ir.UOp
		want  string
	}{
		{"rows of three", func(b *builder) *ir.UOp { return b.rowSums(1000000, 3) }, "LOCAL s0 125; UPCAST s0 4; UNROLL r0 3; FMA"},
		{"few rows of three", func(b *builder) *ir.UOp { return b.rowSums(10000, 3) }, "LOCAL s0 125; UNROLL r0 3; FMA"},
		{"odd rows", func(b *builder) *ir.UOp { return odd(b, 6208) }, "LOCAL s1 97; UPCAST s0 4"},
		{"few odd rows", func(b *builder) *ir.UOp { return odd(b, 100) }, "LOCAL s1 97"},
	} {
		b := &builder{Arena: ir.NewArena()}
		if got := choose(t, b, c.build(b), desc, heuristic.Knobs{}).Plan.String(); got != c.want {
			t.Errorf("%s: plan %s, want %s", c.name, got, c.want)
		}
	}
}

// Matrices of a few KB are multiplied by matrix instructions of a GPU where each element is used often; no tile of a thread is.
func TestSmallProducts(t *testing.T) {
	desc := mustTarget(t, "ptx:sm_90a")
	for n, want := range map[int64]string{96: "matmul", 100: "matmul", 120: "matmul", 16: "reduce"} {
		b := &builder{Arena: ir.NewArena()}
		i, j, r := b.rng(n), b.rng(n), b.rng(n)
		value := b.sum(b.Mul(b.Load(b.param(0, ir.F32, n, n), i, r), b.Load(b.param(1, ir.F32, n, n), j, r)), r)
		sink := b.sink(b.Store(b.param(2, ir.F32, n, n), value, list(i, j), list(i, j)))
		c := choose(t, b, sink, desc, heuristic.Knobs{})
		if got, _, _ := strings.Cut(c.Why, ":"); got != want || strings.Contains(c.Plan.String(), "MMA") != (want == "matmul") {
			t.Errorf("%d: %s\n%s, want %s", n, c.Why, c.Plan, want)
		}
	}
}

// Few lanes share a sum of products along which nothing lies side by side.
func TestLanesOfSumsApart(t *testing.T) {
	desc := mustTarget(t, "ptx:sm_90a")
	for _, side := range []bool{true, false} {
		b := &builder{Arena: ir.NewArena()}
		i, j, r := b.rng(64), b.rng(512), b.rng(64)
		x, y := b.param(0, ir.F32, 64, 64), b.param(1, ir.F32, 64, 512)
		at := func(p, row *ir.UOp) *ir.UOp {
			if side && p == x {
				return b.Load(p, row, r)
			}
			return b.Load(p, r, row)
		}
		difference := b.Sub(at(x, i), at(y, j))
		sink := b.sink(b.Store(b.param(2, ir.F32, 64, 512), b.sum(b.Mul(difference, difference), r), list(i, j), list(i, j)))
		want := "WARP r0 2;"
		if side {
			want = "WARP r0 8;"
		}
		if c := choose(t, b, sink, desc, heuristic.Knobs{}); !strings.Contains(c.Plan.String(), want) {
			t.Errorf("side by side %t: %s\n%s, want %s in it", side, c.Why, c.Plan, want)
		}
	}
}

// The text says what and how much.
func TestWhy(t *testing.T) {
	b := &builder{Arena: ir.NewArena()}
	c := choose(t, b, b.matvec("Q6_K", 8192, 2048, variant{norm: true, gate: true}), mustTarget(t, "llvm:x86-64-v4"), heuristic.Knobs{})
	want := "matvec: W p1 [8192 x 2048] Q6_K 13.8 MB, p6 [8192 x 2048] Q6_K 13.8 MB streamed once, x 16.4 KB reused; lanes are words of packed bytes"
	if c.Why != want {
		t.Errorf("got  %s\nwant %s", c.Why, want)
	}
	r := c.Records[len(c.Records)-1]
	if !r.Applied || r.Reason != "streams-weight" || r.Axis != "p1" || r.Value != 8192*2048/256*210 {
		t.Errorf("record %+v", r)
	}
}

// Declined heuristics say why.
func TestReasons(t *testing.T) {
	desc := mustTarget(t, "llvm:x86-64-v4")
	for _, tt := range []struct {
		build  func(b *builder) *ir.UOp
		reason map[string]string
	}{
		{func(b *builder) *ir.UOp { return b.matvec("F32", 64, 64, variant{}) }, map[string]string{"matvec": "small-operand", "matmul": "small-operand"}},
		{func(b *builder) *ir.UOp { return b.matvec("Q4_0", 128, 896, variant{}) }, map[string]string{"matvec": "streams-weight"}}, // blocks of any number
		{func(b *builder) *ir.UOp { return b.rowSums(64, 4096) }, map[string]string{"matvec": "no-partner", "attention": "no-private-range"}},
		{func(b *builder) *ir.UOp { return b.normed(1 << 16) }, map[string]string{"matvec": "one-row"}},
		{func(b *builder) *ir.UOp { return b.elementwise(1 << 16) }, map[string]string{"matvec": "no-sum", "reduce": "no-reduce", "elementwise": "contiguous"}},
		{func(b *builder) *ir.UOp { return b.matmul("Q6_K", 16, 512, 512, variant{}) }, map[string]string{"matvec": "reused", "matmul": "reuses-weight"}},
		{func(b *builder) *ir.UOp { return b.attention(8, 4, 4096, 64, 0) }, map[string]string{"matvec": "no-sum", "attention": "private-range"}},
	} {
		b := &builder{Arena: ir.NewArena()}
		c := choose(t, b, tt.build(b), desc, heuristic.Knobs{})
		for name, reason := range tt.reason {
			i := slices.IndexFunc(c.Records, func(r heuristic.Record) bool { return r.Heuristic == name })
			if i < 0 || c.Records[i].Reason != reason {
				t.Errorf("%s: want %s: %s in\n%s", c.Why, name, reason, recordLines(c.Records))
			}
		}
	}
}

// Choosing is a function of the kernel: the same in every run and arena.
func TestDeterminism(t *testing.T) {
	for _, f := range families {
		first := ""
		for range 5 {
			b := &builder{Arena: ir.NewArena()}
			b.rng(3) // other ids
			text := fmt.Sprint(choose(t, b, f.big(b), mustTarget(t, "llvm:x86-64-v4"), heuristic.Knobs{}))
			if first == "" {
				first = text
			}
			if text != first {
				t.Errorf("%s: %s\nand %s", f.name, first, text)
			}
		}
	}
}

func TestNotASink(t *testing.T) {
	a := ir.NewArena()
	if _, err := heuristic.Choose(a, a.Index(1), mustTarget(t, "interp"), heuristic.Knobs{}); err == nil {
		t.Error("no error")
	}
}

// A plan that is refused makes room for the next cheapest of a list with prices, then for the next heuristic's, at last for the empty
// one, and knobs that made it are the first to go.
func TestRefusedPlans(t *testing.T) {
	for _, tt := range []struct {
		target string
		knobs  heuristic.Knobs
		want   []string
	}{
		{"llvm:x86-64-v4", heuristic.Knobs{}, []string{"matvec", "reduce", "empty"}},
		{"ptx:sm_90", heuristic.Knobs{}, []string{"matvec", "reduce", "fallback", "empty"}},
		{"ptx:sm_90", heuristic.Knobs{ThreadsPerRow: 64}, []string{"matvec", "matvec without knobs", "reduce", "reduce without knobs", "fallback", "fallback without knobs", "empty"}},
	} {
		b := &builder{Arena: ir.NewArena()}
		sink, desc := b.matvec("F32", 2048, 2048, variant{}), mustTarget(t, tt.target)
		c := choose(t, b, sink, desc, tt.knobs)
		var got []string
		seen, priced := make(map[string]bool), 0
		for {
			name, _, _ := strings.Cut(c.Why, ":")
			if strings.Contains(c.Why, "not as the knobs say: ") {
				name += " without knobs"
			}
			if got = append(got, name); len(c.Plan.Opts) == 0 {
				break
			}
			if c.Prices != nil {
				if priced++; seen[c.Plan.String()] {
					t.Errorf("%s: %s was refused before", tt.target, c.Plan)
				}
				seen[c.Plan.String()] = true
			}
			var err error
			if c, err = heuristic.ChooseNext(b.Arena, sink, desc, tt.knobs, c, errors.New("too long")); err != nil {
				t.Fatal(err)
			}
		}
		if got = slices.Compact(got); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.target, got, tt.want)
		}
		if gpu := strings.HasPrefix(tt.target, "ptx"); gpu != (priced > 1) {
			t.Errorf("%s: %d plans of a list with prices", tt.target, priced)
		}
	}
	if _, err := heuristic.ChooseNext(nil, nil, nil, heuristic.Knobs{}, heuristic.Choice{}, errors.New("unknown")); err == nil {
		t.Error("the next of no choice")
	}
}

// Interleaved rows are one stream, which some cores follow faster where nothing is asked for; weights in the file's
// order are asked for everywhere.
func TestRecordsAskedFor(t *testing.T) {
	for _, c := range []struct {
		cpu     string
		records int
		asks    bool
	}{{"llvm:znver4", packed.MostRecordBits, false}, {"llvm:znver5", packed.MostRecordBits, true}, {"llvm:znver4", 0, true}} {
		for _, format := range []string{"Q4_0", "Q6_K"} {
			b := newBuilder()
			chosen := choose(t, b, b.matvec(format, 2048, 2048, variant{}), mustTarget(t, c.cpu).WithRecords(c.records), heuristic.Knobs{})
			if asks := strings.Contains(chosen.Plan.String(), "PREFETCH"); asks != c.asks {
				t.Errorf("%s, records of %d bits, %s: plan %s", c.cpu, c.records, format, chosen.Plan)
			}
		}
	}
}

// Rows of plain numbers are one stream, too; where activations fill the first cache, several rows share what is read of them.
func TestPlainRows(t *testing.T) {
	for _, c := range []struct {
		cpu, want string
		terms     int64
		pairs     bool
	}{
		{cpu: "llvm:znver4", terms: 2048, want: "VECTOR r0 32; UNROLL r0 4; FMA"},
		{cpu: "llvm:znver5", terms: 2048, want: "VECTOR r0 32; UNROLL r0 4; PREFETCH p1 8192; ONCE p1; FMA"},
		{cpu: "llvm:znver4", terms: 8192, want: "VECTOR r0 16; UPCAST s0 8; FMA"},
		{cpu: "llvm:haswell", terms: 8192, want: "VECTOR r0 8; UNROLL r0 2; UPCAST s0 8; PREFETCH p1 8192; FMA"},
		{cpu: "llvm:znver4", terms: 2048, pairs: true, want: "VECTOR r0 32; UNROLL r0 4; UPCAST s2 2; FMA"},
		{cpu: "llvm:znver4", terms: 8192, pairs: true, want: "VECTOR r0 16; UPCAST s1 8; UNROLL z0 2; UPCAST s2 2; FMA"},
		{cpu: "llvm:znver5", terms: 2048, pairs: true, want: "VECTOR r0 32; UNROLL r0 4; UNROLL z0 2; UPCAST s2 2; PREFETCH p1 8192; ONCE p1; FMA"},
	} {
		b := newBuilder()
		sink := b.matvec("BF16", 2048, c.terms, variant{})
		if c.pairs {
			b = newBuilder()
			sink = b.pairs("BF16", 32, c.terms, false)
		}
		if got := choose(t, b, sink, mustTarget(t, c.cpu), heuristic.Knobs{}).Plan.String(); got != c.want {
			t.Errorf("%s, sums of %d terms: %q, want %q", c.cpu, c.terms, got, c.want)
		}
	}
}

// Lanes of interleaved rows are a whole record's, or one register of it where the sums of several uses would fill half of the registers.
func TestRecordLanes(t *testing.T) {
	for _, c := range []struct {
		cpu  string
		uses int64
		want string
	}{
		{cpu: "llvm:haswell", uses: 2, want: "lanes 16 interleaved rows"},
		{cpu: "llvm:haswell", uses: 4, want: "lanes 8 interleaved rows"},
		{cpu: "llvm:sapphirerapids", uses: 4, want: "lanes 16 interleaved rows"},
	} {
		b := newBuilder()
		chosen := choose(t, b, b.matmul("Q4_0", c.uses, 2048, 2048, variant{}), mustTarget(t, c.cpu).WithRecords(packed.MostRecordBits), heuristic.Knobs{})
		if !strings.Contains(chosen.Why+recordLines(chosen.Records), c.want) {
			t.Errorf("%s, %d uses: %s, want %s\n%s", c.cpu, c.uses, chosen.Why, c.want, recordLines(chosen.Records))
		}
	}
}

// Threads that make the points of a norm go into those that fold its row, whatever its length: rows of 1,152 had blocks of 768 threads,
// three times as many as fold it, and of 960 a block for each point.
func TestThreadsOfNormsFit(t *testing.T) {
	desc := mustTarget(t, "ptx:sm_90")
	for k := int64(512); k <= 4096; k += 32 {
		b := newBuilder()
		c := choose(t, b, b.normed(k), desc, heuristic.Knobs{})
		at := slices.IndexFunc(c.Plan.Opts, func(o plan.Opt) bool { return o.Kind == plan.LOCAL && o.Axis == "s0" })
		if at < 0 || c.Plan.Opts[at].Amount < int64(desc.WarpSize) || 256%c.Plan.Opts[at].Amount != 0 {
			t.Errorf("rows of %d: %s", k, c.Plan)
		}
	}
	for _, k := range []int64{96, 720} {
		b := newBuilder()
		sink := b.normed(k)
		checkPlan(t, b.Arena, sink, choose(t, b, sink, desc, heuristic.Knobs{}).Plan, desc, nil)
	}
}

// Threads store of a row what they folded of it, all at once, where it lies in whole loads and is short enough to be in flight; what is
// longer or ragged takes turns.
func TestNormsAreStoredAsTheyAreFolded(t *testing.T) {
	desc := mustTarget(t, "ptx:sm_90")
	for k, want := range map[int64]string{
		1024: "VECTOR s1 4; LOCAL s1 256; FMA",
		2048: "VECTOR s1 4; LOCAL s1 256; UPCAST s1 2; FMA",
		2560: "VECTOR s1 4; LOCAL s1 128; UPCAST s1 5; FMA",
		2049: "ROLL s1",
		9216: "ROLL s1",
	} {
		b := newBuilder()
		if c := choose(t, b, b.normedRows(8, k), desc, heuristic.Knobs{}); !strings.Contains(c.Plan.String(), want) {
			t.Errorf("rows of %d: plan %s, want %s", k, c.Plan, want)
		}
	}
	for _, k := range []int64{512, 1280} {
		b := newBuilder()
		sink := b.normedRows(8, k)
		checkPlan(t, b.Arena, sink, choose(t, b, sink, desc, heuristic.Knobs{}).Plan, desc, nil)
	}
}
