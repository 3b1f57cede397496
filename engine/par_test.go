package engine_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"tgc/engine"
	"tgc/ir"
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
