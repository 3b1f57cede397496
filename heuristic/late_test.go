package heuristic_test

import (
	"strings"
	"testing"

	"tgc/heuristic"
	"tgc/ir"
	"tgc/kernel/plan"
)

// lateRows is out[h,t,d] = x[h,t,d]*scale[h,t] for as many t as a variable says.
func (b *builder) lateRows(heads, most, dim int64) *ir.UOp {
	x, scale, out := b.param(0, ir.F32, heads, most, dim), b.param(1, ir.F32, heads, most), b.param(2, ir.F32, heads, most, dim)
	h, t, d := b.rng(heads), b.rngOf(b.Var(ir.VarArg{Name: "rows", Lo: 0, Hi: most})), b.rng(dim)
	return b.sink(b.Store(out, b.Mul(b.Load(x, h, t, d), b.Load(scale, h, t)), list(h, t, d), list(h, t, d)))
}

// lateMask is out[q,t] = t <= q + start, for as many t as a variable says: neighbours lie along that.
func (b *builder) lateMask(queries, most int64) *ir.UOp {
	start, out := b.param(0, ir.I32, 1), b.param(1, ir.I32, queries, most)
	q, t := b.rng(queries), b.rngOf(b.Var(ir.VarArg{Name: "rows", Lo: 0, Hi: most}))
	limit := b.Add(b.Cast(q, ir.I32), b.Load(start, b.Index(0)))
	seen := b.Cast(b.Lt(b.Cast(t, ir.I32), limit), ir.I32)
	return b.sink(b.Store(out, seen, list(q, t), list(q, t)))
}

// A GPU has work units along an extent that only the run tells, where the others are too few: any number of rows is right,
// none and all of them too.
func TestUnitsAlongLateExtents(t *testing.T) {
	for _, tt := range []struct {
		name, target string
		build        func(b *builder) *ir.UOp
		plan         string
	}{
		{"few heads", "ptx:sm_90", func(b *builder) *ir.UOp { return b.lateRows(8, 128, 64) }, "VECTOR s2 4; LOCAL s2 16; LOCAL s0 8; GRID s1 128"},
		{"long caches", "ptx:sm_90", func(b *builder) *ir.UOp { return b.lateRows(8, 100000, 64) }, "VECTOR s2 4; LOCAL s2 16; LOCAL s0 8; GRID s1 528"},
		{"rows that fill the device", "ptx:sm_90", func(b *builder) *ir.UOp { return b.lateRows(3000, 12, 256) }, "VECTOR s2 4; LOCAL s2 64; LOCAL s0 2"},
		{"neighbours along it", "ptx:sm_90", func(b *builder) *ir.UOp { return b.lateMask(7, 1000) }, "LOCAL s1 128; GRID s1 8"},
		{"short", "ptx:sm_90", func(b *builder) *ir.UOp { return b.lateMask(7, 50) }, "LOCAL s1 32; GRID s1 2"},
		{"a CPU", "llvm:x86-64-v3", func(b *builder) *ir.UOp { return b.lateRows(8, 128, 64) }, "VECTOR s2 16; ROLL s2 4; FMA"},
	} {
		b := newBuilder()
		sink, desc := tt.build(b), mustTarget(t, tt.target)
		c := choose(t, b, sink, desc, heuristic.Knobs{})
		if got := c.Plan.String(); got != tt.plan {
			t.Errorf("%s: plan %s\nwant %s", tt.name, got, tt.plan)
		}
		if strings.Contains(tt.name, "fill") || strings.Contains(tt.name, "long") {
			continue
		}
		for _, rows := range []int64{0, 1, 33, 50} {
			checkPlan(t, b.Arena, sink, c.Plan, desc, map[string]int64{"rows": rows})
		}
	}
}

// GRID is refused where it says nothing.
func TestUnitsOfConstantExtents(t *testing.T) {
	for _, text := range []string{"GRID s0 4", "GRID s1 4; GRID s1 4"} {
		b := newBuilder()
		sink := b.lateRows(8, 128, 64)
		if plan.Legality(sink, mustPlan(t, text), mustTarget(t, "ptx:sm_90")) == nil {
			t.Errorf("%s is accepted", text)
		}
	}
}

// twoRows is out[t,n] = (sum_k x[t,k]*w[n,k]) * (sum_k x[t,k]*w[n+rows,k]): a buffer holds both matrices.
func (b *builder) twoRows(tokens, rows, k int64) *ir.UOp {
	x, w, out := b.param(0, ir.BF16, tokens, k), b.param(1, ir.BF16, 2*rows, k), b.param(2, ir.F32, tokens, rows)
	t, n, r := b.rng(tokens), b.rng(rows), b.rng(k)
	side := func(n *ir.UOp) *ir.UOp {
		return b.sum(b.Mul(b.Cast(b.Load(x, t, r), ir.F32), b.Cast(b.Load(w, n, r), ir.F32)), r)
	}
	return b.sink(b.Store(out, b.Mul(side(n), side(b.Add(n, b.Index(rows)))), list(t, n), list(t, n)))
}

// Two matrices of one buffer take the registers and panels of two: their plan is that of two buffers.
func TestMatricesOfOneBuffer(t *testing.T) {
	desc := mustTarget(t, "ptx:sm_90a")
	b := newBuilder()
	c := choose(t, b, b.twoRows(512, 8192, 3072), desc, heuristic.Knobs{})
	if want := "4 x 2 warps"; !strings.Contains(c.Why, want) || strings.Contains(c.Why, "x 256 tokens") {
		t.Errorf("%s, want tiles of 128 tokens, %s", c.Why, want)
	}
}

// residual is out[t,n] = sum_k x[t,k]*w[n,k] + sum_e y[4t+e,n]*share[t,e]: results of experts, each read once, beside a product.
func (b *builder) residual(tokens, rows, k int64) *ir.UOp {
	x, w, out := b.param(0, ir.F32, tokens, k), b.param(1, ir.BF16, rows, k), b.param(2, ir.F32, tokens, rows)
	y, share := b.param(3, ir.F32, 4*tokens, rows), b.param(4, ir.F32, tokens, 4)
	t, n, r, e := b.rng(tokens), b.rng(rows), b.rng(k), b.rng(4)
	product := b.sum(b.Mul(b.Load(x, t, r), b.Cast(b.Load(w, n, r), ir.F32)), r)
	row := b.Add(b.Mul(t, b.Index(4)), e)
	return b.sink(b.Store(out, b.Add(product, b.sum(b.Mul(b.Load(y, row, n), b.Load(share, t, e)), e)), list(t, n), list(t, n)))
}

// A sum of what is read once does not keep the product beside it from matrix instructions.
func TestSumsBesideProducts(t *testing.T) {
	desc := mustTarget(t, "ptx:sm_90")
	b := newBuilder()
	if c := choose(t, b, b.residual(512, 2048, 4096), desc, heuristic.Knobs{}); !strings.Contains(c.Plan.String(), "MMA") {
		t.Errorf("plan %s", c.Plan)
	}
	b = newBuilder()
	sink := b.residual(24, 1536, 64)
	c := choose(t, b, sink, desc, heuristic.Knobs{})
	if !strings.Contains(c.Plan.String(), "MMA") {
		t.Errorf("plan %s", c.Plan)
	}
	checkPlan(t, b.Arena, sink, c.Plan, desc, nil)
}

// What the rows of a token's experts have in common, activations and the gain of their norm, is multiplied once for a block, and the norm
// is made by all of its threads, whichever token the block's is.
func TestRowsOfExpertsShareActivations(t *testing.T) {
	desc := mustTarget(t, "ptx:sm_90")
	for _, format := range []string{"Q3_K", "Q4_K", "Q8_0"} {
		for _, tokens := range []int64{1, 2, 8} {
			b := newBuilder()
			c := choose(t, b, b.tokenExperts(format, tokens, 8, 16, 768, 2048), desc, heuristic.Knobs{})
			if !strings.Contains(c.Plan.String(), "STAGE r0") {
				t.Errorf("%s, %d tokens: %s", format, tokens, c.Plan)
			}
			b = newBuilder()
			sink := b.tokenExperts(format, tokens, 2, 4, 64, 256)
			checkPlan(t, b.Arena, sink, choose(t, b, sink, desc, heuristic.Knobs{}).Plan, desc, nil)
		}
	}
}

// Rows whose number is known only where a kernel runs are no block's: nothing is what they share.
func TestRowsOfVariableNumber(t *testing.T) {
	desc := mustTarget(t, "ptx:sm_90")
	b := newBuilder()
	const most, k = 64, 2048
	x, out, w := b.param(0, ir.F32, k), b.param(2, ir.F32, most), b.weight(1, "Q8_0", most, k)
	n, r := b.rngOf(b.Var(ir.VarArg{Name: "rows", Lo: 0, Hi: most})), b.rng(k)
	sink := b.sink(b.Store(out, b.sum(b.Mul(b.Load(x, r), w(n, r)), r), list(n), list(n)))
	checkPlan(t, b.Arena, sink, choose(t, b, sink, desc, heuristic.Knobs{}).Plan, desc, map[string]int64{"rows": 37})
}
