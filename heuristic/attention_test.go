package heuristic_test

import (
	"testing"

	"tgc/heuristic"
	"tgc/target"
)

// Queries of a prompt are lanes where they fill a register and their results are not too long; the
// kernels compute what their bodies say.
func TestAttentionOfQueries(t *testing.T) {
	desc := target.ForCPU("sapphirerapids", nil, 2)
	for _, tt := range []struct {
		name                 string
		group, head, queries int64
		plan                 string
	}{
		{"prompt", 4, 64, 32, "VECTOR s0 16; STAGE s0; UPCAST s3 64; UNROLL r1 4; UNROLL r0 16; TILE r0 1; FMA"},
		{"short rows", 1, 24, 16, "VECTOR s0 16; STAGE s0; UPCAST s3 24; UNROLL r1 4; UNROLL r0 16; TILE r0 1; FMA"},
		{"decoding", 4, 64, 0, ""},
		{"odd queries", 2, 16, 17, "VECTOR s0 16; STAGE s0; UPCAST s3 16; UNROLL r1 4; UNROLL r0 16; TILE r0 1; FMA"},
		{"few queries", 2, 16, 8, ""},
		{"long rows", 2, 128, 16, "VECTOR s0 16; STAGE s0; UPCAST s3 128; UNROLL r1 4; UNROLL r0 16; TILE r0 1; FMA"},
		{"longer rows", 1, 192, 16, ""},
	} {
		b := newBuilder()
		sink := b.attention(1, tt.group, 40, tt.head, tt.queries)
		c := choose(t, b, sink, desc, heuristic.Knobs{})
		if tt.plan != "" && c.Plan.String() != tt.plan {
			t.Errorf("%s: plan %s\nwant %s", tt.name, c.Plan, tt.plan)
		}
		for _, at := range []int64{6, 37} {
			checkPlan(t, b.Arena, sink, c.Plan, desc, map[string]int64{"pos": at})
		}
	}
}
