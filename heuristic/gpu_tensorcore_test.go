package heuristic_test

import (
	"strings"
	"testing"

	"tgc/heuristic"
	"tgc/ir"
	"tgc/ir/program"
	"tgc/kernel"
	"tgc/kernel/plan"
)

// Prompts of tiles of 8 tokens and 16 rows run on matrix instructions, from
// sm_80 on and unless the knob says no; the plans give the kernel's values.
func TestMatrixTiles(t *testing.T) {
	for _, tt := range []struct {
		name   string
		target string
		knobs  heuristic.Knobs
		build  func(b *builder) *ir.UOp
		plan   string // empty: no matrix instructions
	}{
		{"packed", "ptx:sm_90", heuristic.Knobs{}, func(b *builder) *ir.UOp { return b.matmul("Q6_K", 64, 2048, 512, variant{}) },
			"MMA r0 32; SWAP s0 1; GROUP r0 8; UPCAST s0 2; LOCAL s0 4; UPCAST s0 4; LOCAL s1 8; UPCAST s1 2; LOCAL s1 2; FMA; PRELOAD p1"},
		{"few tokens", "ptx:sm_90", heuristic.Knobs{}, func(b *builder) *ir.UOp { return b.matmul("Q6_K", 32, 2048, 512, variant{}) },
			"MMA r0 32; UNROLL r0 2; SWAP s0 1; GROUP r0 8; UPCAST s0 2; LOCAL s0 4; UPCAST s0 2; LOCAL s1 8; UPCAST s1 2; LOCAL s1 2; FMA; PRELOAD p1"},
		{"few tokens for each of many matrices", "ptx:sm_90", heuristic.Knobs{}, func(b *builder) *ir.UOp { return b.grouped("Q6_K", 94, 32, 1024, 512) },
			"MMA r0 32; SWAP s1 2; UPCAST s1 2; LOCAL s1 4; UPCAST s1 4; LOCAL s2 8; UPCAST s2 2; UPCAST s2 2; FMA; PRELOAD p1"},
		{"three tiles of tokens", "ptx:sm_90", heuristic.Knobs{}, func(b *builder) *ir.UOp { return b.matmul("Q6_K", 20, 2048, 512, variant{}) },
			"MMA r0 32; SWAP s0 1; GROUP r0 16; UPCAST s0 2; LOCAL s0 4; UPCAST s0 3; LOCAL s1 8; UPCAST s1 2; FMA; PRELOAD p1"},
		{"no three tiles with panels", "ptx:sm_87", heuristic.Knobs{}, func(b *builder) *ir.UOp { return b.matmul("Q2_K", 77, 2048, 2048, variant{}) },
			"MMA r0 32; SWAP s0 1; UPCAST s0 2; LOCAL s0 4; UPCAST s0 4; LOCAL s1 8; UPCAST s1 2; UPCAST s1 2; LOCAL s1 4; FMA; PRELOAD p1"},
		{"bf16", "ptx:sm_87", heuristic.Knobs{}, func(b *builder) *ir.UOp { return b.matmul("BF16", 128, 4096, 256, variant{}) },
			"MMA r0; UNROLL r0 8; SWAP s0 1; UPCAST s0 2; LOCAL s0 4; UPCAST s0 4; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; UPCAST s1 4; LOCAL s1 2; STAGE s0; STAGE s1; FMA"},
		{"switched off", "ptx:sm_90", heuristic.Knobs{NoMatrices: true}, func(b *builder) *ir.UOp { return b.matmul("Q6_K", 64, 2048, 512, variant{}) }, ""},
		{"before sm_80", "ptx:sm_75", heuristic.Knobs{}, func(b *builder) *ir.UOp { return b.matmul("Q6_K", 64, 2048, 512, variant{}) }, ""},
		{"odd tokens", "ptx:sm_90", heuristic.Knobs{}, func(b *builder) *ir.UOp { return b.matmul("Q6_K", 12, 2048, 512, variant{}) },
			"MMA r0 32; SWAP s0 1; GROUP r0 16; UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; FMA; PRELOAD p1"},
		{"odd rows", "ptx:sm_90", heuristic.Knobs{}, func(b *builder) *ir.UOp { return b.matmul("Q6_K", 64, 2056, 512, variant{}) },
			"MMA r0 32; SWAP s0 1; GROUP r0 8; UPCAST s0 2; LOCAL s0 4; UPCAST s0 4; LOCAL s1 8; UPCAST s1 2; LOCAL s1 2; FMA; PRELOAD p1"},
		{"fewer tokens than a tile", "ptx:sm_90", heuristic.Knobs{}, func(b *builder) *ir.UOp { return b.matmul("Q6_K", 6, 2048, 512, variant{}) },
			"MMA r0 32; SWAP s0 1; GROUP r0 16; UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; FMA; PRELOAD p1"},
		{"columns of heads", "ptx:sm_90", heuristic.Knobs{}, func(b *builder) *ir.UOp { return b.heads(8, 896, 2, 7, 64) },
			"MMA r2 32; UNROLL r2 2; UNROLL r0 2; SWAP s0 1; GROUP r1 7; UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; FMA; PRELOAD p1"},
	} {
		b := newBuilder()
		c := choose(t, b, tt.build(b), mustTarget(t, tt.target), tt.knobs)
		switch {
		case tt.plan == "" && strings.Contains(c.Plan.String(), "MMA"):
			t.Errorf("%s: %s", tt.name, c.Plan)
		case tt.plan != "" && c.Plan.String() != tt.plan:
			t.Errorf("%s: plan %s\nwant %s", tt.name, c.Plan, tt.plan)
		}
	}
	b := newBuilder()
	sink, desc := b.grouped("Q8_0", 2, 8, 96, 256), mustTarget(t, "ptx:sm_90")
	c := choose(t, b, sink, desc, heuristic.Knobs{})
	if !strings.Contains(c.Plan.String(), "MMA") {
		t.Errorf("groups: %s", c.Plan)
	}
	checkPlan(t, b.Arena, sink, c.Plan, desc, nil)
	for _, tt := range []struct {
		format          string
		tokens, rows, k int64
	}{ // as few rows as make a weight, and a few more
		{"Q6_K", 8, 320, 256}, {"Q4_K", 8, 512, 256}, {"BF16", 8, 128, 256}, {"F32", 9, 64, 256},
		{"Q6_K", 13, 325, 256}, {"Q4_K", 9, 513, 256}, {"BF16", 19, 131, 255}, {"F32", 67, 75, 253}, {"F16", 11, 127, 333},
	} {
		format, desc := tt.format, mustTarget(t, "ptx:sm_90")
		b := newBuilder()
		sink := b.matmul(format, tt.tokens, tt.rows, tt.k, variant{gate: format == "Q4_K"})
		c := choose(t, b, sink, desc, heuristic.Knobs{})
		if !strings.Contains(c.Plan.String(), "MMA") {
			t.Errorf("%s: %s", format, c.Plan)
		}
		checkPlan(t, b.Arena, sink, c.Plan, desc, nil)
	}
}

// Rows of f32 are three instructions of matrices for each tile: a few of them keep more of the machine busy as rows that each
// thread streams past up to a tile of uses. What is a tile's operand as it is stored is not.
func TestRowsOfWideFloats(t *testing.T) {
	desc := mustTarget(t, "ptx:sm_90")
	for _, tt := range []struct {
		format          string
		tokens, rows, k int64
		tiles           bool
	}{
		{"F32", 8, 64, 256, false}, {"F32", 7, 32, 2880, false}, {"F32", 9, 32, 2880, true},
		{"BF16", 8, 64, 2880, true}, {"F16", 6, 64, 2880, true}, {"Q8_0", 8, 64, 2880, true},
	} {
		b := newBuilder()
		sink := b.matmul(tt.format, tt.tokens, tt.rows, tt.k, variant{})
		c := choose(t, b, sink, desc, heuristic.Knobs{})
		if strings.Contains(c.Plan.String(), "MMA") != tt.tiles {
			t.Errorf("%d rows of %d %s for %d tokens: %s, want tiles: %t", tt.rows, tt.k, tt.format, tt.tokens, c.Plan, tt.tiles)
		}
		checkPlan(t, b.Arena, sink, c.Plan, desc, nil)
	}
}

// heads is a product whose columns are gathered from groups of heads: a sum over three ranges.
func (b *builder) heads(tokens, rows, groups, heads, size int64) *ir.UOp {
	x, w, out := b.param(0, ir.F32, tokens, groups, heads, size), b.param(1, ir.BF16, rows, groups, heads, size), b.param(2, ir.F32, tokens, rows)
	t, n, g, h, j := b.rng(tokens), b.rng(rows), b.rng(groups), b.rng(heads), b.rng(size)
	product := b.Mul(b.Load(x, t, g, h, j), b.Cast(b.Load(w, n, g, h, j), ir.F32))
	return b.sink(b.Store(out, b.sum(product, g, h, j), []*ir.UOp{t, n}, []*ir.UOp{t, n}))
}

// byteGroups is a product of groups of bytes with a scale for each on both sides, whose activations are one byte, or two digits of which
// each has its own sum of integers.
func (b *builder) byteGroups(tokens, rows, groups, size int64, digits int) *ir.UOp {
	w, rowScale, tokenScale, out := b.param(0, ir.I8, rows, groups, size), b.param(1, ir.F32, rows, groups), b.param(2, ir.F32, tokens, groups), b.param(3, ir.F32, tokens, rows)
	t, n, g, j := b.rng(tokens), b.rng(rows), b.rng(groups), b.rng(size)
	value := b.f(0)
	for d := range digits {
		x := b.Load(b.param(4+d, ir.I8, tokens, groups, size), t, g, j)
		sum := b.Cast(b.sum(b.Mul(b.Cast(x, ir.I32), b.Cast(b.Load(w, n, g, j), ir.I32)), j), ir.F32)
		value = b.Add(b.Mul(value, b.f(256)), sum)
	}
	value = b.Mul(b.Mul(b.Load(tokenScale, t, g), b.Load(rowScale, n, g)), value)
	return b.sink(b.Store(out, b.sum(value, g), list(t, n), list(t, n)))
}

// Three tiles of tokens side by side, the last with five columns that nothing stores.
func TestThreeTilesOfTokens(t *testing.T) {
	desc := mustTarget(t, "ptx:sm_90")
	for _, tokens := range []int64{19, 24, 43} {
		b := newBuilder()
		sink := b.matmul("Q4_K", tokens, 37, 512, variant{})
		checkPlan(t, b.Arena, sink, mustPlan(t, "MMA r0 32; SWAP s0 1; GROUP r0 2; UPCAST s0 2; LOCAL s0 4; UPCAST s0 3; LOCAL s1 8; UPCAST s1 2; FMA; PRELOAD p1"), desc, nil)
	}
}

// Sums of integers of a group that a loop over its points holds, one of each digit and copy, fit in registers: what is left of the points is
// a copy first, and where it is too long for one, or there are several copies around it, a warp has fewer tiles.
func TestSumsOfGroupsFit(t *testing.T) {
	desc := mustTarget(t, "ptx:sm_90")
	for _, c := range []struct {
		size, tokens int64
		digits       int
		plan         string
	}{
		{48, 16, 1, "MMA r1; UNROLL r1 3; UNROLL r0 2; SWAP s0 1; GROUP r0 7; UPCAST s0 2; LOCAL s0 4; UPCAST s0 2; LOCAL s1 8; UPCAST s1 2; UPCAST s1 2; FMA; PRELOAD p0; PRELOAD p1"}, // no loop
		{48, 512, 2, "MMA r1; UNROLL r0 2; SWAP s0 1; UPCAST s0 2; LOCAL s0 4; UPCAST s0 2; LOCAL s1 8; UPCAST s1 2; UPCAST s1 4; FMA; PRELOAD p0; PRELOAD p1"},
		{80, 512, 2, "MMA r1; UNROLL r0 2; SWAP s0 1; UPCAST s0 2; LOCAL s0 4; UPCAST s0 2; LOCAL s1 8; UPCAST s1 2; UPCAST s1 4; FMA; PRELOAD p0; PRELOAD p1"},
		{112, 512, 2, "MMA r1; UNROLL r1 7; SWAP s0 1; UPCAST s0 2; LOCAL s0 4; UPCAST s0 2; LOCAL s1 8; UPCAST s1 2; UPCAST s1 4; FMA; PRELOAD p0; PRELOAD p1"},
		{144, 128, 1, "MMA r1; UNROLL r0 4; SWAP s0 1; GROUP r1 3; UPCAST s0 2; LOCAL s0 4; UPCAST s0 2; LOCAL s1 8; UPCAST s1 2; UPCAST s1 4; FMA; PRELOAD p0; PRELOAD p1"},  // one digit in four copies
		{160, 128, 2, "MMA r1; UNROLL r1 2; UNROLL r0 4; SWAP s0 1; UPCAST s0 2; LOCAL s0 4; UPCAST s0 2; LOCAL s1 8; UPCAST s1 2; UPCAST s1 2; FMA; PRELOAD p0; PRELOAD p1"}, // 32 points at once
	} {
		b := newBuilder()
		got := choose(t, b, b.byteGroups(c.tokens, 4096, 4096/c.size/2*2, c.size, c.digits), desc, heuristic.Knobs{}).Plan.String()
		if got != c.plan {
			t.Errorf("%d tokens, groups of %d in %d digits: plan %s\nwant %s", c.tokens, c.size, c.digits, got, c.plan)
		}
		b = newBuilder()
		sink := b.byteGroups(16, 32, 2, c.size, c.digits)
		checkPlan(t, b.Arena, sink, choose(t, b, sink, desc, heuristic.Knobs{}).Plan, desc, nil)
	}
}

// A product of few uses has prices of both ways to make it, whichever is cheaper: kernels of a launch agree by them.
func TestPricesOfBothWays(t *testing.T) {
	desc := mustTarget(t, "ptx:sm_90")
	won := 0
	for _, format := range []string{"Q6_K", "IQ3_S", "IQ2_XXS"} {
		for _, rows := range []int64{512, 14336} {
			b := newBuilder()
			sink := b.matmul(format, 4, rows, 4096, variant{})
			both, vector := choose(t, b, sink, desc, heuristic.Knobs{}), choose(t, b, sink, desc, heuristic.Knobs{NoMatrices: true})
			if strings.Contains(both.Plan.String(), "MMA") {
				won++
			}
			for threads, price := range vector.Prices {
				if least, ok := both.Prices[threads]; !ok || least > price {
					t.Errorf("%s, %d rows: blocks of %d threads at %g ns, want at most %g", format, rows, threads, least, price)
				}
			}
		}
	}
	if won == 0 {
		t.Error("matrix instructions are nowhere cheaper")
	}
}

// Where a weight's bit lies depends on no row, as rows of activations that a block normalises do, but reads nothing: a block stages
// none of it, and the price of the plan is none of staged rows.
func TestPlacesOfBitsAreNotStaged(t *testing.T) {
	b := newBuilder()
	c := choose(t, b, b.matmul("Q5_0", 4, 2048, 8192, variant{}), mustTarget(t, "ptx:sm_90"), heuristic.Knobs{NoMatrices: true})
	if !strings.HasPrefix(c.Why, "matmul: ") || strings.Contains(c.Plan.String(), "STAGE") {
		t.Errorf("%s: %s", c.Why, c.Plan)
	}
}

// Warps of a group share the only loop of a sum of any length, its last steps too: 134 steps are 2 x 67, for which four warps are
// priced at 43 us, and 16 at 13.
func TestUnevenGroupsOfOneLoop(t *testing.T) {
	desc := mustTarget(t, "ptx:sm_90")
	for _, format := range []string{"BF16", "F32", "Q4_0"} {
		b := newBuilder()
		c := choose(t, b, b.matmul(format, 16, 1600, 4288, variant{}), desc, heuristic.Knobs{})
		groups := int64(0)
		for _, o := range c.Plan.Opts {
			if o.Kind == plan.GROUP {
				groups = o.Amount
			}
		}
		if !strings.Contains(c.Plan.String(), "MMA r0") || groups < 5 {
			t.Errorf("%s: %s", format, c.Plan)
		}
		b = newBuilder()
		sink := b.matmul(format, 8, 32, 7*32, variant{})
		for _, text := range []string{"MMA r0 32; GROUP r0 4", "MMA r0; UNROLL r0 2; GROUP r0 5", "MMA r0 32; UNROLL r0 2; GROUP r0 3"} {
			checkPlan(t, b.Arena, sink, mustPlan(t, text+"; UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; FMA"), desc, nil)
		}
	}
}

// Groups that share a loop evenly are taken where little is gained by others: 70 steps of 128 are 16 groups' but for two steps, and 280 of 32 seven's.
func TestEvenGroupsFirst(t *testing.T) {
	b := newBuilder()
	sink := b.packedHalves(24, 1536, 8960)
	if c := choose(t, b, sink, mustTarget(t, "ptx:sm_90"), heuristic.Knobs{}); !strings.Contains(c.Plan.String(), "GROUP r0 7;") {
		t.Error(c.Plan)
	}
}

// A code of IQ3_S is an entry of four weights, which a lane of a matrix instruction loads at once: its table is in shared memory
// then, and nothing is gathered.
func TestEntriesAreLoads(t *testing.T) {
	desc := mustTarget(t, "ptx:sm_90")
	b := newBuilder()
	sink := b.matmul("IQ3_S", 8, 64, 512, variant{})
	p := mustPlan(t, "MMA r0 32; UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; FMA")
	lowered, err := kernel.Lower(b.Arena, sink, p, desc)
	if err != nil {
		t.Fatal(err)
	}
	lowered.Body.Each(func(in *program.Instr) {
		if in.Op == program.Gather {
			t.Errorf("%s", in.Result.Type)
		}
	})
	checkPlan(t, b.Arena, sink, p, desc, nil)
}
