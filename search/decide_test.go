package search

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"tgc/engine"
	"tgc/ir"
	"tgc/runtime/interp"
	"tgc/schedule"
	"tgc/search/database"
	"tgc/tensor"
)

// normed is a step with a norm before a product.
func normed(t *testing.T, config engine.Config) Step {
	t.Helper()
	g := tensor.NewGraph()
	x := g.Input("x", ir.F32, 64, 96).Slice(0, g.Dims(0)[0], g.Var("n", 1, 64)).Sum(0).Reshape(1, 96)
	hidden := x.RMSNorm(nil, 1e-5).Linear(g.Packed("w", "Q8_0", 64, 96)).Silu()
	g.Output("y", hidden.RMSNorm(nil, 1e-5).Linear(g.Packed("v", "Q8_0", 35, 64)))
	dev := interp.New(interp.Options{})
	c, err := g.Compile(t.Context(), dev.Target(), config)
	if err != nil {
		t.Fatal(err)
	}
	step, free, err := GraphStep(t.Context(), dev, c, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(free)
	return step
}

// decideWith tunes such a step; more kernels take less time if they are said to, and where the symbol is largest, by far.
func decideWith(t *testing.T, db *database.DB, perKernel, far float64, try func(k *engine.Kernel) error) *Tuned {
	t.Helper()
	tried := 0
	options := TuneOptions{Search: DefaultOptions(), Budget: time.Minute, Fusion: 0.9, DB: db, Testers: func(_ context.Context, ast *ir.UOp, _ BenchOptions) (Tester, error) {
		return byLength{&tried}, try(&engine.Kernel{AST: ast})
	}}
	config := engine.Config{DB: db.Dir(), Warn: func(text string) { t.Error(text) }}
	tn := newTuning(normed(t, config), options)
	tn.inTurn = func(_ context.Context, steps []*engine.Step, vars map[string]int64, _ Turns) (times [][]float64, err error) {
		each := perKernel
		if vars["n"] == 64 {
			each = far
		}
		for _, s := range steps {
			times = append(times, slices.Repeat([]float64{1000 + each*float64(len(s.Compiled.Kernels))}, 9))
		}
		return times, nil
	}
	tuned, err := tuneAll(t.Context(), []*tuning{tn}, []NamedStep{{}})
	if err != nil {
		t.Fatal(err)
	}
	return tuned[0]
}

func fine(*engine.Kernel) error { return nil }

// What makes the step faster is taken, stored, and there in the next compilation and the next run;
// what does not is not tried again; what came from elsewhere is a candidate.
func TestDecisionsAreKept(t *testing.T) {
	db := database.Open(t.TempDir())
	tuned := decideWith(t, db, -10, -10, fine)
	if len(tuned.Decisions) == 0 || tuned.Saved <= 0 || len(tuned.Step.Decisions) != len(tuned.Decisions) {
		t.Fatalf("%+v", tuned)
	}
	again := decideWith(t, db, -10, -10, fine)
	if again.Flips != 0 || len(again.Decisions) != len(tuned.Decisions) || again.Saved != tuned.Saved || !strings.Contains(again.Decisions[0].Note, "in the database") {
		t.Errorf("again: %+v, want the same without a try", again)
	}
	step := normed(t, engine.Config{DB: db.Dir()})
	if step.Compiled.Schedule.String() != tuned.Step.Schedule.String() || step.Compiled.Decisions[0].Origin != engine.FromDatabase {
		t.Errorf("a compilation with the database gives\n%s\nwant\n%s", step.Compiled.Schedule, tuned.Step.Schedule)
	}
	ignoring := normed(t, engine.Config{DB: db.Dir(), IgnoreDB: true})
	if len(ignoring.Compiled.Decisions) != 0 {
		t.Errorf("IgnoreDB: %v", ignoring.Compiled.Decisions)
	}

	var text bytes.Buffer
	n, bad, err := db.Export(&text)
	if err != nil || bad != nil || n <= len(tuned.Decisions) {
		t.Fatalf("%d exported, %v, %v", n, bad, err)
	}
	other := database.Open(t.TempDir())
	if m, err := other.Import(&text); err != nil || m != n {
		t.Fatalf("%d imported, %v, want %d", m, err, n)
	}
	if c := normed(t, engine.Config{DB: other.Dir()}).Compiled; len(c.Decisions) != 0 {
		t.Errorf("imported decisions are used before they are proven: %v", c.Decisions)
	}
	if confirmed := decideWith(t, other, -10, -10, fine); len(confirmed.Decisions) == 0 {
		t.Errorf("after import: %+v", confirmed)
	}
}

// A step that is not faster is not taken, nor one whose kernels are wrong.
func TestDecisionsAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		perKernel, far float64
		try            func(*engine.Kernel) error
	}{
		"slower":     {10, 10, fine},
		"slower far": {-10, 10, fine},
		"wrong":      {-10, -10, func(*engine.Kernel) error { return errWrong }},
	} {
		t.Run(name, func(t *testing.T) {
			db := database.Open(t.TempDir())
			tuned := decideWith(t, db, c.perKernel, c.far, c.try)
			list, _ := db.List()
			kept := slices.ContainsFunc(list, func(e database.Entry) bool { return e.Decision != "" && e.Kept })
			if more := slices.ContainsFunc(tuned.Decisions, func(d TunedDecision) bool { return d.Choice == schedule.Decline }); more || tuned.Flips == 0 || !kept {
				t.Errorf("%+v, entries %+v, want no decision that makes more kernels", tuned, list)
			}
		})
	}
}

// Results may differ as far as rounding carries, and not by an element.
func TestAgree(t *testing.T) {
	floats := func(list ...float32) (b []byte) {
		for _, v := range list {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
		return b
	}
	nan := float32(math.NaN())
	before := floats(7, 7, 7, 7)
	for _, c := range []struct {
		x, y []byte
		ok   bool
	}{
		{floats(1, 2, 3, 4), floats(1, 2, 3, 4), true},
		{floats(1, 2, 3, 4), floats(1.001, 2, 3, 4.001), true},
		{floats(1, 2, 3, 7), floats(1, 2, 3.5, 7), false},
		{floats(1, 2, 3, 7), floats(1, 2, 7, 7), false}, // not written
		{floats(1, nan, 3, 7), floats(1, nan, 3.001, 7), true},
		{floats(1, 2, 3, 7), floats(1, nan, 3, 7), false},
		{floats(0, 0, 0, 7), floats(0, 0, 1e-9, 7), false},
	} {
		if err := agree(ir.F32, before, c.x, c.y); (err == nil) != c.ok || err != nil && !errors.Is(err, errStepWrong) {
			t.Errorf("%v and %v: %v", c.x, c.y, err)
		}
	}
}
