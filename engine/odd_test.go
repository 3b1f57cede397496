package engine_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"tgc/engine"
	"tgc/engine/traffic"
	"tgc/internal/cudatools"
	"tgc/internal/testkit"
	"tgc/ir"
	"tgc/kernel/plan"
	"tgc/nn"
	"tgc/render/ptx"
	"tgc/runtime"
	"tgc/runtime/cpu"
	"tgc/runtime/devices"
	"tgc/search"
	"tgc/search/database"
	"tgc/target"
	"tgc/tensor"
)

// oddProgram is a library program of any size: its sizes, where no split divides
// them, and those that one would pad them to.
type oddProgram struct {
	name        string
	odd, padded []int
	build       func(g *tensor.Graph, n []int) *tensor.Tensor
}

// input is a buffer of floats.
func input(g *tensor.Graph, name string, shape ...int) *tensor.Tensor {
	return g.Input(name, ir.F32, shape...)
}

func matvecOf(dtype ir.DType) func(*tensor.Graph, []int) *tensor.Tensor {
	return func(g *tensor.Graph, n []int) *tensor.Tensor {
		return g.Input("x", dtype, n[1]).Linear(g.Input("w", dtype, n[0], n[1]))
	}
}

// paddedConvolution is 3 x 3 over n[2] x n[2] results, padded by n[3] or of an input that
// is as much larger.
func paddedConvolution(g *tensor.Graph, n []int) *tensor.Tensor {
	side := n[2] + 2 - 2*n[3]
	x, w := input(g, "x", 1, n[0], side, side), input(g, "w", n[1], n[0], 3, 3)
	return x.Conv(w, nil, tensor.ConvOptions{Padding: []int{n[3]}})
}

// attentionOf has n[0] heads, n[1] tokens that see each other, heads of n[2].
func attentionOf(g *tensor.Graph, n []int) *tensor.Tensor {
	q, k, v := input(g, "q", n[0], n[1], n[2]), input(g, "k", n[0], n[1], n[2]), input(g, "v", n[0], n[1], n[2])
	return q.MatMul(k.Transpose(-1, -2)).MulScalar(1 / math.Sqrt(float64(n[2]))).Softmax(-1).MatMul(v)
}

var oddPrograms = []oddProgram{
	{"matvec", []int{4099, 4099}, []int{4128, 4128}, matvecOf(ir.F32)},
	{"matvec-k", []int{4096, 4095}, []int{4096, 4096}, matvecOf(ir.F32)},
	{"matvec-f16", []int{3000, 3001}, []int{3008, 3008}, matvecOf(ir.F16)},
	{"product", []int{127, 1021, 509}, []int{128, 1024, 512}, func(g *tensor.Graph, n []int) *tensor.Tensor {
		return input(g, "x", n[0], n[1]).Linear(input(g, "w", n[2], n[1]))
	}},
	{"product-columns", []int{127, 1021, 509}, []int{128, 1024, 512}, func(g *tensor.Graph, n []int) *tensor.Tensor {
		return input(g, "x", n[0], n[1]).MatMul(input(g, "w", n[1], n[2]))
	}},
	{"middle-max", []int{61, 509, 127}, []int{64, 512, 128}, func(g *tensor.Graph, n []int) *tensor.Tensor {
		return input(g, "x", n...).Max(1)
	}},
	{"column-sums", []int{4096, 333}, []int{4096, 352}, func(g *tensor.Graph, n []int) *tensor.Tensor {
		return input(g, "x", n...).Sum(0)
	}},
	{"row-sums", []int{4099, 333}, []int{4128, 352}, func(g *tensor.Graph, n []int) *tensor.Tensor {
		return input(g, "x", n...).Sum(1)
	}},
	{"softmax", []int{997, 1009}, []int{1024, 1024}, func(g *tensor.Graph, n []int) *tensor.Tensor {
		return input(g, "x", n...).Softmax(1)
	}},
	{"layer-norm", []int{997, 1009}, []int{1024, 1024}, func(g *tensor.Graph, n []int) *tensor.Tensor {
		return nn.LayerNorm(input(g, "x", n...), input(g, "w", n[1]), input(g, "b", n[1]), 1e-5)
	}},
	{"elementwise", []int{1021, 1009}, []int{1024, 1024}, func(g *tensor.Graph, n []int) *tensor.Tensor {
		return input(g, "x", n...).Silu().Mul(input(g, "y", n...))
	}},
	{"convolution", []int{64, 64, 56, 1}, []int{64, 64, 56, 0}, paddedConvolution},
	{"convolution-few", []int{16, 7, 56, 1}, []int{16, 8, 56, 1}, paddedConvolution},
	{"attention", []int{8, 127, 37}, []int{8, 128, 40}, attentionOf},
	{"outer-sums", []int{127, 255, 129}, []int{128, 256, 128}, func(g *tensor.Graph, n []int) *tensor.Tensor {
		return input(g, "x", n...).Sum(0, 2)
	}},
	{"long-rows", []int{3, 300007}, []int{4, 1 << 18}, func(g *tensor.Graph, n []int) *tensor.Tensor {
		return input(g, "x", n...).Softmax(1)
	}},
	{"long-norm", []int{3, 300007}, []int{4, 1 << 18}, func(g *tensor.Graph, n []int) *tensor.Tensor {
		return input(g, "x", n...).LayerNorm(1, nil, nil, 1e-5)
	}},
	{"sort", []int{997, 35}, []int{1024, 32}, func(g *tensor.Graph, n []int) *tensor.Tensor {
		values, _ := input(g, "x", n...).Sort(1, false)
		return values
	}},
	{"running-sums", []int{4999, 61}, []int{5120, 64}, func(g *tensor.Graph, n []int) *tensor.Tensor {
		return input(g, "x", n...).Cumsum(1)
	}},
	{"running-columns", []int{61, 4999}, []int{64, 5120}, func(g *tensor.Graph, n []int) *tensor.Tensor {
		return input(g, "x", n...).Cumsum(0)
	}},
}

// graph makes the program's graph.
func (p *oddProgram) graph(n []int) *tensor.Graph {
	g := tensor.NewGraph()
	g.Output("out", p.build(g, n))
	return g
}

var (
	oddDevice  = flag.String("odd-device", "cpu", "device of BenchmarkOdd")
	oddThreads = flag.Int("odd-threads", 1, "threads of BenchmarkOdd on a CPU")
	oddTune    = flag.Duration("odd-tune", 0, "time for which BenchmarkOdd searches plans of each program first")
)

// BenchmarkOdd runs the programs on one thread of the CPU, or on another device, at
// their sizes and at padded ones: the best of many runs, in microseconds. -odd-tune has them tuned.
func BenchmarkOdd(b *testing.B) {
	dev, _, err := devices.Open(b.Context(), *oddDevice, devices.Options{Threads: *oddThreads})
	if errors.Is(err, cpu.ErrNoLLVM) {
		b.Skip(err)
	}
	if err != nil {
		b.Fatal(err)
	}
	defer dev.Close()
	for _, p := range oddPrograms {
		for _, sizes := range [][]int{p.odd, p.padded} {
			b.Run(p.name+"/"+strings.Trim(strings.ReplaceAll(fmt.Sprint(sizes), " ", "x"), "[]"), func(b *testing.B) {
				f, err := tensor.Compile(b.Context(), p.graph(sizes), dev, tunedOdd(b, dev, p.graph(sizes)))
				if err != nil {
					b.Fatal(err)
				}
				defer f.Close()
				for _, info := range f.Buffers() {
					if raw, err := f.Read(b.Context(), info.Name); err != nil {
						b.Fatal(err)
					} else if err := f.Write(b.Context(), info.Name, raw); !info.Output && err != nil {
						b.Fatal(err) // zeros
					}
				}
				for _, k := range f.Step().Compiled.Kernels {
					b.Logf("%s: %s\n    %s", k.Name, k.Why, k.Plan)
				}
				for _, x := range f.Buffers() {
					if !x.Output {
						fillOdd(b, f, x)
					}
				}
				for b.Loop() {
					if err := f.Run(b.Context(), nil); err != nil {
						b.Fatal(err)
					}
				}
				best := time.Duration(math.MaxInt64)
				for range 20 {
					best = min(best, oddTime(b, f, dev.Target()))
				}
				b.ReportMetric(float64(best.Nanoseconds())/1e3, "best-us")
			})
		}
	}
}

// tunedOdd has the plans that a search of a program finds in the time that is given, if any.
func tunedOdd(b *testing.B, dev *devices.Device, g *tensor.Graph) (config engine.Config) {
	b.Helper()
	if *oddTune == 0 {
		return config
	}
	c, err := g.Compile(b.Context(), dev.Target(), config)
	if err != nil {
		b.Fatal(err)
	}
	step, free, err := search.GraphStep(b.Context(), dev.Device, c, 1)
	defer free()
	if err != nil {
		b.Fatal(err)
	}
	config.DB = b.TempDir()
	tuned, err := search.Tune(b.Context(), step, search.TuneOptions{
		Search: search.DefaultOptions(), Bench: search.BenchOptions{Seed: 1, Limits: search.DefaultLimits()}, Budget: *oddTune, DB: database.Open(config.DB),
		Testers: func(ctx context.Context, ast *ir.UOp, options search.BenchOptions) (search.Tester, error) {
			return search.NewBench(ctx, dev.Device, ast, options)
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	for _, k := range tuned.Kernels {
		b.Logf("%s: %d candidates; %s", k.Kernel.Name, k.Candidates, k.Note)
	}
	return config
}

// fillOdd gives an input some bytes, which are finite numbers of every type.
func fillOdd(b *testing.B, f *tensor.Function, x tensor.BufferInfo) {
	b.Helper()
	n := int64(x.DType.Size())
	for _, dim := range x.Shape {
		size, _ := dim.Int()
		n *= size
	}
	if err := f.Write(b.Context(), x.Name, bytes.Repeat([]byte{0x3c}, int(n))); err != nil {
		b.Fatal(err)
	}
}

// oddTime is that of a run: of a GPU the sum of its kernels, which starting them is no part of.
func oddTime(b *testing.B, f *tensor.Function, desc *target.Desc) (took time.Duration) {
	b.Helper()
	if desc.Kind == target.GPU {
		times, err := f.Step().Profile(b.Context(), nil)
		if err != nil {
			b.Fatal(err)
		}
		for _, t := range times {
			took += t
		}
		return took
	}
	start := time.Now()
	if err := f.Run(b.Context(), nil); err != nil {
		b.Fatal(err)
	}
	return time.Since(start)
}

// parallel is what a plan does at once: lanes of a vector on a CPU, threads of the grid
// on a GPU.
func parallel(k *engine.Kernel, desc *target.Desc) int64 {
	if desc.Kind == target.GPU {
		return k.Program.Units() * k.Program.Threads()
	}
	lanes := make(map[string]int64)
	most := int64(1)
	for _, opt := range k.Plan.Opts {
		if opt.Kind == plan.VECTOR {
			lanes[opt.Axis] = max(lanes[opt.Axis], 1) * opt.Amount
			most = max(most, lanes[opt.Axis])
		}
	}
	return most
}

// oddTargets are the machines whose plans are checked.
var oddTargets = []string{"llvm:x86-64-v3", "llvm:x86-64-v4", "llvm:znver5", "ptx:sm_90"}

// narrowOdd are programs for which plans on a target do less than half as much at once
// as at padded sizes.
var narrowOdd = map[string]bool{}

// moreOdd are programs that need more kernels: the padding of an image is stored, rows of 35 are sorted as
// rows of 64.
var moreOdd = map[string]bool{"convolution": true, "sort": true}

// At sizes that no split divides, plans do at least half as much at once as at padded
// ones, and none is refused; and as few kernels do it.
func TestOddSizesAreParallel(t *testing.T) {
	for _, name := range oddTargets {
		desc, err := target.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range oddPrograms {
			least, kernels := make([]int64, 2), make([]int, 2)
			for k, sizes := range [][]int{p.odd, p.padded} {
				c, err := p.graph(sizes).Compile(t.Context(), desc, engine.Config{})
				if err != nil {
					t.Fatal(err)
				}
				kernels[k] = len(c.Kernels)
				for _, kernel := range c.Kernels {
					for _, r := range kernel.Records {
						if r.Reason == "refused" {
							t.Errorf("%s %v on %s: %s", p.name, sizes, name, r)
						}
					}
					if n := parallel(kernel, desc); least[k] == 0 || n < least[k] {
						least[k] = n
					}
				}
			}
			if narrow := 2*least[0] < least[1]; narrow != narrowOdd[p.name+" "+name] {
				t.Errorf("%s on %s: %d at once at %v, %d at %v; known: %v", p.name, name, least[0], p.odd, least[1], p.padded, !narrow)
			}
			if kernels[0] > kernels[1] && !moreOdd[p.name] {
				t.Errorf("%s on %s: %d kernels at %v, %d at %v", p.name, name, kernels[0], p.odd, kernels[1], p.padded)
			}
		}
	}
}

// A block that makes a row by a product and then reduces it has a plan: one thread a
// point would make the row again for each of its points.
func TestRowsOfProductsArePlanned(t *testing.T) {
	desc, err := target.Parse("ptx:sm_90")
	if err != nil {
		t.Fatal(err)
	}
	for name, of := range map[string]func(y *tensor.Tensor) *tensor.Tensor{
		"layer norm": func(y *tensor.Tensor) *tensor.Tensor { return y.LayerNorm(1, nil, nil, 1e-5) },
		"softmax":    func(y *tensor.Tensor) *tensor.Tensor { return y.Softmax(1) },
		"center":     func(y *tensor.Tensor) *tensor.Tensor { return y.Sub(y.Mean(0)) },
	} {
		g := tensor.NewGraph()
		x := g.Input("x", ir.F32, 256, 256)
		g.Output("out", of(x.MatMul(x)))
		c, err := g.Compile(t.Context(), desc, engine.Config{})
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range c.Kernels {
			if strings.HasPrefix(k.Why, "fallback") {
				t.Errorf("%s: %s has no plan: %s", name, k.Name, k.Why)
			}
		}
	}
}

// A running sum of an odd length does as much as that of the next even one: its parts are
// folded by kernels of their own, not again for each of their points.
func TestOddRunningSums(t *testing.T) {
	desc, err := target.Parse("ptx:sm_90")
	if err != nil {
		t.Fatal(err)
	}
	work := func(rows, columns int) (n float64) {
		g := tensor.NewGraph()
		g.Output("out", g.Input("x", ir.F32, rows, columns).Cumsum(1))
		c, err := g.Compile(t.Context(), desc, engine.Config{})
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range c.Kernels {
			n += traffic.Instructions(k.Program, nil, desc.VectorBytes)
		}
		return n
	}
	for _, tt := range []struct{ rows, odd, even int }{{1, 1000003, 1 << 20}, {1000, 1000, 1024}} {
		if odd, even := work(tt.rows, tt.odd), work(tt.rows, tt.even); odd > 2*even {
			t.Errorf("%d x %d: %.0f instructions, %.0f for %d", tt.rows, tt.odd, odd, even, tt.even)
		}
	}
}

// Sums over several short axes, which threads make by themselves, are so many a block that
// its warps are full.
func TestShortNestsFillBlocks(t *testing.T) {
	desc, err := target.Parse("ptx:sm_90")
	if err != nil {
		t.Fatal(err)
	}
	g := tensor.NewGraph()
	g.Output("out", input(g, "x", 3, 1021, 5, 16).Sum(0, 2, 3))
	c, err := g.Compile(t.Context(), desc, engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range c.Kernels {
		if k.Program.Threads() < int64(desc.WarpSize) {
			t.Errorf("%s has %d threads a block: %s", k.Name, k.Program.Threads(), k.Plan)
		}
	}
}

// Programs at such sizes assemble for a GPU, without spilled registers.
func TestOddSizesAssemble(t *testing.T) {
	tools := cudatools.FromEnvironment()
	if tools.PtxasPath == "" {
		t.Skip("no ptxas: set TGC_CUDA_PATH")
	}
	for _, name := range []string{"sm_87", "sm_90"} {
		desc, err := target.Parse("ptx:" + name)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range oddPrograms {
			c, err := p.graph(p.odd).Compile(t.Context(), desc, engine.Config{})
			if err != nil {
				t.Fatal(err)
			}
			for _, k := range c.Kernels {
				text, err := ptx.Render(k.Program, desc, ptx.Options{})
				if err != nil {
					t.Fatalf("%s: %v", k.Name, err)
				}
				made, err := tools.Ptxas(t.Context(), text.Text, name)
				if err != nil {
					t.Fatalf("%s on %s: %v", k.Name, name, err)
				}
				t.Logf("%s %s on %s: %d registers, %d bytes spilled", p.name, k.Name, name, made.Registers, made.SpillStores)
				if made.SpillStores > 0 {
					t.Errorf("%s: %s on %s: %d bytes spilled", p.name, k.Name, name, made.SpillStores)
				}
			}
		}
	}
}

// smallOdd are sizes of the programs that an interpreter can run.
var smallOdd = map[string][][]int{
	"matvec":          {{37, 333}, {127, 35}, {1, 509}},
	"matvec-k":        {{16, 127}},
	"matvec-f16":      {{35, 509}},
	"product":         {{37, 127, 35}, {13, 333, 61}, {3, 37, 5}},
	"product-columns": {{37, 127, 35}, {13, 35, 333}, {3, 37, 5}},
	"middle-max":      {{5, 127, 37}, {3, 35, 13}},
	"column-sums":     {{333, 37}, {35, 127}},
	"row-sums":        {{37, 333}, {127, 35}},
	"softmax":         {{5, 333}, {3, 1009}, {37, 35}},
	"layer-norm":      {{5, 333}, {3, 1009}, {37, 35}},
	"elementwise":     {{37, 35}, {3, 1009}, {1, 13}},
	"convolution":     {{5, 7, 13, 1}, {3, 17, 9, 1}},
	"convolution-few": {{16, 7, 35, 1}},
	"attention":       {{2, 35, 37}, {1, 127, 13}},
	"outer-sums":      {{5, 7, 35}, {35, 3, 37}, {13, 5, 2}},
	"long-rows":       {{2, 20011}, {3, 1009}},
	"long-norm":       {{2, 20011}, {3, 1009}},
	"sort":            {{135, 35}, {600, 37}, {5, 13}},
	"running-sums":    {{4250, 5}, {37, 13}},
	"running-columns": {{5, 4250}, {13, 37}},
}

// What they compute at such sizes is what the eager model says, on every target.
func TestOddSizesAreExact(t *testing.T) {
	emulated, _ := openEmulated(t)
	for _, p := range oddPrograms {
		for i, sizes := range smallOdd[p.name] {
			c, err := testkit.BuildFixed(func(z *testkit.Fixture) { z.G.Output("out", p.build(z.G, sizes)) }, uint64(i))
			if err != nil {
				t.Fatal(err)
			}
			want, err := c.Expected()
			if err != nil {
				t.Fatal(err)
			}
			run := func(name string, desc *target.Desc, dev runtime.Device) {
				compiled, err := c.Compile(t.Context(), desc, checked())
				if err != nil {
					t.Fatalf("%s %v on %s: %v", p.name, sizes, name, err)
				}
				got, err := c.Run(t.Context(), dev, compiled)
				if err != nil {
					t.Fatalf("%s %v on %s: %v", p.name, sizes, name, err)
				}
				if err := testkit.Compare(got, want); err != nil {
					t.Errorf("%s %v on %s: %v", p.name, sizes, name, err)
				}
			}
			for _, name := range oddTargets {
				desc, err := target.Parse(name)
				if err != nil {
					t.Fatal(err)
				}
				run(name, desc, debugInterp())
			}
			run("cuda:emu", emulated.Target(), emulated)
		}
	}
}
