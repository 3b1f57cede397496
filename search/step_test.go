package search

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tgc/engine"
	"tgc/ir"
	"tgc/kernel/plan"
	"tgc/runtime"
	"tgc/runtime/interp"
	"tgc/search/database"
	"tgc/tensor"
)

// byLength is a tester by which shorter plans are faster.
type byLength struct{ tried *int }

func lengthOf(p plan.Plan) float64 { return 10 + float64(len(p.String())) }

func (b byLength) Try(_ context.Context, plans []plan.Plan) (out []Outcome, err error) {
	*b.tried += len(plans)
	for _, p := range plans {
		out = append(out, Outcome{Plan: p.String(), Status: Measured, Time: lengthOf(p)})
	}
	return out, nil
}

func (b byLength) Compare(_ context.Context, plans []plan.Plan, rounds int) (times [][]float64, err error) {
	for _, p := range plans {
		times = append(times, slices.Repeat([]float64{lengthOf(p)}, rounds))
	}
	return times, nil
}

func (b byLength) Close() error { return nil }

// twoKernels is a step of two kernels on the interpreter.
func twoKernels(t *testing.T) Step { return twoKernelsOf(t, "Q8_0") }

func twoKernelsOf(t *testing.T, format string) Step {
	t.Helper()
	return twoKernelsOn(t, interp.New(interp.Options{}), format)
}

func twoKernelsOn(t *testing.T, dev runtime.Device, format string) Step {
	t.Helper()
	g := tensor.NewGraph()
	hidden := g.Input("x", ir.F32, 96).Linear(g.Packed("w", format, 64, 96)).Silu().Contiguous()
	g.Output("y", hidden.Linear(g.Packed("v", "Q8_0", 35, 64)))
	c, err := g.Compile(t.Context(), dev.Target(), engine.Config{})
	if err != nil || len(c.Kernels) != 2 {
		t.Fatalf("%d kernels, %v, want 2", len(c.Kernels), err)
	}
	step, free, err := GraphStep(t.Context(), dev, c, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(free)
	return step
}

// tuneWith tunes a step whose time is the sum of what gain says of its plans.
func tuneWith(t *testing.T, step Step, db *database.DB, gain func(p plan.Plan) float64, change func(*TuneOptions)) (*Tuned, int) {
	t.Helper()
	tried := 0
	options := TuneOptions{Search: DefaultOptions(), Budget: time.Minute, DB: db, Testers: func(context.Context, *ir.UOp, BenchOptions) (Tester, error) { return byLength{&tried}, nil }}
	if change != nil {
		change(&options)
	}
	tn := newTuning(step, options)
	tn.inTurn = func(_ context.Context, steps []*engine.Step, _ map[string]int64, _ Turns) (times [][]float64, err error) {
		for _, s := range steps {
			us := 0.0
			for _, k := range s.Compiled.Kernels {
				us += gain(k.Plan)
			}
			times = append(times, slices.Repeat([]float64{us}, 9))
		}
		return times, nil
	}
	tuned, err := tuneAll(t.Context(), []*tuning{tn}, []NamedStep{{}})
	if err != nil {
		t.Fatal(err)
	}
	return tuned[0], tried
}

// What makes the step faster is stored and replayed; a second run searches nothing.
func TestTuneStoresWhatTheStepGains(t *testing.T) {
	step, db := twoKernels(t), database.Open(t.TempDir())
	tuned, tried := tuneWith(t, step, db, lengthOf, nil)
	if tried < 20 || tuned.Saved <= 0 || tuned.After >= tuned.Before {
		t.Errorf("%d tried, %v us -> %v us", tried, tuned.Before, tuned.After)
	}
	for _, k := range tuned.Kernels {
		if k.After.Plan != "" || !k.Stored || !strings.Contains(k.Note, "the step takes") {
			t.Errorf("%s: %+v, want the empty plan", k.Kernel.Name, k)
		}
	}
	again, tried := tuneWith(t, step, db, lengthOf, nil)
	if tried != 0 || again.After != tuned.After {
		t.Errorf("the second run tried %d, %v us, want none and %v", tried, again.After, tuned.After)
	}
	if _, tried = tuneWith(t, step, db, lengthOf, func(o *TuneOptions) { o.Again = true }); tried == 0 {
		t.Error("nothing is searched again")
	}
	replayed, err := step.Compiled.Replan(t.Context(), engine.Config{DB: db.Dir()})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range replayed.Kernels {
		if k.Origin != engine.FromDatabase || len(k.Plan.Opts) > 0 {
			t.Errorf("%s: %q from %s", k.Name, k.Plan, k.Origin)
		}
	}
}

// A plan that wins by itself and not in the step is not taken, and not searched again.
func TestTuneRejectsWhatTheStepDoesNotGain(t *testing.T) {
	step, db := twoKernels(t), database.Open(t.TempDir())
	slower := func(p plan.Plan) float64 { return 1000 - lengthOf(p) }
	tuned, _ := tuneWith(t, step, db, slower, nil)
	for _, k := range tuned.Kernels {
		if k.After.Plan != k.Before.Plan || !strings.Contains(k.Note, "not in the step") {
			t.Errorf("%s: %+v", k.Kernel.Name, k)
		}
	}
	replayed, err := step.Compiled.Replan(t.Context(), engine.Config{DB: db.Dir()})
	if err != nil || replayed.Kernels[0].Origin != engine.FromHeuristic {
		t.Errorf("origin %s, %v", replayed.Kernels[0].Origin, err)
	}
	if _, tried := tuneWith(t, step, db, slower, nil); tried != 0 {
		t.Errorf("%d tried again", tried)
	}
}

// Imported entries are candidates, which the step confirms.
func TestTuneConfirmsImportedEntries(t *testing.T) {
	step, from, to := twoKernels(t), database.Open(t.TempDir()), database.Open(t.TempDir())
	for _, k := range step.Compiled.Kernels {
		e := database.NewEntry(k.AST, step.Compiled.Target)
		e.Plan, e.Source = "FMA", "0"
		if err := from.Put(e); err != nil {
			t.Fatal(err)
		}
	}
	var text strings.Builder
	if _, _, err := from.Export(&text); err != nil {
		t.Fatal(err)
	}
	if n, err := to.Import(strings.NewReader(text.String())); n != 2 || err != nil {
		t.Fatalf("%d imported, %v", n, err)
	}
	replayed, err := step.Compiled.Replan(t.Context(), engine.Config{DB: to.Dir()})
	if err != nil || replayed.Kernels[0].Origin != engine.FromHeuristic {
		t.Errorf("an imported entry is used: %s, %v", replayed.Kernels[0].Origin, err)
	}
	tuned, _ := tuneWith(t, step, to, func(p plan.Plan) float64 { return lengthOf(p) }, func(o *TuneOptions) { o.Search.Round = 1 })
	if e, ok, _ := to.Find(database.KeyOf(tuned.Kernels[0].Kernel.AST, step.Compiled.Target)); !ok || e.Unproven {
		t.Errorf("entry %+v, want a proven one", e)
	}
}

// A kernel that cannot be judged, and the end of the time, leave plans as they are.
func TestTuneGoesOn(t *testing.T) {
	step := twoKernels(t)
	tuned, _ := tuneWith(t, step, nil, lengthOf, func(o *TuneOptions) {
		o.Testers = func(context.Context, *ir.UOp, BenchOptions) (Tester, error) { return nil, errWrong }
	})
	for _, k := range tuned.Kernels {
		if !strings.Contains(k.Note, "cannot be judged") || k.After.Plan != k.Before.Plan {
			t.Errorf("%s: %+v", k.Kernel.Name, k)
		}
	}
	tuned, tried := tuneWith(t, step, nil, lengthOf, func(o *TuneOptions) { o.Budget = 0 })
	if tried != 0 || tuned.Kernels[0].Note != "no time left" {
		t.Errorf("%d tried without time: %s", tried, tuned.Kernels[0].Note)
	}
}

// A database that cannot be written costs no result: plans are taken, and the rest is searched.
func TestTuneWithoutRoom(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tuned, _ := tuneWith(t, twoKernels(t), database.Open(filepath.Join(file, "plans")), lengthOf, nil)
	if tuned.Unstored == nil || tuned.Saved <= 0 {
		t.Errorf("%v, saved %v, want an error and a gain", tuned.Unstored, tuned.Saved)
	}
	for _, k := range tuned.Kernels {
		if k.After.Plan != "" || k.Stored {
			t.Errorf("%s: plan %q, stored %t", k.Kernel.Name, k.After.Plan, k.Stored)
		}
	}
}

// Times that vary more than they differ are no gain.
func TestSaves(t *testing.T) {
	for name, c := range map[string]struct {
		before, after []float64
		saves         bool
	}{
		"less":                           {[]float64{10, 11, 10, 11, 10, 11, 10, 11, 10}, []float64{9, 10, 9, 10, 9, 10, 9, 10, 9}, true},
		"the same":                       {[]float64{10, 11, 10, 11}, []float64{10, 11, 10, 11}, false},
		"noise":                          {[]float64{10, 11, 10, 11, 10, 11, 10, 11, 10}, []float64{11, 10, 10.5, 10, 9, 12, 10, 9, 10}, false},
		"less, in three of five of many": {slices.Repeat([]float64{100}, 250), slices.Repeat([]float64{95, 104, 95, 97, 104}, 50), true},
		"less, in three of five of few":  {slices.Repeat([]float64{100}, 10), slices.Repeat([]float64{95, 104, 95, 97, 104}, 2), false},
		"one far off":                    {[]float64{10, 10, 10, 10, 100, 10, 10, 10, 10}, slices.Repeat([]float64{10}, 9), false},
	} {
		if got := saves(c.before, c.after); (got > 0) != c.saves {
			t.Errorf("%s: saves %v", name, got)
		}
	}
}

// TGC_BEAM: a kernel is searched once, when its plan is asked for, and then in the database.
func TestOnline(t *testing.T) {
	step, db, tried := twoKernels(t), database.Open(t.TempDir()), 0
	online := &Online{Search: DefaultOptions(), DB: db, Testers: func(context.Context, *ir.UOp, BenchOptions) (Tester, error) { return byLength{&tried}, nil }}
	var counts []int
	for range 2 {
		c, err := step.Compiled.Replan(t.Context(), engine.Config{Plans: online, DB: db.Dir()})
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range c.Kernels {
			if len(k.Plan.Opts) > 0 || k.Origin == engine.FromHeuristic {
				t.Errorf("%s: %q from %s", k.Name, k.Plan, k.Origin)
			}
		}
		counts = append(counts, tried)
		online.known = nil // another process
	}
	if counts[0] == 0 || counts[1] != counts[0] {
		t.Errorf("%v were tried, want some, once", counts)
	}
}
