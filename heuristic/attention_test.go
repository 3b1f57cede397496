package heuristic_test

import (
	"slices"
	"testing"

	"tgc/heuristic"
	"tgc/ir"
	"tgc/kernel/plan"
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

// A head of any size is shared by threads of which each has 8 to 12 elements where that is possible, of a key and of a result, in loads of 16
// bytes, and few of them have none. No such plan is refused: a loop over results in a cluster was, and a step of eight layers of 16 heads of 80 took
// 2,684 us at a depth of 1,000.
func TestHeadsOfAnySize(t *testing.T) {
	desc := mustTarget(t, "ptx:sm_90")
	for head := int64(20); head <= 256; head += 4 {
		b := newBuilder()
		sink := b.attention(4, 4, 1064, head, 0)
		c := choose(t, b, sink, desc, heuristic.Knobs{})
		if !isAttention(c) {
			t.Fatalf("heads of %d have no plan of attention: %s", head, recordLines(c.Records))
		}
		share := make(map[plan.OptKind]int64)
		for _, o := range c.Plan.Opts {
			switch o.Axis {
			case "s2":
				share[o.Kind] = max(o.Amount, 1)
			case "r1":
				if o.Kind == plan.WARP || o.Kind == plan.UNROLL {
					share[o.Kind] = o.Amount
				}
			}
		}
		lanes, threads, copies := share[plan.VECTOR], max(share[plan.LOCAL], 1), max(share[plan.UPCAST], 1)
		places := lanes * threads * copies
		if lanes != 4 || max(share[plan.WARP], 1) != threads || places < head || places >= head+head/2 || share[plan.ROLL] > 0 || lanes*copies < 8 || lanes*copies > 12 {
			t.Errorf("heads of %d: %s", head, c.Plan)
		}
		if held := lanes*copies <= 8; copies > 1 && held != (share[plan.UNROLL] == copies) {
			t.Errorf("heads of %d: %s; eight elements of a key are no loop, since old rows of the cache are read before the kernel before has ended", head, c.Plan)
		}
	}
	for _, head := range []int64{20, 40, 72} {
		b := newBuilder()
		sink := b.attention(2, 2, 40, head, 0)
		checkPlan(t, b.Arena, sink, choose(t, b, sink, desc, heuristic.Knobs{}).Plan, desc, map[string]int64{"pos": 37})
	}
}

// The elements of a head are registers of lanes one after another on a CPU, all full but the last, without a loop over a key: heads
// of 100 in lanes of 64 took three times as long as heads of 112.
func TestHeadsFillRegisters(t *testing.T) {
	for _, name := range []string{"sapphirerapids", "znver3"} {
		desc := target.ForCPU(name, nil, 2)
		for _, group := range []int64{1, 4} {
			for head := int64(8); head <= 256; head += 4 {
				b := newBuilder()
				sink := b.attention(4, group, 1064, head, 0)
				places := map[string]int64{"s2": 1, "r1": 1}
				c := choose(t, b, sink, desc, heuristic.Knobs{})
				for _, o := range c.Plan.Opts {
					if _, ok := places[o.Axis]; ok && o.Amount > 0 {
						places[o.Axis] *= o.Amount
					}
				}
				for axis, n := range places {
					if n < head || n >= head+int64(desc.VectorBytes/4) {
						t.Errorf("%s: %d queries of heads of %d: %d places of %s: %s", name, group, head, n, axis, c.Plan)
					}
				}
				if head%16 == 4 && head < 80 {
					checkPlan(t, b.Arena, sink, c.Plan, desc, map[string]int64{"pos": 37})
				}
			}
		}
	}
}

// isAttention reports a plan of attention none of which was refused.
func isAttention(c heuristic.Choice) bool {
	i := slices.IndexFunc(c.Records, func(r heuristic.Record) bool { return r.Heuristic == "attention" })
	return i >= 0 && c.Records[i].Applied && !slices.ContainsFunc(c.Records, func(r heuristic.Record) bool { return r.Reason == "refused" })
}

// Parts of attention are joined by threads of which each has elements of a head, however small it is.
func TestPartsOfAnySize(t *testing.T) {
	desc := mustTarget(t, "ptx:sm_90")
	joined := func(b *builder, heads, parts, head int64) *ir.UOp {
		most, sum, rows := b.param(0, ir.F32, heads, parts), b.param(1, ir.F32, heads, parts), b.param(2, ir.F32, heads, parts, head)
		h, d, c := b.rng(heads), b.rng(head), b.rng(parts)
		tuple := b.softmax(c, b.Load(most, h, c), b.Load(sum, h, c), b.Load(rows, h, c, d))
		o := b.Mul(b.Unary(ir.OpRecip, b.Proj(tuple, 1)), b.Proj(tuple, 2))
		return b.sink(b.Store(b.param(3, ir.F32, heads, head), o, list(h, d), list(h, d)))
	}
	for head := int64(4); head <= 256; head += 4 {
		b := newBuilder()
		sink := joined(b, 2, 62, head)
		c := choose(t, b, sink, desc, heuristic.Knobs{})
		if !isAttention(c) {
			t.Errorf("heads of %d: %s\n%s", head, c.Plan, recordLines(c.Records))
		}
		if head <= 24 {
			checkPlan(t, b.Arena, sink, c.Plan, desc, nil)
		}
	}
}

// Heads of a group share rows of a long cache in a block, also where they are three, five or seven, of which one block has
// fewer; those of a short cache do not.
func TestQueriesShareRows(t *testing.T) {
	desc := mustTarget(t, "ptx:sm_90")
	for _, tt := range []struct {
		heads, group, rows int64
		want               string
	}{
		{768, 2, 1024, "UPCAST s1 2"},
		{512, 3, 1024, "UPCAST s1 3"},
		{512, 4, 1024, "UPCAST s1 4"},
		{512, 5, 1024, "UPCAST s1 4"},
		{352, 6, 364, "UPCAST s1 2"}, // three are 6 of the 8 points that registers hold
		{160, 7, 1024, "UPCAST s1 4"},
		{64, 3, 64, ""},
	} {
		b := newBuilder()
		sink := b.attention(tt.heads, tt.group, tt.rows, 64, 0)
		got := ""
		for _, o := range choose(t, b, sink, desc, heuristic.Knobs{}).Plan.Opts {
			if o.Kind == plan.UPCAST && o.Axis == "s1" {
				got = o.String()
			}
		}
		if got != tt.want {
			t.Errorf("%d groups of %d heads, %d rows: %q, want %q", tt.heads, tt.group, tt.rows, got, tt.want)
		}
	}
	b := newBuilder()
	sink := b.attention(160, 7, 24, 32, 0)
	p := mustPlan(t, "VECTOR r1 4; WARP r1 4; VECTOR s2 4; LOCAL s2 4; UPCAST s2 2; UPCAST s1 4; WARP r0 8; FMA")
	checkPlan(t, b.Arena, sink, p, desc, map[string]int64{"pos": 20})
}

// A block makes the norm of a row for as many groups of the row as it has threads, not for one.
func TestGroupsOfANormedRow(t *testing.T) {
	desc := mustTarget(t, "ptx:sm_90")
	for groups, want := range map[int64]string{
		5:  "VECTOR r0 4; WARP r0 8; VECTOR s2 4; LOCAL s2 8; LOCAL s1 8; WARP r1 32; UNROLL r1 5; FMA",
		28: "VECTOR r0 4; WARP r0 8; VECTOR s2 4; LOCAL s2 8; LOCAL s1 32; VECTOR r1 4; WARP r1 32; GROUP r1 4; UNROLL r1 2; FMA",
		64: "VECTOR r0 4; WARP r0 8; VECTOR s2 4; LOCAL s2 8; LOCAL s1 32; VECTOR r1 4; WARP r1 32; GROUP r1 8; UNROLL r1 2; FMA",
	} {
		b := newBuilder()
		sink := b.normedRounded(3, groups)
		c := choose(t, b, sink, desc, heuristic.Knobs{})
		if c.Plan.String() != want {
			t.Errorf("%d groups: plan %s\nwant %s", groups, c.Plan, want)
		}
		checkPlan(t, b.Arena, sink, c.Plan, desc, nil)
	}
}

// The same of rows whose fold has several components, such as a mean and a variance.
func TestGroupsOfARowWithATuple(t *testing.T) {
	desc := mustTarget(t, "ptx:sm_90")
	for groups, want := range map[int64]string{
		5:  "VECTOR r0 4; WARP r0 8; VECTOR s2 4; LOCAL s2 8; LOCAL s1 8; WARP r1 32; UNROLL r1 5; FMA",
		50: "VECTOR r0 4; WARP r0 8; VECTOR s2 4; LOCAL s2 8; LOCAL s1 32; WARP r1 32; GROUP r1 8; UNROLL r1 7; FMA",
	} {
		b := newBuilder()
		r, rows := b.rng(groups*32), b.param(0, ir.F32, 3, groups*32)
		sink := b.roundedRows(3, groups, func(x, row *ir.UOp) *ir.UOp {
			return b.Mul(x, b.Unary(ir.OpRecip, b.Proj(b.softmax(r, b.Load(rows, row, r), b.f(1)), 1)))
		})
		c := choose(t, b, sink, desc, heuristic.Knobs{})
		if c.Plan.String() != want {
			t.Errorf("%d groups: plan %s\nwant %s", groups, c.Plan, want)
		}
		checkPlan(t, b.Arena, sink, c.Plan, desc, nil)
	}
}
