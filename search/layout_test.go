package search

import (
	"context"
	"slices"
	"testing"

	"tgc/engine"
	"tgc/ir"
	"tgc/kernel/plan"
	"tgc/runtime/cpu"
	"tgc/schedule"
	"tgc/search/database"
	"tgc/tensor"
)

// A layout that makes the step faster is taken and stored; one that does not is stored as tried. Neither
// is tried again but by Again; wrong values are not taken.
func TestTryLayout(t *testing.T) {
	for name, c := range map[string]struct {
		us    float64
		wrong bool
		taken bool
	}{"faster": {90, false, true}, "slower": {110, false, false}, "wrong": {90, true, false}} {
		plain, other := twoKernels(t), twoKernelsOf(t, "Q4_0") // of other kernels, as another layout has them
		db, desc := database.Open(t.TempDir()), plain.Compiled.Target
		options := TuneOptions{DB: db, Testers: func(context.Context, *ir.UOp, BenchOptions) (Tester, error) { return allAlike{wrong: c.wrong}, nil }}
		before, after := newTuning(plain, options), newTuning(other, options)
		before.inTurn = func(_ context.Context, steps []*engine.Step, _ map[string]int64, _ Turns) ([][]float64, error) {
			return [][]float64{slices.Repeat([]float64{100}, 9), slices.Repeat([]float64{c.us}, 9)}, nil
		}
		d := schedule.Decision{Rule: schedule.WeightLayout, Value: "0123456789abcdef", Choice: 8}
		if LayoutTried(d, desc, options) {
			t.Errorf("%s: tried before", name)
		}
		taken, err := before.layout(t.Context(), after, d, desc)
		if err != nil || (taken != nil) != c.taken || taken != nil && (taken.Before != 100 || taken.After != c.us || taken.Saved < 0.05) {
			t.Errorf("%s: %+v, %v", name, taken, err)
		}
		list, bad := db.Decisions(desc)
		if list.Has(d) != c.taken || len(bad) > 0 || !LayoutTried(d, desc, options) {
			t.Errorf("%s: stored %v, %v, tried %t", name, list.List(), bad, LayoutTried(d, desc, options))
		}
		if options.Again = true; LayoutTried(d, desc, options) {
			t.Errorf("%s: not tried again", name)
		}
	}
}

// What a step was before is the step with the layout by price, whether plans were taken beside or not.
func TestTunedIncludesLayout(t *testing.T) {
	l := &TunedLayout{Before: 200, After: 100, Spread: [2][2]float64{{190, 210}, {95, 105}}, Saved: 0.5}
	for name, c := range map[string]struct{ tuned, want Tuned }{
		"no plan": {Tuned{}, Tuned{Before: 200, After: 100, Spread: l.Spread, Saved: 0.5}},
		"plans":   {Tuned{Before: 110, After: 88, Spread: [2][2]float64{{100, 120}, {80, 90}}, Saved: 0.2}, Tuned{Before: 220, After: 88, Spread: [2][2]float64{{200, 240}, {80, 90}}, Saved: 0.6}},
	} {
		got := c.tuned
		got.Include(l)
		if got.Before != c.want.Before || got.After != c.want.After || got.Spread != c.want.Spread || got.Saved != c.want.Saved || len(got.Decisions) != 1 {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// A kernel whose step has weights with interleaved rows is judged with such weights.
func TestBenchWithRecords(t *testing.T) {
	dev, err := cpu.New(t.Context(), cpu.Options{Threads: 1, CacheDir: t.TempDir()})
	if err != nil {
		t.Skip(err)
	}
	defer dev.Close()
	if !dev.Target().CanInterleave() {
		t.Skip("no registers of 16 words")
	}
	g := tensor.NewGraph()
	g.Output("y", g.Input("x", ir.F32, 512).Linear(g.Packed("w", "Q6_K", 64, 512)))
	c, err := g.Compile(t.Context(), dev.Target(), engine.Config{Records: 8})
	if err != nil {
		t.Fatal(err)
	}
	k := c.Kernels[0]
	b, err := NewBench(t.Context(), dev, k.AST, BenchOptions{Limits: DefaultLimits(), Baseline: k.Plan.String(), Records: c.Target.Records})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	out, err := b.Try(t.Context(), []plan.Plan{k.Plan})
	if err != nil || out[0].Status != Measured || b.kernel.Target.Records != 8 {
		t.Errorf("%+v, %v, records of %d bits", out, err, b.kernel.Target.Records)
	}
}
