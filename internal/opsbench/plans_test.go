package main

import (
	"bytes"
	"strings"
	"testing"

	"tgc/engine"
	"tgc/ir"
	"tgc/ir/program"
	"tgc/target"
	"tgc/tensor"
)

// Plans are printed without a device, with what a thread reads and writes.
func TestPrintAllPlans(t *testing.T) {
	var out bytes.Buffer
	if err := printAllPlans(t.Context(), &out, "ptx:sm_90", named([]string{"transpose 35x37"}), true); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.HasPrefix(text, "transpose 35x37: 1 launches\n   0  ") || !strings.Contains(text, " accesses of ") || !strings.Contains(text, "b0[r0,r1] = b1[r1,r0]") {
		t.Errorf("got %s", text)
	}
	if printAllPlans(t.Context(), &out, "ptx:sm_1", nil, false) == nil {
		t.Error("a target that is none")
	}
}

// On a GPU no thread of a reduce, of a running fold or of a short sort reads more than a
// few KB: long rows are shared, whatever their number and extents.
func TestThreadsShareRows(t *testing.T) {
	desc, err := target.Parse("ptx:sm_90")
	if err != nil {
		t.Fatal(err)
	}
	const most = 8 << 10
	for _, o := range named([]string{"sum ", "sum of", "softmax", "norm", "cummax", "cumprod", "argmax", "max ", "top 8", "cross", "sort 256", "sort 512", "sort 64"}) {
		g := tensor.NewGraph()
		g.Output("out", o.build(g, o.size))
		c, err := g.Compile(t.Context(), desc, engine.Config{})
		if err != nil {
			t.Errorf("%s: %v", o, err)
			continue
		}
		for _, k := range c.Kernels {
			if got := trafficOf(k.Program); got.bytes > most {
				t.Errorf("%s: each thread of %s reads and writes %.0f bytes, %v", o, k.Name, got.bytes, k.Plan)
			}
		}
	}
}

// A thread that makes several results of windows that overlap loads once what they share: of 3 x 3
// points some six for a result, nine of the window and nine of its weights otherwise.
func TestThreadsShareWindows(t *testing.T) {
	desc, err := target.Parse("ptx:sm_90")
	if err != nil {
		t.Fatal(err)
	}
	const most = 10 // with the store
	for _, o := range named([]string{"depthwise 8x128"}) {
		g := tensor.NewGraph()
		g.Output("out", o.build(g, o.size))
		c, err := g.Compile(t.Context(), desc, engine.Config{})
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range c.Kernels {
			const results = 8 * 128 * 54 * 54
			got := trafficOf(k.Program).accesses * float64(k.Program.Units()) * float64(k.Program.Threads()) / results
			if got > most {
				t.Errorf("%s: %.1f accesses for each result, %v", o, got, k.Plan)
			}
		}
	}
}

// Products of f64 and of integers take the matrix instructions of architectures that have them, odd ones too.
func TestNumbersOnMatrices(t *testing.T) {
	for _, c := range []struct {
		target, operation string
		want              bool
	}{{"ptx:sm_90", "matmul f64 509", true}, {"ptx:sm_80", "matmul f64 509", false}, {"ptx:sm_80", "matmul i32", true}, {"ptx:sm_75", "matmul i32", false}} {
		var out bytes.Buffer
		if err := printAllPlans(t.Context(), &out, c.target, named([]string{c.operation}), false); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(out.String(), "[MMA "); got != c.want {
			t.Errorf("%s: matrix instructions %v, want %v\n%s", c.target, got, c.want, &out)
		}
	}
}

// A thread's tile loads by 16 bytes what lies side by side along its tokens, not only what lies so along the sum.
func TestTilesLoadRuns(t *testing.T) {
	desc, err := target.Parse("ptx:sm_75")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range named([]string{"matmul i32"}) {
		g := tensor.NewGraph()
		g.Output("out", o.build(g, o.size))
		c, err := g.Compile(t.Context(), desc, engine.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if got := trafficOf(c.Kernels[0].Program); got.bytes < 15*got.accesses {
			t.Errorf("%s: %.0f accesses of %.0f bytes, %v", o, got.accesses, got.bytes, c.Kernels[0].Plan)
		}
	}
}

// Rows of a table that a transform's threads read are loaded once for several of their results, and
// what lies side by side along the sum by 16 bytes.
func TestThreadsShareTables(t *testing.T) {
	desc, err := target.Parse("ptx:sm_90")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range named([]string{"fft of reals 1024"}) {
		g := tensor.NewGraph()
		g.Output("out", o.build(g, o.size))
		c, err := g.Compile(t.Context(), desc, engine.Config{})
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range c.Kernels {
			const points, most = 1 << 20, 10
			got := trafficOf(k.Program).accesses * float64(k.Program.Units()) * float64(k.Program.Threads()) / points
			if got > most {
				t.Errorf("%s: %.1f accesses for each complex number, %v", k.Name, got, k.Plan)
			}
		}
	}
}

// Points that share the sums of columns make no blocks of their own: few columns have many
// threads each, and blocks of a few of them.
func TestThreadsShareColumns(t *testing.T) {
	desc, err := target.Parse("ptx:sm_90")
	if err != nil {
		t.Fatal(err)
	}
	for name, build := range map[string]func(x *tensor.Tensor) *tensor.Tensor{
		"softmax of columns":     func(x *tensor.Tensor) *tensor.Tensor { return x.Softmax(0) },
		"centred columns":        func(x *tensor.Tensor) *tensor.Tensor { return x.Sub(x.MeanKeep(0)) },
		"softmax of a transpose": func(x *tensor.Tensor) *tensor.Tensor { return x.Transpose(0, 1).Softmax(-1) },
	} {
		g := tensor.NewGraph()
		g.Output("out", build(g.Input("x", ir.F32, 256, 256)))
		c, err := g.Compile(t.Context(), desc, engine.Config{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, k := range c.Kernels {
			if units, threads := k.Program.Units(), k.Program.Threads(); units < 32 || units*int64(threads) < 1<<14 {
				t.Errorf("%s: %s has %d blocks of %d threads, %v", name, k.Name, units, threads, k.Plan)
			}
		}
	}
}

// A loop with constant bounds counts as often as it runs, shared memory does not count.
func TestTraffic(t *testing.T) {
	p, err := program.Parse(`program "rows"
param %0:*f32 buffer slot 0 name "x" align 64 bytes 65536 read
param %1:*f32 buffer slot 1 name "y" align 64 bytes 65536 write
grid 2
block 32
%2:i64 = const 0
%3:i64 = const 7
%4:i64 = const 2
%5:*f32@shared = alloca count 32 align 16
gridloop %6:i64 {
  for %2 %3 %4 do %7:i64 {
    %8:f32 = load %0 align 4
    store %5 %8 align 4
    yield
  }
  %9:f32 = load %5 align 4
  store %1 %9 align 4
}
`)
	if err != nil {
		t.Fatal(err)
	}
	if got := trafficOf(p); got != (traffic{5, 20}) {
		t.Errorf("got %+v", got)
	}
}
