package search

import (
	"errors"
	"math/rand/v2"
	"testing"

	"tgc/engine"
	"tgc/ir"
	"tgc/kernel"
	"tgc/kernel/plan"
	"tgc/target"
)

// lowerTo is the source that a plan gives.
func lowerTo(t testing.TB, k *engine.Kernel, p plan.Plan, desc *target.Desc) (string, error) {
	t.Helper()
	arena := ir.NewArena()
	program, err := kernel.LowerWith(t.Context(), arena, arena.Import(k.AST), p, desc, engine.ProgramName, nil)
	if err != nil {
		return "", err
	}
	return engine.Source(program, desc)
}

// Plans whose canonical forms are equal give one source, and what has no canonical form though it
// is legal is refused by lowering: nothing is lost by looking before lowering.
func TestCanonicalIsSound(t *testing.T) {
	same, refused, walked := 0, 0, 0
	for _, name := range []string{"llvm:x86-64-v4", "ptx:sm_90a"} {
		desc, err := target.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		var kernels []*engine.Kernel
		for i := range smallKernels {
			kernels = append(kernels, smallKernel(t, i, desc).Kernels...)
		}
		rng := rand.New(rand.NewPCG(1, 5))
		for range 14 {
			k := kernels[rng.IntN(len(kernels))]
			reader := plan.NewReader(k.AST, desc)
			moves := newNeighbours(k.AST, desc, rng.Uint64())
			first := make(map[string]plan.Plan)
			for range 24 {
				// Two moves that need not be legal together: what searches ask.
				opts := k.Plan.Opts[:rng.IntN(len(k.Plan.Opts)+1)]
				for range 2 {
					if list := moves.single(opts); len(list) > 0 {
						opts = list[rng.IntN(len(list))]
					}
				}
				q := reader.Keep(opts)
				walked++
				c, err := reader.Canonical(q)
				source, lowered := lowerTo(t, k, q, desc)
				if err != nil {
					if refused++; lowered == nil {
						t.Fatalf("%s: %s has no canonical form and a program: %v", k.Name, q, err)
					}
					continue
				}
				other, ok := first[c.Text]
				if first[c.Text] = q; !ok || other.String() == q.String() {
					continue
				}
				same++
				if want, err := lowerTo(t, k, other, desc); source != want || (err == nil) != (lowered == nil) {
					t.Fatalf("%s on %s: %s and %s have the same canonical form and other sources (%v, %v):\n%s", k.Name, name, q, other, lowered, err, c.Text)
				}
			}
		}
	}
	t.Logf("%d plans, %d have a form that another one has, %d have none", walked, same, refused)
	if same == 0 || refused == 0 {
		t.Errorf("%d same and %d without a form of %d: nothing is tested", same, refused, walked)
	}
}

// What is written in other ways is one plan; what is not, is not.
func TestCanonical(t *testing.T) {
	desc := llvmTarget(t)
	k := smallKernel(t, 0, desc).Kernels[0]
	reader := plan.NewReader(k.AST, desc)
	text := func(plan string) string {
		c, err := reader.Canonical(parsed(t, plan))
		if err != nil {
			t.Fatalf("%s: %v", plan, err)
		}
		return c.Text
	}
	for _, pair := range [][2]string{
		{"UPCAST s0 4", "UNROLL s0 4"}, {"VECTOR r0 16; UPCAST s0 4", "UPCAST s0 4; VECTOR r0 16"}, {"WARP r0 4", "GROUP r0 4"},
		{"VECTOR r0 16; UNROLL r0 1", "VECTOR r0 16"}, {"UPCAST s0 35", "UPCAST s0"}, {"UPCAST s0 35; ROLL s0", "UPCAST s0"}, {"FMA; FMA", "FMA"},
	} {
		if text(pair[0]) != text(pair[1]) {
			t.Errorf("%q is\n%s%q is\n%s", pair[0], text(pair[0]), pair[1], text(pair[1]))
		}
	}
	for _, pair := range [][2]string{{"UPCAST s0 4", "UPCAST s0 5"}, {"VECTOR r0 16; UNROLL r0 2", "UNROLL r0 2; VECTOR r0 16"}, {"ROLL s0", ""}, {"PREFETCH p2 1024", "PREFETCH p2 2048"}} {
		if text(pair[0]) == text(pair[1]) {
			t.Errorf("%q and %q are both\n%s", pair[0], pair[1], text(pair[0]))
		}
	}
	c, err := reader.Canonical(parsed(t, "UPCAST s0; UNROLL r0 4; VECTOR r0 2"))
	if err != nil || c.Copies != 4*35 {
		t.Errorf("%d copies, %v, want 140", c.Copies, err)
	}
	if _, err := reader.Canonical(parsed(t, "VECTOR r0 16; WARP r0 32")); err == nil || errors.Is(err, errWrong) {
		t.Errorf("512 elements of 192: %v", err)
	}
}

func parsed(t testing.TB, text string) plan.Plan {
	t.Helper()
	p, err := plan.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func llvmTarget(t testing.TB) *target.Desc {
	t.Helper()
	desc, err := target.Parse("llvm:x86-64-v4")
	if err != nil {
		t.Fatal(err)
	}
	return desc
}
