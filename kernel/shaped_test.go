package kernel_test

import (
	"slices"
	"testing"

	"tgc/engine"
	"tgc/internal/testkit"
	"tgc/ir"
	"tgc/ir/program"
	"tgc/ir/program/opt"
	"tgc/kernel/lower"
	"tgc/kernel/plan"
	"tgc/kernel/shape"
	"tgc/pass"
	"tgc/target"
)

// shapedCase is a kernel with a plan.
type shapedCase struct {
	name  string
	build func(b *builder) *ir.UOp
	plan  string
	desc  *target.Desc
	vars  map[string]int64
}

// mostShapedProducts bounds kernels of warpgroups among them: each step is run.
const mostShapedProducts = 6

// shapedCases are kernels on which each step of the table does something.
func shapedCases(t *testing.T) []shapedCase {
	pos := map[string]int64{"pos": 4, "T": 5}
	list := []shapedCase{
		{"swap", func(b *builder) *ir.UOp { return attention(b, 2, 6, 16) }, "SWAP s0 1; VECTOR r1 16", avx512, pos},
		{"tiles of K", func(b *builder) *ir.UOp { return superblockMatmul(b, "Q6_K", 8, 8, 512) },
			"UPCAST s0 4; ROLL s0; UPCAST s1 4; STAGE s1 256; FMA", avx512, pos},
		{"four factors", func(b *builder) *ir.UOp {
			return fourFactors(b, func(b *builder, y, w, s, g *ir.UOp) *ir.UOp { return b.Mul(b.Mul(b.Mul(y, w), s), g) })
		}, "STAGE s1; UPCAST s0 3; UPCAST s1 2; ROLL s0; VECTOR r0 16; FMA", avx512, nil},
		{"mask", func(b *builder) *ir.UOp {
			return masked(b, "softmax", 8, 64, 8, func(q, n, start *ir.UOp) *ir.UOp { return b.notAfter(n, b.Add(q, start)) })
		}, "LOCAL s1 8; GROUP r0 2", hopper(t), nil},
		{"arm", func(b *builder) *ir.UOp {
			return chosen(b, 8, 64, 8, func(flag, _, _, sum *ir.UOp) *ir.UOp { return b.Where(b.Lt(b.i(0), flag), sum, b.f(5)) })
		}, "VECTOR s1 8", avx512, nil},
		{"staged sums", func(b *builder) *ir.UOp { return stagedSums(b, 16, 32, 4, 32) }, "UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; MMA r1; FMA", hopper(t), nil},
		{"bytes as halves", func(b *builder) *ir.UOp { return scaledBytes(b, 32, 64, 4, 32) },
			"UPCAST s0 2; LOCAL s0 4; LOCAL s0 2; LOCAL s1 8; UPCAST s1 2; LOCAL s1 2; STAGE s0; STAGE s1; MMA r2; UNROLL r1 2; FMA", hopper(t), nil},
		{"scale and minimum", func(b *builder) *ir.UOp {
			n, r := b.rng(8), b.rng(256)
			term := func(slot int) *ir.UOp {
				return b.sum(b.Mul(b.Load(b.param(0, ir.F32, 256), r), b.Load(b.param(slot, ir.F32, 8, 256), n, r)), r)
			}
			return b.sink(b.Store(b.param(3, ir.F32, 8), b.Sub(term(1), term(2)), list(n), list(n)))
		}, "WARP r0 32; GROUP r0 2; UNROLL r0 2; FMA", hopper(t), nil},
		{"scales of blocks and groups", func(b *builder) *ir.UOp {
			m, n, r, g := b.rng(4), b.rng(16), b.rng(6), b.rng(8)
			x := b.Load(b.param(0, ir.F32, 4, 6, 8), m, r, g)
			groups := b.sum(b.Mul(x, b.Load(b.param(1, ir.F32, 16, 6, 8), n, r, g)), g)
			y := b.sum(b.Mul(b.Load(b.param(2, ir.F32, 16, 6), n, r), groups), r)
			return b.sink(b.Store(b.param(3, ir.F32, 4, 16), y, list(m, n), list(m, n)))
		}, "STAGE s1; VECTOR s1 16; UPCAST s0 2; ROLL s0; FMA", avx512, nil},
	}
	for _, c := range planCases {
		for _, text := range c.plans {
			list = append(list, shapedCase{c.name, c.build, text, avx512, pos})
		}
	}
	for _, c := range gpuCases {
		for _, text := range c.plans {
			list = append(list, shapedCase{"gpu " + c.name, c.build, text, hopper(t), pos})
		}
	}
	for _, c := range matrixCases {
		if c.name == "panels" { // the largest: rounding alone takes all of the tolerance
			continue
		}
		list = append(list, shapedCase{"matrix " + c.name, c.build, c.plan, hopper(t), nil})
	}
	for _, c := range groupCases {
		if c.count <= mostShapedProducts {
			list = append(list, shapedCase{"warpgroup " + c.name, c.build, c.plan, hopper(t), nil})
		}
	}
	for _, c := range flashCases {
		list = append(list, shapedCase{"flash " + c.name, func(b *builder) *ir.UOp { return promptAttention(b, c.shape) }, c.plan, hopper(t),
			map[string]int64{"start": c.vars[0][0], "T": c.vars[0][1]}})
	}
	return list
}

// The text of a kernel between two steps says all that the steps after it need:
// printed after any step, read into another arena and taken on from there, a kernel
// becomes the same program.
func TestShapedTextRoundTrip(t *testing.T) {
	for _, c := range shapedCases(t) {
		t.Run(c.name+"/"+c.plan, func(t *testing.T) {
			b := newBuilder()
			throughText(t, b.Arena, c.build(b), c.plan, c.desc)
		})
	}
}

// So do the kernels of small layers, with the plans that heuristics choose.
func TestShapedTextOfZoo(t *testing.T) {
	seen := make(map[string]bool)
	for _, entry := range testkit.Zoo() {
		c, err := entry.Build(1)
		if err != nil {
			t.Fatal(err)
		}
		for _, desc := range []*target.Desc{avx512, hopper(t)} {
			compiled, err := c.Compile(t.Context(), desc, engine.Config{})
			if err != nil {
				t.Fatalf("%s: %v", entry.Name, err)
			}
			for _, k := range compiled.Kernels {
				text := desc.Name + k.Plan.String() + ir.Text(k.AST)
				if seen[text] || k.AST.Op == ir.OpPar { // several kernels, merged after they are shaped
					continue
				}
				seen[text] = true
				a := ir.NewArena()
				throughText(t, a, a.Import(k.AST), k.Plan.String(), compiled.Target)
			}
		}
	}
	t.Logf("%d kernels", len(seen))
}

func throughText(t *testing.T, a *ir.Arena, sink *ir.UOp, planText string, desc *target.Desc) {
	t.Helper()
	chosen, err := plan.Parse(planText)
	if err != nil {
		t.Fatal(err)
	}
	st := shape.NewState(a, sink, chosen, desc)
	texts := []string{shape.Text(st)}
	for i := range shape.Passes.Rows {
		row := &shape.Passes.Rows[i]
		if err := row.Run(t.Context(), st); err != nil {
			t.Fatalf("%s: %v", row.Name, err)
		}
		if err := shape.Verify(st); err != nil {
			t.Fatalf("after %s: %v\n%s", row.Name, err, shape.Text(st))
		}
		texts = append(texts, shape.Text(st))
	}
	want := programOf(t, st)
	for i, text := range texts {
		if i > 0 && text == texts[i-1] {
			continue
		}
		st, err := shape.Parse(ir.NewArena(), text, desc)
		if err != nil {
			t.Fatalf("before step %d: %v\n%s", i, err, text)
		}
		if again := shape.Text(st); again != text {
			t.Fatalf("before step %d: printed\n%s\nread and printed\n%s", i, text, again)
		}
		for k := i; k < len(shape.Passes.Rows); k++ {
			if err := shape.Passes.Rows[k].Run(t.Context(), st); err != nil {
				t.Fatalf("from the text before step %d: %s: %v", i, shape.Passes.Rows[k].Name, err)
			}
		}
		if got := programOf(t, st); got != want {
			t.Fatalf("from the text before step %d (%s): %s", i, shape.Passes.Rows[min(i, len(shape.Passes.Rows)-1)].Name, firstDifference(want, got))
		}
	}
}

func programOf(t *testing.T, st *shape.State) string {
	t.Helper()
	p, err := lower.Lower(st.Kernel)
	if err != nil {
		t.Fatal(err)
	}
	return program.Print(p)
}

// A step that is not required can be left out: the plan is then refused, or the
// kernel computes the same values. Every step changes one of the kernels.
func TestLeavingOutAStep(t *testing.T) {
	fired := make(map[string]bool)
	for _, c := range shapedCases(t) {
		t.Run(c.name+"/"+c.plan, func(t *testing.T) {
			b := newBuilder()
			sink := c.build(b)
			p, err := plan.Parse(c.plan)
			if err != nil {
				t.Fatal(err)
			}
			traced := &pass.Control{Trace: true}
			if _, err := shape.ApplyWith(t.Context(), b.Arena, sink, p, c.desc, "", traced); err != nil {
				t.Fatal(err)
			}
			for _, row := range shape.Passes.Rows {
				if traced.Firings()[row.Name] == 0 {
					continue
				}
				fired[row.Name] = true
				if !row.Required {
					leaveOut(t, b, sink, p, row.Name, c)
				}
			}
		})
	}
	for _, row := range shape.Passes.Rows {
		if row.From == row.To && !fired[row.Name] {
			t.Errorf("%s changes none of the kernels", row.Name)
		}
	}
}

func leaveOut(t *testing.T, b *builder, sink *ir.UOp, chosen plan.Plan, name string, c shapedCase) {
	t.Helper()
	k, err := shape.ApplyWith(t.Context(), b.Arena, sink, chosen, c.desc, "", &pass.Control{Without: map[string]bool{name: true}, Verify: true})
	if err != nil {
		t.Logf("without %s: %v", name, err)
		return
	}
	p, err := lower.Lower(k)
	if err == nil && c.desc.Kind == target.GPU {
		p, err = opt.Run(p, c.desc)
	}
	if err != nil {
		t.Logf("without %s: %v", name, err)
		return
	}
	t.Logf("without %s", name)
	compare(t, b.Arena, sink, p, chosen, c.vars)
}

// Each sum of a stage that a block has threads enough for has a thread of its own: with lanes, a
// few threads would make four sums each while the others wait.
func TestStageOfSums(t *testing.T) {
	b := newBuilder()
	n, g, j := b.rng(64), b.rng(64), b.rng(32)
	x := b.Load(b.param(0, ir.F32, 64*32), b.Add(b.Mul(g, b.n(32)), j))
	sink := b.sink(b.Store(b.param(2, ir.F32, 64), b.sum(b.Mul(b.Load(b.param(1, ir.F32, 64, 64), n, g), b.sum(x, j)), g), list(n), list(n)))
	p, err := plan.Parse("STAGE r0; WARP r0 32; LOCAL s0 8; FMA")
	if err != nil {
		t.Fatal(err)
	}
	st := shape.NewState(b.Arena, sink, p, hopper(t))
	stages := 0
	for i := range shape.Passes.Rows {
		row := &shape.Passes.Rows[i]
		if err := row.Run(t.Context(), st); err != nil {
			t.Fatalf("%s: %v", row.Name, err)
		}
		if row.Name != "stage-invariants" {
			continue
		}
		for _, axis := range st.Axes {
			if axis.Axis.Kind != plan.StageAxis {
				continue
			}
			stages++
			if want := []plan.Segment{{Size: 64, Role: plan.Local}}; !slices.Equal(axis.Segments, want) {
				t.Errorf("the stage is filled as %v, want %v", axis.Segments, want)
			}
		}
	}
	if stages != 1 {
		t.Errorf("%d axes of stages, want 1", stages)
	}
}
