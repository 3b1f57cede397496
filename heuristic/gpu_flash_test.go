package heuristic_test

import (
	"strings"
	"testing"

	"tgc/heuristic"
	"tgc/ir"
)

// Attention of 16 queries and more runs on matrix instructions, in tiles: of fewer
// points where rows are long, shared by groups of warps where queries are few.
func TestFlashTiles(t *testing.T) {
	desc := mustTarget(t, "ptx:sm_90")
	for _, tt := range []struct {
		name  string
		knobs heuristic.Knobs
		build func(b *builder) *ir.UOp
		plan  string // empty: no tiles
	}{
		{"prompt", heuristic.Knobs{}, func(b *builder) *ir.UOp { return b.attention(8, 4, 4096, 64, 512) },
			"MMA r1; UNROLL r1 4; MMA r0; UNROLL r0 2; TILE r0; GROUP r0 2; UPCAST s3 2; LOCAL s3 4; UPCAST s3 8; LOCAL s0 8; UPCAST s0 2; LOCAL s2 4; STAGE r0; STAGE s3; FMA"},
		{"a stored mask", heuristic.Knobs{}, func(b *builder) *ir.UOp { return b.maskedAttention(8, 4, 4096, 64, 512) },
			"MMA r1; UNROLL r1 4; MMA r0; UNROLL r0 2; TILE r0; GROUP r0 2; UPCAST s3 2; LOCAL s3 4; UPCAST s3 8; LOCAL s0 8; UPCAST s0 2; LOCAL s2 4; STAGE r0; STAGE s3; FMA"},
		{"few queries", heuristic.Knobs{}, func(b *builder) *ir.UOp { return b.attention(8, 4, 4096, 64, 128) },
			"MMA r1; UNROLL r1 4; MMA r0; UNROLL r0 2; TILE r0; GROUP r0 4; UPCAST s3 2; LOCAL s3 4; UPCAST s3 8; LOCAL s0 8; UPCAST s0 2; LOCAL s2 2; STAGE r0; STAGE s3; FMA"},
		{"a tile of queries", heuristic.Knobs{}, func(b *builder) *ir.UOp { return b.attention(8, 1, 4096, 80, 16) },
			"MMA r1; UNROLL r1 5; MMA r0; TILE r0; GROUP r0 4; UPCAST s3 2; LOCAL s3 4; UPCAST s3 10; LOCAL s0 8; UPCAST s0 2; FMA"},
		{"long rows", heuristic.Knobs{}, func(b *builder) *ir.UOp { return b.attention(8, 2, 4096, 128, 512) },
			"MMA r1; UNROLL r1 8; MMA r0; TILE r0; GROUP r0 2; UPCAST s3 2; LOCAL s3 4; UPCAST s3 16; LOCAL s0 8; UPCAST s0 2; LOCAL s2 2; LOCAL s0 2; STAGE r0; STAGE s3; FMA"},
		{"rows in two parts", heuristic.Knobs{}, func(b *builder) *ir.UOp { return b.attention(8, 2, 4096, 160, 512) },
			"MMA r1; UNROLL r1 10; MMA r0; TILE r0; GROUP r0 2; UPCAST s3 2; LOCAL s3 4; UPCAST s3 10; LOCAL s0 8; UPCAST s0 2; LOCAL s2 2; LOCAL s0 2; STAGE r0; STAGE s3; FMA"},
		{"rows of halves", heuristic.Knobs{}, func(b *builder) *ir.UOp { return b.halfAttention(8, 2, 4096, 160, 512) },
			"MMA r1; UNROLL r1 10; MMA r0; TILE r0; GROUP r0 2; UPCAST s3 2; LOCAL s3 4; UPCAST s3 20; LOCAL s0 8; UPCAST s0 2; LOCAL s2 2; LOCAL s0 2; STAGE r0; STAGE s3; FMA"},
		{"long rows of halves", heuristic.Knobs{}, func(b *builder) *ir.UOp { return b.halfAttention(8, 2, 4096, 256, 512) },
			"MMA r1; UNROLL r1 16; MMA r0; TILE r0; GROUP r0 2; UPCAST s3 2; LOCAL s3 4; UPCAST s3 16; LOCAL s0 8; UPCAST s0 2; LOCAL s2 2; LOCAL s0 2; STAGE r0; STAGE s3; FMA"},
		{"rows that leave registers", heuristic.Knobs{}, func(b *builder) *ir.UOp { return b.attention(8, 2, 4096, 256, 512) }, ""},
		{"decoding", heuristic.Knobs{}, func(b *builder) *ir.UOp { return b.attention(8, 4, 4096, 64, 0) }, ""},
		{"odd queries", heuristic.Knobs{}, func(b *builder) *ir.UOp { return b.attention(8, 4, 4096, 64, 24) },
			"MMA r1; UNROLL r1 4; MMA r0; UNROLL r0 2; TILE r0; GROUP r0 4; UPCAST s3 2; LOCAL s3 4; UPCAST s3 8; LOCAL s0 8; UPCAST s0 2; FMA"},
		{"no tile of queries", heuristic.Knobs{}, func(b *builder) *ir.UOp { return b.attention(8, 4, 4096, 64, 12) }, ""},
		{"switched off", heuristic.Knobs{NoMatrices: true}, func(b *builder) *ir.UOp { return b.attention(8, 4, 4096, 64, 512) }, ""},
	} {
		b := newBuilder()
		c := choose(t, b, tt.build(b), desc, tt.knobs)
		switch {
		case tt.plan == "" && strings.Contains(c.Plan.String(), "MMA"):
			t.Errorf("%s: %s", tt.name, c.Plan)
		case tt.plan != "" && c.Plan.String() != tt.plan:
			t.Errorf("%s: plan %s\nwant %s", tt.name, c.Plan, tt.plan)
		}
	}
	for _, size := range []struct {
		head, queries int64
		of            func(b *builder, kv, group, length, dim, tokens int64) *ir.UOp
	}{
		{16, 32, (*builder).attention},
		{40, 17, (*builder).attention},
		{37, 33, (*builder).attention},
		{160, 16, (*builder).attention},
		{256, 17, (*builder).halfAttention},
	} {
		b := newBuilder()
		sink := size.of(b, 1, 2, 40, size.head, size.queries)
		c := choose(t, b, sink, desc, heuristic.Knobs{})
		if !strings.Contains(c.Plan.String(), "MMA") {
			t.Errorf("%d queries of %d: %s", size.queries, size.head, c.Plan)
		}
		for _, at := range []int64{6, 37} {
			checkPlan(t, b.Arena, sink, c.Plan, desc, map[string]int64{"pos": at})
		}
	}
	b := newBuilder()
	sink := b.maskedAttention(1, 2, 40, 32, 19)
	c := choose(t, b, sink, desc, heuristic.Knobs{})
	if !strings.Contains(c.Plan.String(), "MMA") {
		t.Errorf("a stored mask: %s", c.Plan)
	}
	checkPlan(t, b.Arena, sink, c.Plan, desc, map[string]int64{"pos": 37})
}
