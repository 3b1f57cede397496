package tensor_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"tgc/engine"
	"tgc/ir"
	"tgc/runtime"
	"tgc/runtime/devices"
	"tgc/runtime/interp"
	"tgc/tensor"
)

// compiled is a function for a device, closed when the test ends.
func compiled(t *testing.T, g *tensor.Graph, dev runtime.Device, share ...*tensor.Function) *tensor.Function {
	t.Helper()
	f, err := tensor.Compile(t.Context(), g, dev, engine.Config{}, share...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

// wantError reports an error that is missing or lacks a text.
func wantError(t *testing.T, name string, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: %v, want %q", name, err, want)
	}
}

// A variable out of its bounds would have kernels read and write past the ends of buffers.
func TestVariablesAreChecked(t *testing.T) {
	g := tensor.NewGraph()
	n := g.Var("n", 1, 8)
	g.Output("s", g.Input("x", ir.F32, 8).Slice(0, g.Dims(0)[0], n).Sum())
	f := compiled(t, g, interp.New(interp.Options{}))
	ctx := t.Context()
	if err := tensor.Set(ctx, f, "x", []float32{1, 1, 1, 1, 1, 1, 1, 1}); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int64{9, 100, 0, -1, 1 << 33} {
		wantError(t, "n", f.Run(ctx, map[string]int64{"n": n}), `variable "n" is`)
	}
	wantError(t, "none", f.Run(ctx, nil), `variable "n" has no value, want 1 to 8`)
	wantError(t, "other", f.Run(ctx, map[string]int64{"n": 1, "m": 3}), `tensor: run: the graph has no variable "m"`)
	for _, n := range []int64{1, 8} {
		if err := f.Run(ctx, map[string]int64{"n": n}); err != nil {
			t.Fatal(err)
		}
		if got, err := tensor.Get[float32](ctx, f, "s"); err != nil || got[0] != float32(n) {
			t.Errorf("n = %d: %v, %v", n, got, err)
		}
	}
}

// A batch of any size within bounds goes in and comes out, on targets that round sizes up
// too.
func TestSymbolicShapes(t *testing.T) {
	g := tensor.NewGraph()
	n, k := g.Var("n", 1, 8), g.Dims(3)[0]
	w := g.Input("w", ir.F32, 2, 3)
	g.Output("y", g.InputDims("x", ir.F32, n, k).Linear(w))
	g.Output("columns", g.Iota(ir.I32, g.VarAtLeast("m", 1, 64)).Unsqueeze(0).ExpandDims(n, g.VarAtLeast("m", 1, 64)))
	if err := g.Err(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"interp", "cuda:emu"} {
		dev, _, err := devices.Open(t.Context(), name, devices.Options{})
		if err != nil {
			t.Fatal(err)
		}
		symbolicShapes(t, compiled(t, g, dev))
	}
}

func symbolicShapes(t *testing.T, f *tensor.Function) {
	ctx := t.Context()
	if err := tensor.Set(ctx, f, "w", []float32{1, 0, 0, 0, 10, 100}); err != nil {
		t.Fatal(err)
	}
	_, err := tensor.Get[float32](ctx, f, "y")
	wantError(t, "before a run", err, `"y" has no values yet`)
	for _, c := range []struct{ x, want []float32 }{{[]float32{1, 2, 3}, []float32{1, 320}}, {[]float32{1, 2, 3, 4, 5, 6}, []float32{1, 320, 4, 650}}} {
		rows := int64(len(c.x) / 3)
		if err := tensor.Set(ctx, f, "x", c.x); err != nil {
			t.Fatal(err)
		}
		wantError(t, "another size", f.Run(ctx, map[string]int64{"n": rows + 1, "m": 3}), `input "x" was set to`)
		if err := f.Run(ctx, map[string]int64{"n": rows, "m": 3}); err != nil {
			t.Fatal(err)
		}
		if y, err := tensor.Get[float32](ctx, f, "y"); err != nil || !slices.Equal(y, c.want) {
			t.Errorf("got %v, %v, want %v", y, err, c.want)
		}
		if m, err := tensor.Get[int32](ctx, f, "columns"); err != nil || !slices.Equal(m, slices.Repeat([]int32{0, 1, 2}, int(rows))) {
			t.Errorf("got %v, %v, want 0 to 2 for each of %d rows", m, err, rows)
		}
		if raw, err := f.Read(ctx, "x"); err != nil || len(raw) != 4*len(c.x) {
			t.Errorf("%d bytes of x, %v, want what was set", len(raw), err)
		}
	}
	wantError(t, "too many", tensor.Set(ctx, f, "x", make([]float32, 3*9)), "got 27 values, want 24")
}

// Elements are moved as what they are.
func TestSetAndGetCheckTypes(t *testing.T) {
	g := tensor.NewGraph()
	g.Output("y", g.Input("x", ir.F32, 2).Cast(ir.BF16))
	f := compiled(t, g, interp.New(interp.Options{}))
	ctx := t.Context()
	wantError(t, "set", tensor.Set(ctx, f, "x", []int32{1, 2}), `tensor: set: buffer "x" holds f32, not i32`)
	wantError(t, "set", tensor.Set(ctx, f, "x", []float32{1}), "got 1 values, want 2 for [2]")
	wantError(t, "run", f.Run(ctx, nil), `tensor: run: input "x" has no values`)
	if err := tensor.Set(ctx, f, "x", []float32{1, -0.5}); err != nil {
		t.Fatal(err)
	}
	if err := f.Run(ctx, nil); err != nil {
		t.Fatal(err)
	}
	_, err := tensor.Get[int16](ctx, f, "y")
	wantError(t, "get", err, `tensor: get: buffer "y" holds bf16, not i16`)
	if bits, err := tensor.Get[uint16](ctx, f, "y"); err != nil || !slices.Equal(bits, []uint16{0x3f80, 0xbf00}) {
		t.Errorf("bits %x, %v", bits, err)
	}
	if wide, err := tensor.Get[float32](ctx, f, "y"); err != nil || !slices.Equal(wide, []float32{1, -0.5}) {
		t.Errorf("widened %v, %v", wide, err)
	}
}

// State begins as zeros and may be read before anything is set.
func TestStateBeginsAsZeros(t *testing.T) {
	g := tensor.NewGraph()
	n := g.State("n", ir.F32, 2)
	g.Store(n, n.AddScalar(1))
	f := compiled(t, g, interp.New(interp.Options{}))
	for range 2 {
		if err := f.Run(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := tensor.Get[float32](t.Context(), f, "n"); err != nil || !slices.Equal(got, []float32{2, 2}) {
		t.Errorf("%v, %v", got, err)
	}
}

// A closed function says so, and what it shares lives as long as a function has it.
func TestClosedFunctions(t *testing.T) {
	ctx, dev := t.Context(), interp.New(interp.Options{})
	g := tensor.NewGraph()
	g.Output("y", g.Input("w", ir.F32, 2).Neg())
	f := compiled(t, g, dev)
	g = tensor.NewGraph()
	g.Output("z", g.Input("w", ir.F32, 2).MulScalar(2))
	other := compiled(t, g, dev, f)
	if err := tensor.Set(ctx, f, "w", []float32{1, 2}); err != nil {
		t.Fatal(err)
	}
	f.Close()
	f.Close()
	for call, err := range map[string]error{
		"run": f.Run(ctx, nil), "set": tensor.Set(ctx, f, "w", []float32{1, 2}), "get": second(tensor.Get[float32](ctx, f, "y")),
		"read": second(f.Read(ctx, "y")), "write": f.Write(ctx, "w", make([]byte, 8)),
		"compile: share": second(tensor.Compile(ctx, g, dev, engine.Config{}, f)),
	} {
		wantError(t, call, err, call+": the function is closed")
	}
	wantError(t, "step", f.Step().Run(ctx, nil), "the step has been freed")
	wantError(t, "nil", (*tensor.Function)(nil).Run(ctx, nil), "run: the function is nil")
	if err := other.Run(ctx, nil); err != nil {
		t.Fatal(err)
	}
	if got, err := tensor.Get[float32](ctx, other, "z"); err != nil || !slices.Equal(got, []float32{2, 4}) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestCompileRefusesNil(t *testing.T) {
	ctx, g := t.Context(), tensor.NewGraph()
	g.Output("y", g.Input("x", ir.F32, 2).Neg())
	var absent *devices.Device // what Open gives with an error
	wantError(t, "device", second(tensor.Compile(ctx, g, nil, engine.Config{})), "compile: the device is nil")
	wantError(t, "device", second(tensor.Compile(ctx, g, absent, engine.Config{})), "compile: the device is nil")
	wantError(t, "graph", second(tensor.Compile(ctx, nil, interp.New(interp.Options{}), engine.Config{})), "the graph is nil")
	wantError(t, "share", second(tensor.Compile(ctx, g, interp.New(interp.Options{}), engine.Config{}, nil)), "to share with is nil")
}

// Functions of one device and calls of one function are safe in goroutines (go test -race).
func TestGoroutines(t *testing.T) {
	ctx := t.Context()
	dev, _, err := devices.Open(ctx, "", devices.Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	var group sync.WaitGroup
	var shared *tensor.Function
	for i := range 3 {
		f, err := doubling(ctx, dev, float64(i+1))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		shared = f
		group.Go(func() {
			for range 20 {
				err := f.Run(ctx, nil)
				got, err2 := tensor.Get[float32](ctx, f, "y")
				if err != nil || err2 != nil || got[1] != float32(i+1) {
					t.Errorf("%d: %v, %v, %v", i, got, err, err2)
					return
				}
			}
		})
	}
	group.Go(func() {
		for range 20 {
			if err := shared.Run(ctx, nil); err != nil {
				t.Error(err)
			}
		}
	})
	group.Go(func() {
		f, err := doubling(ctx, dev, 7)
		if err != nil {
			t.Error(err)
			return
		}
		f.Close()
	})
	group.Wait()
}

func doubling(ctx context.Context, dev runtime.Device, factor float64) (*tensor.Function, error) {
	g := tensor.NewGraph()
	g.Output("y", tensor.FromSlice(g, []float32{0, 1, 2}, 3).MulScalar(factor))
	return tensor.Compile(ctx, g, dev, engine.Config{})
}
