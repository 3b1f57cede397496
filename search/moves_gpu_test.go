package search

import (
	"math/rand/v2"
	"testing"

	"tgc/engine"
	"tgc/ir"
	"tgc/kernel/plan"
	"tgc/runtime/cuda"
	"tgc/runtime/cuda/emulator"
	"tgc/tensor"
)

// Neighbours of plans with matrix instructions, and of others that threads of a GPU share, are measured, refused or
// another plan's program, on an emulated GPU: never wrong. How long they take there says nothing.
func TestMovesKeepValuesOnGPU(t *testing.T) {
	if testing.Short() {
		t.Skip("the emulator is slow")
	}
	dev := emulatedGPU(t)
	product := func(g *tensor.Graph) *tensor.Tensor {
		return g.Input("x", ir.F32, 32, 96).Linear(g.Input("w", ir.F32, 64, 96))
	}
	packed := func(g *tensor.Graph) *tensor.Tensor {
		return g.Input("x", ir.F32, 32, 96).Linear(g.Packed("w", "Q8_0", 64, 96))
	}
	const rounds = 24
	for _, c := range []struct {
		build func(g *tensor.Graph) *tensor.Tensor
		plan  string
	}{
		{product, "UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; MMA r0; FMA"},
		{product, "UPCAST s0 2; LOCAL s0 4; LOCAL s0 2; LOCAL s1 8; UPCAST s1 2; LOCAL s1 2; STAGE s0; STAGE s1; MMA r0; FMA"},
		{packed, "UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; LOCAL s1 2; STAGE s1; MMA r1; FMA"},
		{packed, "LOCAL s0 8; LOCAL s1 4; GROUP r0 2; VECTOR r1 4; FMA"},
	} {
		g := tensor.NewGraph()
		g.Output("y", c.build(g))
		compiled, err := g.Compile(t.Context(), dev.Target(), engine.Config{})
		if err != nil {
			t.Fatal(err)
		}
		k, start := compiled.Kernels[0], parsed(t, c.plan)
		b, err := NewBench(t.Context(), dev, k.AST, BenchOptions{Limits: DefaultLimits(), Baseline: c.plan})
		if err != nil {
			t.Fatal(err)
		}
		if err := plan.Legality(k.AST, start, dev.Target()); err != nil {
			t.Fatal(err)
		}
		rng, measured := rand.New(rand.NewPCG(3, 7)), 0
		moves := newNeighbours(k.AST, dev.Target(), 7)
		for range rounds {
			p := start
			for range 1 + rng.IntN(2) {
				list := moves.of(p, 64)
				q := list[rng.IntN(len(list))]
				if _, ok := moves.form(q); ok {
					p = q
				}
			}
			out, err := b.Try(t.Context(), []plan.Plan{p})
			if err != nil || out[0].Status == Wrong || out[0].Status == Crashed {
				t.Errorf("%s: %+v, %v", k.Name, out, err)
			}
			if len(out) > 0 && out[0].Status == Measured {
				measured++
			}
		}
		t.Logf("%s: %d of %d measured", c.plan, measured, rounds)
		if measured < rounds/4 {
			t.Errorf("%s: %d of %d neighbours were measured: nothing is tested", c.plan, measured, rounds)
		}
		b.Close()
	}
}

// emulatedGPU is open until the test ends.
func emulatedGPU(t *testing.T) *cuda.Device {
	t.Helper()
	drv, err := emulator.New(emulator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	dev, err := cuda.New(cuda.Options{Driver: drv, Label: "cuda:emu", NoCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dev.Close() })
	return dev
}
