package search

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"tgc/engine"
	"tgc/ir"
	"tgc/runtime"
	"tgc/runtime/interp"
	"tgc/search/database"
	"tgc/tensor"
)

// TGC_JITBEAM: what is compiled is not searched, what is captured is, in the step, and its
// buffers stay as they are; a second process finds the plans in the database.
func TestInStep(t *testing.T) {
	dev, db, tried := interp.New(interp.Options{}), database.Open(t.TempDir()), 0
	var said []string
	hook := &InStep{Seed: 1, Tune: TuneOptions{Search: DefaultOptions(), Budget: 30 * time.Second, DB: db, Say: func(f string, args ...any) { said = append(said, fmt.Sprintf(f, args...)) }}}
	hook.Tune.Testers = func(context.Context, *ir.UOp, BenchOptions) (Tester, error) { return byLength{&tried}, nil }
	g := tensor.NewGraph()
	state := g.Input("state", ir.F32, 64)
	g.Output("y", g.Input("x", ir.F32, 96).Linear(g.Packed("w", "Q8_0", 64, 96)).Add(state))
	c, err := g.Compile(t.Context(), dev.Target(), engine.Config{Steps: hook})
	if err != nil || tried > 0 {
		t.Fatalf("%v, %d tried of what is only compiled", err, tried)
	}
	buffers := make(map[int64]runtime.Memory)
	for i := range c.Schedule.Buffers {
		b := &c.Schedule.Buffers[i]
		s, err := slotOf(c, i)
		if err != nil {
			t.Fatal(err)
		}
		m, err := dev.Alloc(t.Context(), max(s.host, 64))
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Write(t.Context(), 0, contents{7, 1}.of(b, 0, i, s.host)); err != nil {
			t.Fatal(err)
		}
		buffers[b.UserID] = m
	}
	before := make(map[int64][]byte)
	for id, m := range buffers {
		before[id] = bytes.Clone(m.Host())
	}
	if weights := weightsOf(c, buffers); len(weights) != 1 {
		t.Errorf("%d weights, want w", len(weights))
	}
	step, err := engine.Capture(t.Context(), dev, c, buffers)
	if err != nil {
		t.Fatal(err)
	}
	defer step.Free()
	if tried < 10 {
		t.Errorf("%d tried, want some; said %q", tried, said)
	}
	for id, m := range buffers {
		if !bytes.Equal(m.Host(), before[id]) {
			t.Errorf("buffer %d has changed", id)
		}
	}
	if err := step.Run(t.Context(), nil); err != nil {
		t.Error(err)
	}
	first := tried
	again, err := engine.Capture(t.Context(), dev, c, buffers)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Free()
	entries, _ := db.List()
	if len(entries) > 0 && tried != first {
		t.Errorf("%d tried again, though the database has %d entries", tried-first, len(entries))
	}
}

// A step that cannot be tuned keeps its plans.
func TestInStepGoesOn(t *testing.T) {
	step := twoKernels(t)
	hook := &InStep{Tune: TuneOptions{Search: DefaultOptions(), Budget: time.Second, Testers: func(context.Context, *ir.UOp, BenchOptions) (Tester, error) { return nil, errWrong }}}
	got, err := hook.Replan(t.Context(), interp.New(interp.Options{}), step.Compiled, nil)
	if err != nil || got != step.Compiled {
		t.Errorf("%p, %v, want %p", got, err, step.Compiled)
	}
}
