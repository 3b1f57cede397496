package search

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"tgc/engine"
	"tgc/ir"
	"tgc/search/database"
)

// lasting is a tuning of a step that takes so long, by a tester that counts.
func lasting(t *testing.T, us float64, findings map[database.Key]*TunedKernel, tried *int) *tuning {
	options := TuneOptions{Search: DefaultOptions(), Budget: time.Hour, Testers: func(context.Context, *ir.UOp, BenchOptions) (Tester, error) { return byLength{tried}, nil }}
	tn := newTuning(twoKernels(t), options)
	tn.findings = findings
	tn.inTurn = func(_ context.Context, steps []*engine.Step, _ map[string]int64, _ Turns) (times [][]float64, err error) {
		for _, s := range steps {
			sum := us
			for _, k := range s.Compiled.Kernels {
				sum += us / 1e4 * lengthOf(k.Plan)
			}
			times = append(times, []float64{sum, sum, sum, sum, sum, sum, sum, sum, sum})
		}
		return times, nil
	}
	return tn
}

// Steps share what they find, and the time, by what they take and how often they run.
func TestTuneSteps(t *testing.T) {
	findings, tried := make(map[database.Key]*TunedKernel), make([]int, 3)
	list := []*tuning{lasting(t, 100, findings, &tried[0]), lasting(t, 200, findings, &tried[1]), lasting(t, 1, findings, &tried[2])}
	list[1].name = "second"
	tuned, err := tuneAll(t.Context(), list, []NamedStep{{Times: 6}, {}, {}})
	if err != nil {
		t.Fatal(err)
	}
	if tried[0] == 0 || tried[1] != 0 || tried[2] != 0 {
		t.Errorf("%v were tried, want some for the first step only", tried)
	}
	for i, step := range tuned[1].Kernels {
		if want := tuned[0].Kernels[i].After.Plan; step.After.Plan != want || !strings.HasPrefix(step.Note, "as in another step") {
			t.Errorf("%s: plan %q, %s, want %q of the first step", step.Kernel.Name, step.After.Plan, step.Note, want)
		}
	}
	if tuned[1].Saved <= 0 {
		t.Errorf("the second step: %+v", tuned[1])
	}
	// 600 of 801 parts, 200 of the others and a quarter of a third, of which the first has used
	// nothing of its own.
	left := time.Until(list[0].end).Hours()
	if want := 600.0 / 801 / (600.0/801 + 200.0/801 + 0.25/3); left < want-0.01 || left > want {
		t.Errorf("%v hours for the first step, want %v", left, want)
	}
	if left := time.Until(list[2].end).Hours(); left < 0.99 {
		t.Errorf("%v hours for the last step, want what is left", left)
	}
}

// An error names the step.
func TestTuneStepsNamesTheStep(t *testing.T) {
	step := twoKernels(t)
	failing := step
	failing.Capture = func(context.Context, *engine.Compiled) (*engine.Step, error) { return nil, errors.New("no memory") }
	_, err := TuneSteps(t.Context(), []NamedStep{{Step: step, Name: "decode"}, {Step: failing, Name: "prompt:8"}}, TuneOptions{Search: DefaultOptions(), Budget: time.Second})
	if err == nil || err.Error() != "prompt:8: no memory" {
		t.Errorf("error %v", err)
	}
}

// What differs between two programs is told, and nothing of figures that are not known.
func TestWhy(t *testing.T) {
	before := Outcome{Plan: "a", Time: 10, Figures: &Figures{Instructions: 1000, Bytes: 1e6, Blocks: 4, Threads: 128, Registers: 64, Occupancy: 0.5}}
	after := Outcome{Plan: "b", Time: 5, Figures: &Figures{Instructions: 500, Bytes: 1e6, Blocks: 4, Threads: 256, Registers: 64, Occupancy: 1}}
	if got, want := why(before, after), "instructions 1000 -> 500, threads 128 -> 256, occupancy % 50 -> 100, GB/s 100 -> 200"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	after.Figures = nil
	if got := why(before, after); got != "" {
		t.Errorf("%q of unknown figures", got)
	}
}
