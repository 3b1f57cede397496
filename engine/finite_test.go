package engine_test

import (
	"errors"
	"math"
	"testing"

	"tgc/engine"
	"tgc/ir"
	"tgc/runtime/interp"
	"tgc/tensor"
)

// The second of three kernels makes the NaN; the third only passes it on.
func TestFiniteNamesTheFirstKernel(t *testing.T) {
	ctx := t.Context()
	g := tensor.NewGraph()
	x := g.Input("x", ir.F32, 4)
	shifted := x.AddScalar(-1).Contiguous()
	root := shifted.Sqrt().Contiguous()
	g.Output("y", root.MulScalar(2).Sum())
	f, err := tensor.Compile(ctx, g, interp.New(interp.Options{}), engine.Config{Finite: engine.WatchNaN})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	run := func(values ...float32) error {
		if err := tensor.Set(ctx, f, "x", values); err != nil {
			t.Fatal(err)
		}
		return f.Run(ctx, nil)
	}
	if err := run(1, 5, float32(math.Inf(1)), 10); err != nil {
		t.Errorf("an infinity, when NaN is watched for: %v", err)
	}
	err = run(2, 5, 0.5, -3)
	var wrong *engine.NotFiniteError
	if !errors.As(err, &wrong) {
		t.Fatalf("got %v, want a NotFiniteError", err)
	}
	if w := wrong.Written; w.FirstWrong != 2 || w.NaN != 2 || w.Count != 4 || w.Min != 1 || w.Max != 2 || w.Buffer != "temporary" {
		t.Errorf("written: %+v", w)
	}
	if len(wrong.Inputs) != 1 || wrong.Inputs[0].Min != -4 || wrong.Inputs[0].Max != 4 || wrong.Inputs[0].NaN != 0 {
		t.Errorf("inputs: %+v", wrong.Inputs)
	}
	const want = `kernel map_4_2 wrote values that are not finite, first at element 2
  wrote b0 temporary[4] 1..2, 2 NaN and 0 infinite of 4
  read  b1 temporary[4] -4..4
  computes for r0:4: b0[r0] = sqrt(b1[r0])`
	if err.Error() != want {
		t.Errorf("got\n%s\nwant\n%s", err, want)
	}
}

func TestFiniteWatchesForInfinities(t *testing.T) {
	ctx := t.Context()
	g := tensor.NewGraph()
	x := g.Input("x", ir.F32, 2)
	g.Store(x, x.Recip())
	f, err := tensor.Compile(ctx, g, interp.New(interp.Options{}), engine.Config{Finite: engine.WatchInfinity})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := tensor.Set(ctx, f, "x", []float32{4, 0}); err != nil {
		t.Fatal(err)
	}
	var wrong *engine.NotFiniteError
	if err := f.Run(ctx, nil); !errors.As(err, &wrong) {
		t.Fatalf("got %v, want a NotFiniteError", err)
	}
	// The kernel writes where it reads: its input is described as it was before.
	if in := wrong.Inputs[0]; in.Buffer != `"x"` || in.Max != 4 || in.Inf != 0 {
		t.Errorf("input: %+v", in)
	}
}
