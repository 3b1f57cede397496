package engine_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"tgc/engine"
	"tgc/ir"
	"tgc/runtime"
	"tgc/runtime/interp"
	"tgc/schedule"
	"tgc/target"
	"tgc/tensor"
)

// parGraph has three independent results of different extents, and one that
// needs two of them: two launches.
func parGraph() *tensor.Graph {
	g := tensor.NewGraph()
	x := g.Input("x", ir.F32, 256)
	a := x.Linear(g.Input("wa", ir.F32, 96, 256)).Contiguous()
	b := x.Linear(g.Input("wb", ir.F32, 40, 256)).Contiguous()
	g.Output("c", x.MulScalar(2).Exp().SliceInts(0, 3, 17))
	g.Output("d", a.Sum(0).Add(b.Sum(0)))
	g.Output("a", a)
	g.Output("b", b)
	return g
}

// On a GPU the kernels of a launch are one grid, whose blocks run one part
// each; it computes what the kernels apart compute, bit for bit.
func TestLaunchesMerge(t *testing.T) {
	desc, err := target.Parse("ptx:sm_90")
	if err != nil {
		t.Fatal(err)
	}
	merged, kernels := runPar(t, desc, engine.Config{Verify: true})
	apart, more := runPar(t, desc, engine.Config{Verify: true, Rules: schedule.RuleSet(nil).With(schedule.Par)})
	if len(kernels) >= len(more) {
		t.Errorf("%d kernels merged, %d apart", len(kernels), len(more))
	}
	parts := 0
	for _, k := range kernels {
		parts += len(k.Parts)
		if len(k.Parts) > 0 && k.AST.Op != ir.OpPar {
			t.Errorf("kernel %s of %d parts is a %s", k.Name, len(k.Parts), k.AST.Op)
		}
		if len(k.Parts) > 0 {
			if err := ir.VerifyKernel(k.AST); err != nil {
				t.Errorf("kernel %s: %v", k.Name, err)
			}
		}
	}
	if parts < 3 {
		t.Errorf("%d parts of merged kernels, want at least 3", parts)
	}
	for name, want := range apart {
		if !slices.Equal(merged[name], want) {
			t.Errorf("%s: merged %v, apart %v", name, merged[name], want)
		}
	}
}

// Kernels of a launch have blocks of different widths, and the threads of each part wait for each other: sums of long rows, which a
// block's warps share, beside those of short ones. In the emulator, where barriers are those of the PTX, they compute what they do apart.
func TestPartsOfDifferentWidthsMerge(t *testing.T) {
	desc, err := target.Parse("ptx:sm_90")
	if err != nil {
		t.Fatal(err)
	}
	graph := func() *tensor.Graph {
		g := tensor.NewGraph()
		for name, columns := range map[string]int{"x": 4096, "y": 256} {
			v := g.Input(name, ir.F32, 8, columns)
			v = v.Sub(v.Max(-1).Unsqueeze(-1))
			g.Output("of "+name, v.Mul(v).Sum(-1))
		}
		return g
	}
	run := func(dev runtime.Device, rules schedule.RuleSet) (out [2][]float32, kernels []*engine.Kernel) {
		f, err := tensor.Compile(t.Context(), graph(), dev, engine.Config{Verify: true, Rules: rules})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		r := rand.New(rand.NewPCG(3, 4))
		setRandom(t, f, r, "x", 8*4096)
		setRandom(t, f, r, "y", 8*256)
		if err := f.Run(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		for i, name := range []string{"of x", "of y"} {
			if out[i], err = tensor.Get[float32](t.Context(), f, name); err != nil {
				t.Fatal(err)
			}
		}
		return out, f.Step().Compiled.Kernels
	}
	emulated, _ := openEmulated(t)
	want, apart := run(interp.New(interp.Options{Debug: true, Target: desc}), schedule.RuleSet(nil).With(schedule.Par))
	widths := make(map[int64]bool)
	for _, k := range apart {
		widths[k.Program.Threads()] = true
	}
	if len(widths) < 2 {
		t.Fatalf("blocks of %v threads: want different ones", widths)
	}
	for name, dev := range map[string]runtime.Device{"interpreted": interp.New(interp.Options{Debug: true, Shuffle: 3, Target: desc}), "emulated": emulated} {
		got, kernels := run(dev, nil)
		if len(kernels) != 1 || len(kernels[0].Parts) != 2 {
			t.Errorf("%s: %d kernels, want one of two parts", name, len(kernels))
		}
		for i := range got {
			if !slices.Equal(got[i], want[i]) {
				t.Errorf("%s: result %d: %v, want %v", name, i, got[i], want[i])
			}
		}
	}
}

// A part of many narrow blocks whose threads wait for each other stays a kernel: in wide ones most threads would do nothing.
func TestManyIdleThreadsStayApart(t *testing.T) {
	desc, err := target.Parse("ptx:sm_90")
	if err != nil {
		t.Fatal(err)
	}
	for rows, want := range map[int]int{8: 1, 8192: 2} {
		g := tensor.NewGraph()
		for name, shape := range map[string][]int{"few": {2, 16384}, "many": {rows, 512}} {
			v := g.Input(name, ir.F32, shape...)
			v = v.Sub(v.Max(-1).Unsqueeze(-1))
			g.Output("of "+name, v.Mul(v).Sum(-1))
		}
		f, err := tensor.Compile(t.Context(), g, interp.New(interp.Options{Target: desc}), engine.Config{Verify: true})
		if err != nil {
			t.Fatal(err)
		}
		var widths []int64
		for _, k := range f.Step().Compiled.Kernels {
			widths = append(widths, k.Program.Threads())
		}
		if len(widths) != want {
			t.Errorf("%d rows of 512: kernels of %d threads, want %d kernels", rows, widths, want)
		}
		f.Close()
	}
}

func runPar(t *testing.T, desc *target.Desc, config engine.Config) (map[string][]float32, []*engine.Kernel) {
	t.Helper()
	ctx := t.Context()
	f, err := tensor.Compile(ctx, parGraph(), interp.New(interp.Options{Debug: true, Shuffle: 3, Target: desc}), config)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := rand.New(rand.NewPCG(1, 2))
	setRandom(t, f, r, "x", 256)
	setRandom(t, f, r, "wa", 96*256)
	setRandom(t, f, r, "wb", 40*256)
	if err := f.Run(ctx, nil); err != nil {
		t.Fatal(err)
	}
	out := make(map[string][]float32)
	for _, name := range []string{"a", "b", "c", "d"} {
		if out[name], err = tensor.Get[float32](ctx, f, name); err != nil {
			t.Fatal(err)
		}
	}
	return out, f.Step().Compiled.Kernels
}

func setRandom(t *testing.T, f *tensor.Function, r *rand.Rand, name string, n int) {
	t.Helper()
	values := make([]float32, n)
	for i := range values {
		values[i] = r.Float32() - 0.5
	}
	if err := tensor.Set(t.Context(), f, name, values); err != nil {
		t.Fatal(err)
	}
}

// A PAR in text form compiles as one launch.
func TestParAsText(t *testing.T) {
	text := `%1 = param f32 [0] 8
%2 = param f32 [1] 8
%3 = range idx [0] 8
%4 = load f32 %1 %3
%5 = neg f32 %4
%6 = store void [1] %2 %5 %3 %3
%7 = sink void %6
%9 = param f32 [2] 5
%10 = param f32 [3] 5
%11 = range idx [0] 5
%12 = load f32 %9 %11
%13 = exp2 f32 %12
%14 = store void [1] %10 %13 %11 %11
%15 = sink void %14
%16 = par void %7 %15
`
	sink, err := ir.Parse(ir.NewArena(), text)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"ptx:sm_90": 1, "llvm": 2} {
		desc, err := target.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		c, err := engine.Compile(t.Context(), sink, desc, engine.Config{Verify: true})
		if err != nil {
			t.Fatal(err)
		}
		if len(c.Launches) != 1 || len(c.Launches[0]) != want {
			t.Errorf("%s: %d launches, the first of %d kernels; want one of %d", name, len(c.Launches), len(c.Launches[0]), want)
		}
	}
}
