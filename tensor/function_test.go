package tensor_test

import (
	"slices"
	"strings"
	"testing"

	"tgc/engine"
	"tgc/ir"
	"tgc/runtime/interp"
	"tgc/tensor"
)

// Two graphs work on one buffer: what the first assigns, the second reads.
func TestCompileSharesBuffersByName(t *testing.T) {
	ctx, dev := t.Context(), interp.New(interp.Options{})
	counting := tensor.NewGraph()
	n := counting.Input("n", ir.F32, 2)
	counting.Store(n, n.AddScalar(1))
	count, err := tensor.Compile(ctx, counting, dev, engine.Config{Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer count.Close()

	reading := tensor.NewGraph()
	reading.Output("twice", reading.Input("n", ir.F32, 2).MulScalar(2))
	read, err := tensor.Compile(ctx, reading, dev, engine.Config{Verify: true}, count)
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()

	if err := tensor.Set(ctx, read, "n", []float32{1, 10}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := count.Run(ctx, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := read.Run(ctx, nil); err != nil {
		t.Fatal(err)
	}
	got, err := tensor.Get[float32](ctx, read, "twice")
	if want := []float32{8, 26}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	raw, err := count.Read(ctx, "n")
	if err != nil || len(raw) != 8 {
		t.Errorf("read %d bytes, %v, want 8", len(raw), err)
	}
	if err := read.Write(ctx, "n", raw[:4]); err == nil || !strings.Contains(err.Error(), "got 4 bytes, want 8") {
		t.Errorf("a short write: %v", err)
	}
}

func TestCompileRefusesToShareOtherShapes(t *testing.T) {
	ctx, dev := t.Context(), interp.New(interp.Options{})
	build := func(n int) *tensor.Graph {
		g := tensor.NewGraph()
		g.Output("y", g.Input("x", ir.F32, n).Neg())
		return g
	}
	first, err := tensor.Compile(ctx, build(2), dev, engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if f, err := tensor.Compile(ctx, build(3), dev, engine.Config{}, first); err == nil {
		f.Close()
		t.Error("buffers of 2 and 3 elements are shared")
	}
}

// Values that FromSlice gave are each graph's own, whatever buffers it shares.
func TestCompileSharesNoConstants(t *testing.T) {
	ctx, dev := t.Context(), interp.New(interp.Options{})
	build := func(v float32) *tensor.Graph {
		g := tensor.NewGraph()
		g.Output("y", tensor.FromSlice(g, []float32{v}, 1).Neg())
		return g
	}
	var functions []*tensor.Function
	for _, v := range []float32{1, 2} {
		f, err := tensor.Compile(ctx, build(v), dev, engine.Config{}, functions...)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		functions = append(functions, f)
	}
	for i, f := range functions {
		if err := f.Run(ctx, nil); err != nil {
			t.Fatal(err)
		}
		if got, err := tensor.Get[float32](ctx, f, "y"); err != nil || got[0] != -float32(i+1) {
			t.Errorf("function %d: got %v, %v", i, got, err)
		}
	}
}
