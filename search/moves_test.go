package search

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"tgc/engine"
	"tgc/ir"
	"tgc/kernel/plan"
	"tgc/runtime/interp"
	"tgc/target"
	"tgc/tensor"
)

// smallKernels are of odd sizes: rows that no lanes divide, 6 and 9 blocks a row.
var smallKernels = []func(g *tensor.Graph) *tensor.Tensor{
	func(g *tensor.Graph) *tensor.Tensor {
		return g.Input("x", ir.F32, 6*32).Linear(g.Packed("w", "Q8_0", 35, 6*32))
	},
	func(g *tensor.Graph) *tensor.Tensor {
		return g.Input("x", ir.F32, 9*32).Linear(g.Packed("w", "Q4_0", 6, 9*32)).Silu()
	},
	func(g *tensor.Graph) *tensor.Tensor {
		return g.Input("x", ir.F32, 35, 9).MatMul(g.Input("y", ir.F32, 9, 6))
	},
	func(g *tensor.Graph) *tensor.Tensor { return g.Input("x", ir.F32, 9, 35).Sum(0) },
	func(g *tensor.Graph) *tensor.Tensor { return g.Input("x", ir.F32, 6, 35).Softmax(1) },
	func(g *tensor.Graph) *tensor.Tensor { return g.Input("x", ir.F32, 35).Exp() },
}

func smallKernel(t testing.TB, i int, desc *target.Desc) *engine.Compiled {
	t.Helper()
	g := tensor.NewGraph()
	g.Output("y", smallKernels[i](g))
	c, err := g.Compile(t.Context(), desc, engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Every neighbour is legal, is read back from its text, and keeps the values: it is measured,
// refused, or some other plan's program, but never wrong.
func TestMovesKeepValues(t *testing.T) {
	dev := interp.New(interp.Options{})
	type small struct {
		kernel *engine.Kernel
		bench  *Bench
	}
	var kernels []small
	for i := range smallKernels {
		for _, k := range smallKernel(t, i, dev.Target()).Kernels {
			b, err := NewBench(t.Context(), dev, k.AST, BenchOptions{Limits: DefaultLimits(), Baseline: k.Plan.String()})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { b.Close() })
			kernels = append(kernels, small{k, b})
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		k := rapid.SampledFrom(kernels).Draw(rt, "kernel")
		seed := rapid.Uint64().Draw(rt, "seed")
		drafts, err := newDrafts(k.kernel.AST, dev.Target(), seed)
		if err != nil {
			rt.Fatal(err)
		}
		begin := append(drafts.draw(1), k.kernel.Plan, plan.Plan{})
		p := begin[rapid.IntRange(0, len(begin)-1).Draw(rt, "begin")]
		moves := newNeighbours(k.kernel.AST, dev.Target(), seed)
		for range rapid.IntRange(1, 3).Draw(rt, "moves") {
			list := moves.of(p, math.MaxInt)
			if len(list) == 0 {
				rt.Fatalf("%s has no neighbours", p)
			}
			p = list[rapid.IntRange(0, len(list)-1).Draw(rt, "which")]
		}
		if err := plan.Legality(k.kernel.AST, p, dev.Target()); err != nil {
			rt.Fatalf("%s: %v", p, err)
		}
		if again, err := plan.Parse(p.String()); err != nil || again.String() != p.String() {
			rt.Fatalf("%s is read as %s, %v", p, again, err)
		}
		out, err := k.bench.Try(t.Context(), []plan.Plan{p})
		if err != nil || out[0].Status == Wrong || out[0].Status == Crashed || out[0].Status == TooLong {
			rt.Fatalf("%s: %+v, %v", k.kernel.Name, out, err)
		}
	})
}

// Each kind of move is there: amounts, factors that move, roles, places, drops, additions.
func TestMoves(t *testing.T) {
	desc, err := target.Parse("ptx:sm_90")
	if err != nil {
		t.Fatal(err)
	}
	k := smallKernel(t, 0, desc).Kernels[0]
	start, err := plan.Parse("WARP r0 2; UNROLL r0 4; LOCAL s0 16")
	if err != nil {
		t.Fatal(err)
	}
	if err := plan.Legality(k.AST, start, desc); err != nil {
		t.Fatal(err)
	}
	found, moves := make(map[string]bool), newNeighbours(k.AST, desc, 1)
	form := func(p plan.Plan) string {
		text, _ := moves.form(p)
		return text
	}
	for _, p := range moves.of(start, math.MaxInt) {
		found[form(p)] = true
	}
	if few := newNeighbours(k.AST, desc, 1).of(start, 8); len(few) < 8 || len(few) > 12 {
		t.Errorf("%d neighbours, want 8 by one move and a few by two", len(few))
	}
	for _, want := range []string{
		"WARP r0 2; UNROLL r0 4; LOCAL s0 32", "WARP r0 2; UNROLL r0 5; LOCAL s0 16", "WARP r0 4; UNROLL r0 2; LOCAL s0 16", "UNROLL r0 8; LOCAL s0 16",
		"GROUP r0 2; UNROLL r0 4; LOCAL s0 16", "UNROLL r0 4; WARP r0 2; LOCAL s0 16", "UNROLL r0 4; LOCAL s0 16",
		"WARP r0 2; UNROLL r0 4; LOCAL s0 16; FMA", "WARP r0 2; UNROLL r0 4; LOCAL s0 16; UPCAST s0 2",
	} {
		if !found[form(parsed(t, want))] {
			t.Errorf("no move makes %q", want)
		}
	}
}
