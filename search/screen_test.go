package search

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"tgc/engine"
	"tgc/ir"
	"tgc/kernel/plan"
	"tgc/search/database"
)

// Of many plans that take as long by themselves the step finds the one that it likes.
func TestTuneScreens(t *testing.T) {
	var offered []plan.Plan
	for _, width := range []int{2, 4, 8, 16} {
		for _, rest := range []string{"", "; UNROLL r0 2", "; FMA", "; UNROLL r0 2; FMA"} {
			offered = append(offered, parsed(t, fmt.Sprintf("VECTOR r0 %d%s", width, rest)))
		}
	}
	liked := offered[len(offered)-1].String()
	likes := func(p plan.Plan) float64 {
		if p.String() == liked {
			return 90
		}
		return 100
	}
	tuned, _ := tuneWith(t, twoKernels(t), nil, likes, func(o *TuneOptions) {
		o.Testers = func(context.Context, *ir.UOp, BenchOptions) (Tester, error) { return allAlike{}, nil }
		o.Search.Extra, o.Search.Only = offered, true
	})
	for _, k := range tuned.Kernels {
		if k.After.Plan != liked {
			t.Errorf("%s: %q, %s, want %q", k.Kernel.Name, k.After.Plan, k.Note, liked)
		}
	}
}

// Neighbours of a plan that the step likes are tried in it, too.
func TestTuneGoesOnFromWhatTheStepLikes(t *testing.T) {
	likes := func(p plan.Plan) float64 {
		switch text := p.String(); {
		case text == "VECTOR r0 2":
			return 90
		case strings.Contains(text, "VECTOR r0 2"):
			return 80
		}
		return 100
	}
	begun := 0
	tuned, _ := tuneWith(t, twoKernels(t), nil, likes, func(o *TuneOptions) {
		o.Testers = func(context.Context, *ir.UOp, BenchOptions) (Tester, error) { begun++; return allAlike{}, nil }
		o.Search.Extra, o.Search.Priced, o.Search.Round = []plan.Plan{parsed(t, "VECTOR r0 2")}, 0, 0
	})
	if begun != len(tuned.Kernels) {
		t.Errorf("%d testers of %d kernels", begun, len(tuned.Kernels))
	}
	for i, k := range tuned.Kernels {
		if want := []string{"the step takes 10.00 % less", "the step takes 11.11 % less"}[i]; likes(parsed(t, k.After.Plan)) != 80 || k.Note != want {
			t.Errorf("%s: %q, %s, want %s", k.Kernel.Name, k.After.Plan, k.Note, want)
		}
	}
}

// Divisions of the first cache, by which nothing is faster by itself, are tried in the step.
func TestTuneDividesCaches(t *testing.T) {
	const division = "CARVEOUT 100"
	tuned, _ := tuneWith(t, twoKernelsOn(t, emulatedGPU(t), "Q8_0"), nil, func(p plan.Plan) float64 {
		if strings.Contains(p.String(), division) {
			return 90
		}
		return 100
	}, func(o *TuneOptions) {
		o.Testers = func(context.Context, *ir.UOp, BenchOptions) (Tester, error) { return allAlike{}, nil }
		o.Search.Priced, o.Search.Round = 0, 0
	})
	for _, k := range tuned.Kernels {
		if k.After.Plan == k.Before.Plan || !strings.Contains(k.After.Plan, division) {
			t.Errorf("%s: %q, %s, want %s", k.Kernel.Name, k.After.Plan, k.Note, division)
		}
	}
}

// Plans of other blocks and threads come before more of the same, and those that take far longer not at all.
func TestContenders(t *testing.T) {
	of := func(plan string, us float64, threads int64) Outcome {
		return Outcome{Plan: plan, Time: us, Figures: &Figures{Blocks: 132, Threads: threads}}
	}
	found := &Result{Before: of("heuristic", 10, 256), Best: []Outcome{of("a", 10, 512), of("heuristic", 10, 256), of("b", 10.1, 512), of("c", 11, 128), of("d", 12, 128), of("slow", 15, 64)}}
	for i := range 2 * screened {
		found.Best = append(found.Best, of(fmt.Sprint("more", i), 12.5, 512))
	}
	var got []string
	for _, o := range contenders(found) {
		got = append(got, o.Plan)
	}
	if want := []string{"a", "c", "b", "d", "more0"}; len(got) != screened || !slices.Equal(got[:len(want)], want) {
		t.Errorf("%d: %q, want %d that begin with %q", len(got), got, screened, want)
	}
}

// Programs have the name that they have in the step, and the source that they have under any.
func TestBenchNames(t *testing.T) {
	step := twoKernels(t)
	b, ctx := newEstimating(t, step.Compiled, 1)
	plain := b.lower(ctx, plan.Plan{})
	b.options.Name = "reduce_64_r_96"
	named := b.lower(ctx, plan.Plan{})
	if named.program.Name != "reduce_64_r_96" || plain.program.Name != engine.ProgramName || named.outcome.Source != plain.outcome.Source {
		t.Errorf("%s and %s, %s and %s", named.program.Name, plain.program.Name, named.outcome.Source, plain.outcome.Source)
	}
}

// tuneBy tunes a step whose times a function says.
func tuneBy(t *testing.T, step Step, db *database.DB, us func(s *engine.Step, vars map[string]int64, end bool) float64) *Tuned {
	t.Helper()
	tried := 0
	tn := newTuning(step, TuneOptions{Search: DefaultOptions(), Budget: 1 << 40, DB: db, Testers: func(context.Context, *ir.UOp, BenchOptions) (Tester, error) { return byLength{&tried}, nil }})
	tn.inTurn = func(_ context.Context, steps []*engine.Step, vars map[string]int64, _ Turns) (times [][]float64, err error) {
		end := len(steps) == 3 && steps[0] == steps[1] // without decisions, and with none taken
		for _, s := range steps {
			times = append(times, slices.Repeat([]float64{us(s, vars, end)}, 9))
		}
		return times, nil
	}
	tuned, err := tuneAll(t.Context(), []*tuning{tn}, []NamedStep{{}})
	if err != nil {
		t.Fatal(err)
	}
	return tuned[0]
}

// lengths is the time of a step whose kernels take as long as their plans are.
func lengths(s *engine.Step) (us float64) {
	for _, k := range s.Compiled.Kernels {
		us += lengthOf(k.Plan)
	}
	return us
}

// Plans that were faster one by one, and are slower in the end, are given back, also by the database.
func TestTuneGivesBack(t *testing.T) {
	db := database.Open(t.TempDir())
	step := twoKernels(t)
	tuned := tuneBy(t, step, db, func(s *engine.Step, _ map[string]int64, end bool) float64 {
		if end {
			return 1000 - lengths(s)
		}
		return lengths(s)
	})
	if tuned.Saved != 0 || tuned.After != tuned.Before || len(tuned.plans) != 0 {
		t.Errorf("%v us -> %v us, %d plans, want the heuristics'", tuned.Before, tuned.After, len(tuned.plans))
	}
	for _, k := range tuned.Kernels {
		if k.After.Plan != k.Before.Plan || !strings.Contains(k.Note, "not taken") {
			t.Errorf("%s: %q, %s", k.Kernel.Name, k.After.Plan, k.Note)
		}
	}
	replayed, err := step.Compiled.Replan(t.Context(), engine.Config{DB: db.Dir()})
	if err != nil || replayed.Kernels[0].Origin != engine.FromHeuristic {
		t.Errorf("the database has %s, %v", replayed.Kernels[0].Origin, err)
	}
}

// A plan that is faster at this length and slower at the largest is not taken, of a kernel that depends on it.
func TestTuneRejectsWhatIsSlowerFar(t *testing.T) {
	step := normed(t, engine.Config{})
	tuned := tuneBy(t, step, nil, func(s *engine.Step, vars map[string]int64, _ bool) float64 {
		us := 0.0
		for _, k := range s.Compiled.Kernels {
			if n := lengthOf(k.Plan); vars["n"] == 64 && len(symbolValues(k.AST)) > 1 {
				us += 1000 - n
			} else {
				us += n
			}
		}
		return us
	})
	symbols := 0
	for _, k := range tuned.Kernels {
		far := len(symbolValues(k.Kernel.AST)) > 1
		if far {
			symbols++
		}
		if taken := k.After.Plan != k.Before.Plan; taken == far || far != strings.Contains(k.Note, "where symbols are largest") {
			t.Errorf("%s: %q, %s", k.Kernel.Name, k.After.Plan, k.Note)
		}
	}
	if symbols == 0 || symbols == len(tuned.Kernels) {
		t.Errorf("%d of %d kernels have symbols, want some", symbols, len(tuned.Kernels))
	}
}
