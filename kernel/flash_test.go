package kernel_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/kernel"
	"tgc/kernel/plan"
)

// promptShape is the attention of a prompt: queries of grouped heads that see the
// points up to their own, of which start lie before the prompt.
type promptShape struct {
	heads, group, queries, most, dim, value int64
	rotated                                 bool  // queries are computed in a stage
	normed                                  bool  // by their length
	blind                                   int64 // so many queries see no point
	cache                                   ir.DType
	terms                                   bool // queries, keys and values are taken as two terms of f16
}

// promptAttention has variables start and T: points of the cache.
func promptAttention(b *builder, c promptShape) *ir.UOp {
	q := b.param(0, ir.F32, c.queries, c.heads*c.group, c.dim)
	k, v := b.param(1, c.cache, c.heads, c.most, c.dim), b.param(2, c.cache, c.heads, c.most, c.value)
	out := b.param(3, ir.F32, c.heads, c.group, c.queries, c.value)
	start := b.Var(ir.VarArg{Name: "start", Lo: 0, Hi: c.most, Multiple: 1})
	length := b.Var(ir.VarArg{Name: "T", Lo: 1, Hi: c.most, Multiple: 1})
	h, g, i, d, e := b.rng(c.heads), b.rng(c.group), b.rng(c.queries), b.rng(c.value), b.rng(c.dim)
	t := b.rngOf(length)
	terms := func(x *ir.UOp) *ir.UOp {
		if !c.terms {
			return x
		}
		high := b.Cast(b.Cast(x, ir.F16), ir.F32)
		return b.Add(high, b.Cast(b.Cast(b.Sub(x, high), ir.F16), ir.F32))
	}
	float := func(x *ir.UOp) *ir.UOp {
		if c.cache == ir.F32 {
			return terms(x)
		}
		return b.Cast(x, ir.F32)
	}
	at := func(e *ir.UOp) *ir.UOp { return b.Load(q, i, b.Add(b.Mul(h, b.n(c.group)), g), e) }
	query := at(e)
	if c.rotated {
		z, w := b.rng(c.dim/2), b.rng(2)
		two := b.Mul(z, b.n(2))
		pair := b.Where(b.Lt(w, b.n(1)), b.Sub(at(two), at(b.Add(two, b.n(1)))), b.Add(at(two), at(b.Add(two, b.n(1)))))
		if c.normed {
			x := b.rng(c.dim)
			pair = b.Mul(pair, b.Unary(ir.OpRsqrt, b.Add(b.sum(b.Mul(at(x), at(x)), x), b.f(1e-5))))
		}
		stage := b.Make(ir.OpStage, ir.F32, ir.StageArg{}, pair, z, w)
		query = b.Load(stage, b.Div(e, b.n(2)), b.Mod(e, b.n(2)))
	}
	s := b.Mul(b.sum(b.Mul(terms(query), float(b.Load(k, h, t, e))), e), b.f(0.125))
	seen := b.Lt(t, b.Add(b.Add(i, start), b.n(1-c.blind)))
	values := []*ir.UOp{b.Where(seen, s, b.f(math.Inf(-1))), b.f(1), float(b.Load(v, h, t, d))}
	tuple := b.Fold(ir.Softmax(b.f(math.Log2E)), values, t)
	o := b.Mul(b.Unary(ir.OpRecip, b.Binary(ir.OpMax, b.Proj(tuple, 1), b.f(1e-3))), b.Proj(tuple, 2))
	return b.sink(b.Store(out, o, list(h, g, i, d), list(h, g, i, d)))
}

// Maxima and sums of tiles are those of points one by one, where tiles are partial
// or masked, however the points of a tile and the tiles are shared.
func TestTilePlans(t *testing.T) {
	axes := []string{"s1", "s2", "s3", "r0", "r1"}
	kinds := []plan.OptKind{plan.VECTOR, plan.UPCAST, plan.UNROLL, plan.LOCAL, plan.GROUP, plan.WARP, plan.ROLL, plan.FMA, plan.TILE, plan.CLUSTER}
	rapid.Check(t, func(rt *rapid.T) {
		b := newBuilder()
		sink := promptAttention(b, promptShape{heads: 1, group: 2, queries: 4, most: 12, dim: 4, value: 8, cache: ir.F32, rotated: rapid.Bool().Draw(rt, "rotated")})
		chosen := plan.Plan{Opts: []plan.Opt{
			{Kind: rapid.SampledFrom([]plan.OptKind{plan.VECTOR, plan.UNROLL, plan.WARP, plan.GROUP}).Draw(rt, "points"), Axis: "r0", Amount: 4},
			{Kind: plan.TILE, Axis: "r0"},
		}}
		for range rapid.IntRange(0, 4).Draw(rt, "opts") {
			opt := plan.Opt{Kind: rapid.SampledFrom(kinds).Draw(rt, "kind")}
			if opt.Kind != plan.FMA {
				opt.Axis = rapid.SampledFrom(axes).Draw(rt, "axis")
				opt.Amount = int64(rapid.SampledFrom([]int{2, 4}).Draw(rt, "amount"))
			}
			if opt.Kind == plan.TILE {
				opt.Amount = 0
			}
			chosen.Opts = append(chosen.Opts, opt)
		}
		if kernel.Feasible(b.Arena, sink, chosen, hopper(rt)) != nil {
			return
		}
		p, err := kernel.Lower(b.Arena, sink, chosen, hopper(rt))
		if err != nil {
			rt.Fatalf("%s: feasible, but: %v", chosen, err)
		}
		if err := program.VerifyGPU(p); err != nil {
			rt.Fatalf("%s: %v\n%s", chosen, err, show(p))
		}
		compare(rt, b.Arena, sink, p, chosen, map[string]int64{"start": int64(rapid.IntRange(0, 8).Draw(rt, "start")), "T": int64(rapid.IntRange(1, 12).Draw(rt, "T"))})
	})
}

// The same of a CPU, whose lanes are queries that may be staged: elements that fill no tile are masked in it, or follow
// the tiles one after the other.
func TestTilesOnCPUs(t *testing.T) {
	axes := []string{"s1", "s2", "s3", "r1"}
	kinds := []plan.OptKind{plan.VECTOR, plan.UPCAST, plan.UNROLL, plan.ROLL, plan.FMA, plan.STAGE}
	rapid.Check(t, func(rt *rapid.T) {
		b := newBuilder()
		queries, most := rapid.IntRange(1, 20).Draw(rt, "queries"), 40
		sink := promptAttention(b, promptShape{heads: 1, group: 2, queries: int64(queries), most: int64(most), dim: 4, value: 6, cache: ir.F32,
			rotated: rapid.Bool().Draw(rt, "rotated"), blind: int64(rapid.IntRange(0, 3).Draw(rt, "blind"))})
		tile := rapid.SampledFrom([]int{2, 4, 6, 8, 16}).Draw(rt, "tile")
		chosen := plan.Plan{Opts: []plan.Opt{
			{Kind: rapid.SampledFrom([]plan.OptKind{plan.UNROLL, plan.VECTOR}).Draw(rt, "points"), Axis: "r0", Amount: int64(tile)},
			{Kind: plan.TILE, Axis: "r0", Amount: int64(rapid.IntRange(0, 1).Draw(rt, "apart"))},
		}}
		for range rapid.IntRange(0, 4).Draw(rt, "opts") {
			opt := plan.Opt{Kind: rapid.SampledFrom(kinds).Draw(rt, "kind")}
			if opt.Kind != plan.FMA {
				opt.Axis = rapid.SampledFrom(axes).Draw(rt, "axis")
			}
			if opt.Kind.TakesAmount() && opt.Kind != plan.STAGE {
				opt.Amount = int64(rapid.SampledFrom([]int{2, 3, 4, 16}).Draw(rt, "amount"))
			}
			chosen.Opts = append(chosen.Opts, opt)
		}
		if kernel.Feasible(b.Arena, sink, chosen, avx512) != nil {
			return
		}
		p, err := kernel.Lower(b.Arena, sink, chosen, avx512)
		if err != nil {
			if strings.Contains(err.Error(), "elements in sub-axes") || strings.Contains(err.Error(), "lanes, at most") {
				return
			}
			rt.Fatalf("%s: feasible, but: %v", chosen, err)
		}
		start := rapid.IntRange(0, most-queries).Draw(rt, "start")
		compare(rt, b.Arena, sink, p, chosen, map[string]int64{"start": int64(start), "T": int64(rapid.IntRange(1, most).Draw(rt, "T"))})
	})
}

// flashCases are prompts of attention on matrix instructions.
var flashCases = []struct {
	name  string
	shape promptShape
	plan  string
	count int
	vars  [][2]int64 // start and T
}{
	{"floats", promptShape{heads: 1, group: 1, queries: 16, most: 64, dim: 16, value: 8, cache: ir.F32},
		"MMA r1; MMA r0; TILE r0; LOCAL s2 8; UPCAST s2 2; UPCAST s3 2; LOCAL s3 4; FMA", 2*6 + 6, [][2]int64{{0, 16}, {0, 1}, {3, 19}, {0, 64}}},
	{"halves, of heads that share rows", promptShape{heads: 2, group: 2, queries: 16, most: 48, dim: 32, value: 16, cache: ir.F16},
		"MMA r1; UNROLL r1 2; MMA r0; UNROLL r0 2; TILE r0; LOCAL s1 2; LOCAL s2 8; UPCAST s2 2; UPCAST s3 2; LOCAL s3 4; UPCAST s3 2; FMA",
		2*2*2*5 + 2*2*2, [][2]int64{{0, 16}, {20, 36}, {5, 48}}},
	{"rotated queries", promptShape{heads: 1, group: 1, queries: 32, most: 64, dim: 16, value: 8, rotated: true, cache: ir.F32},
		"MMA r1; MMA r0; TILE r0; LOCAL s2 8; UPCAST s2 2; LOCAL s2 2; UPCAST s3 2; LOCAL s3 4; FMA", 2*6 + 6, [][2]int64{{0, 32}, {17, 49}}},
	{"panels", promptShape{heads: 1, group: 2, queries: 16, most: 64, dim: 32, value: 16, cache: ir.F32},
		"MMA r1; UNROLL r1 2; MMA r0; UNROLL r0 2; TILE r0; STAGE r0; STAGE s3; LOCAL s1 2; LOCAL s2 8; UPCAST s2 2; UPCAST s3 2; LOCAL s3 4; UPCAST s3 2; FMA",
		2*2*2*6 + 2*2*6, [][2]int64{{0, 16}, {20, 36}, {5, 48}}},
	{"panels of halves, of queries too", promptShape{heads: 2, group: 1, queries: 32, most: 48, dim: 32, value: 8, rotated: true, cache: ir.F16},
		"MMA r1; UNROLL r1 2; MMA r0; TILE r0; STAGE r0; STAGE s2; STAGE s3; LOCAL s2 8; UPCAST s2 2; LOCAL s2 2; UPCAST s3 2; LOCAL s3 4; FMA",
		2*2*5 + 2, [][2]int64{{0, 32}, {12, 44}}},
	{"panels of parts of a block", promptShape{heads: 1, group: 1, queries: 32, most: 96, dim: 16, value: 8, cache: ir.F32},
		"MMA r1; MMA r0; TILE r0; GROUP r0 2; STAGE r0; STAGE s3; LOCAL s2 8; UPCAST s2 2; LOCAL s2 2; UPCAST s3 2; LOCAL s3 4; FMA", 2*6 + 6, [][2]int64{{0, 32}, {50, 82}}},
	{"normed queries in groups of warps", promptShape{heads: 1, group: 2, queries: 32, most: 96, dim: 32, value: 8, rotated: true, normed: true, cache: ir.F32},
		"MMA r1; UNROLL r1 2; VECTOR r2 4; WARP r2 4; MMA r0; TILE r0; GROUP r0 2; STAGE r0; STAGE s3; LOCAL s1 2; LOCAL s2 8; UPCAST s2 2; UPCAST s3 2; LOCAL s3 4; FMA", 2*2*6 + 6, [][2]int64{{0, 32}, {9, 41}}},
	{"warps that share points", promptShape{heads: 1, group: 1, queries: 16, most: 80, dim: 16, value: 8, cache: ir.F32},
		"MMA r1; MMA r0; TILE r0; GROUP r0 2; LOCAL s2 8; UPCAST s2 2; UPCAST s3 2; LOCAL s3 4; FMA", 2*6 + 6, [][2]int64{{0, 16}, {50, 66}}},
	{"blocks that share points", promptShape{heads: 1, group: 1, queries: 16, most: 80, dim: 16, value: 8, cache: ir.F32},
		"MMA r1; MMA r0; TILE r0; GROUP r0 2; LOCAL s2 8; UPCAST s2 2; UPCAST s3 2; LOCAL s3 4; CLUSTER r0 2; FMA", 2*6 + 6, [][2]int64{{0, 16}, {50, 66}}},
	{"terms", promptShape{heads: 1, group: 1, queries: 16, most: 64, dim: 16, value: 8, cache: ir.F32, terms: true},
		"MMA r1; MMA r0; TILE r0; LOCAL s2 8; UPCAST s2 2; UPCAST s3 2; LOCAL s3 4; FMA", 2*3 + 3, [][2]int64{{0, 16}, {0, 1}, {3, 19}, {0, 64}}},
	{"panels of terms, of rotated queries", promptShape{heads: 1, group: 2, queries: 16, most: 64, dim: 32, value: 16, rotated: true, cache: ir.F32, terms: true},
		"MMA r1; UNROLL r1 2; MMA r0; UNROLL r0 2; TILE r0; GROUP r0 2; STAGE r0; STAGE s3; LOCAL s1 2; LOCAL s2 8; UPCAST s2 2; UPCAST s3 2; LOCAL s3 4; UPCAST s3 2; FMA",
		2*2*2*3 + 2*2*3, [][2]int64{{0, 16}, {20, 36}, {5, 48}}},
	{"rows without points", promptShape{heads: 1, group: 1, queries: 16, most: 32, dim: 16, value: 8, blind: 9, cache: ir.F32},
		"MMA r1; MMA r0; TILE r0; LOCAL s2 8; UPCAST s2 2; UPCAST s3 2; LOCAL s3 4; FMA", 2*6 + 6, [][2]int64{{0, 32}}},
}

// Scores and weighted sums on matrix instructions: how many of them a plan has, and
// its values: of whole, partial and masked tiles, behind other points and in front.
func TestFlashPlans(t *testing.T) {
	for _, c := range flashCases {
		t.Run(c.name, func(t *testing.T) {
			b := newBuilder()
			sink := promptAttention(b, c.shape)
			plan, err := plan.Parse(c.plan)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := canonicalForm(t, sink, c.plan); err != nil {
				t.Error(err)
			}
			p, err := kernel.Lower(b.Arena, sink, plan, hopper(t))
			if err != nil {
				t.Fatal(err)
			}
			if err := program.VerifyGPU(p); err != nil {
				t.Fatalf("%v\n%s", err, show(p))
			}
			if n := strings.Count(program.Print(p), "= mma "); n != c.count {
				t.Errorf("%d matrix instructions, want %d\n%s", n, c.count, show(p))
			}
			for _, v := range c.vars {
				vars := map[string]int64{"start": v[0], "T": v[1]}
				compare(t, b.Arena, sink, p, plan, vars)
				emulate(t, sink, p, vars)
			}
		})
	}
}

// A tuple that is no softmax has no tiles; neither has an axis that no Opt split.
func TestTileRefusals(t *testing.T) {
	for _, c := range []struct {
		build      func(b *builder) *ir.UOp
		plan, want string
	}{
		{func(b *builder) *ir.UOp { return attention(b, 2, 6, 16) }, "UNROLL r0 2; TILE r0", "no softmax"},
		{func(b *builder) *ir.UOp { return attention(b, 2, 6, 16) }, "TILE r0", "after Opts that split"},
		{func(b *builder) *ir.UOp { return attention(b, 2, 6, 16) }, "UNROLL r0 2; TILE r0; UNROLL r0 2; TILE r0", "want one"},
		{func(b *builder) *ir.UOp { return attention(b, 2, 6, 16) }, "UNROLL r0 2; TILE r0 1", "threads of a GPU"},
	} {
		plan, err := plan.Parse(c.plan)
		if err != nil {
			t.Fatal(err)
		}
		b := newBuilder()
		if _, err := kernel.Lower(b.Arena, c.build(b), plan, hopper(t)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.plan, err, c.want)
		}
	}
}

// STAGE of queries that are lanes beside a TILE keeps the queries, turned, and no scores: they would be as many as
// points of the cache.
func TestStageOfQueriesInLanes(t *testing.T) {
	const dim = 24
	b := newBuilder()
	sink := promptAttention(b, promptShape{heads: 1, group: 1, queries: 32, most: 40, dim: dim, value: 8, cache: ir.F32})
	chosen, err := plan.Parse("VECTOR s2 16; STAGE s2; UPCAST s3 8; UNROLL r0 8; TILE r0 1; FMA")
	if err != nil {
		t.Fatal(err)
	}
	p, err := kernel.Lower(b.Arena, sink, chosen, avx512)
	if err != nil {
		t.Fatal(err)
	}
	text := program.Print(p)
	if want := fmt.Sprintf("alloca count %d ", dim*16); strings.Count(text, "alloca") != 1 || !strings.Contains(text, want) {
		t.Errorf("want one array, %q:\n%s", want, show(p))
	}
	for _, length := range []int64{1, 8, 39} {
		compare(t, b.Arena, sink, p, chosen, map[string]int64{"start": 5, "T": length})
	}
}
