package search

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/kernel/plan"
	"tgc/runtime/interp"
)

// A model finds the weights of times that are made of features, kernel by kernel, and orders the
// candidates of a kernel that it has not seen.
func TestModel(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	kernels := make([][]Timed, 5)
	for i := range kernels {
		level := 3 * rng.Float64()
		for range 60 {
			var c Timed
			for k := range c.Features {
				c.Features[k] = rng.Float64()
			}
			log := level + 2*c.Features[featureMemory] + 0.5*c.Features[featureAll]
			c.Time = math.Exp(log + 0.02*rng.NormFloat64())
			kernels[i] = append(kernels[i], c)
		}
	}
	m := FitModel(kernels[1:])
	if err := m.Check(); err != nil {
		t.Error(err)
	}
	if w := m.Weights; math.Abs(w[featureMemory]-2) > 0.1 || math.Abs(w[featureAll]-0.5) > 0.1 || math.Abs(w[featureBlocks]) > 0.1 {
		t.Errorf("weights %v", w)
	}
	if r := Ranks(kernels[0], m.Score, 0.05, 3); r.Tau < 0.9 || r.Loss > 0.05 || r.Pairs < 1000 {
		t.Errorf("%+v of a kernel that was left out", r)
	}
	if r := Ranks(kernels[0], func(f Features) float64 { return -m.Score(f) }, 0.05, 3); r.Tau > -0.9 || r.Loss < 1 {
		t.Errorf("%+v of the opposite order", r)
	}
	for _, trees := range []string{
		`[[]]`, `[[{"feature":0,"below":1,"yes":0,"no":1},{"feature":-1}]]`, `[[{"feature":99,"yes":1,"no":2},{"feature":-1},{"feature":-1}]]`,
		`[[{"feature":0,"yes":1,"no":7},{"feature":-1}]]`, `[[{"feature":-2,"yes":1,"no":1},{"feature":-1}]]`,
	} {
		hostile := *m
		if err := json.Unmarshal([]byte(trees), &hostile.Trees); err != nil {
			t.Fatal(err)
		}
		if err := hostile.Check(); err == nil {
			t.Errorf("trees %s are accepted", trees)
		}
	}
	if err := (&Model{Features: []string{"other"}, Weights: []float64{1}}).Check(); err == nil {
		t.Error("a model of other features is accepted")
	}
}

// Trees find what no sum of features says: here both too little and too much is asked for, and
// that counts for programs of many instructions only.
func TestModelLearnsBounds(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 3))
	kernels := make([][]Timed, 12)
	for i := range kernels {
		for range 60 {
			var c Timed
			for k := range c.Features {
				c.Features[k] = rng.Float64()
			}
			if c.Time = 1; c.Features[featureAll] > 0.5 {
				c.Time = 1 + math.Abs(c.Features[featureAsked]-0.5)
			}
			kernels[i] = append(kernels[i], c)
		}
	}
	plain, m := fitWeights(kernels[1:]), FitModel(kernels[1:])
	x, y := Ranks(kernels[0], plain.Score, 0.05, 3), Ranks(kernels[0], m.Score, 0.05, 3)
	if y.Tau < 0.95 || x.Tau > 0.85 {
		t.Errorf("tau %.2f with trees, %.2f without", y.Tau, x.Tau)
	}
}

// What a thread holds and asks for is read off a program.
func TestShape(t *testing.T) {
	b := program.NewBuilder("k")
	p := b.Buffer(0, ir.F32, "p", 16, 1<<20)
	f32 := func(p *program.Value, at int64) *program.Value { return b.Load(b.PtrAdd(p, b.Index(at)), 4, 16) }
	x, y := f32(p, 0), f32(p, 4)
	b.Barrier()
	sum := b.For(b.Index(0), b.Index(8), b.Index(1), []*program.Value{b.Zero(x.Type)}, func(i *program.Value, carried []*program.Value) []*program.Value {
		return []*program.Value{b.Alu(ir.OpAdd, carried[0], b.Alu(ir.OpMul, x, b.Load(b.PtrAdd(p, i), 4, 16)))}
	})
	b.Store(p, b.Alu(ir.OpAdd, sum[0], y), 16)
	s := shapeOf(b.Finish())
	if s.flight != 32 || s.loads != 2 || s.wide != 16 || s.barriers != 1 {
		t.Errorf("%+v: want two loads of 16 bytes in a row, and a barrier", s)
	}
	if s.live < 16 || s.live > 32 { // x, y, what is carried and what is loaded
		t.Errorf("%v registers are live", s.live)
	}
}

// A model changes the order in which candidates are tried, and no outcome.
func TestModelOrders(t *testing.T) {
	dev := interp.New(interp.Options{})
	k := smallKernel(t, 0, dev.Target()).Kernels[0]
	plans := []plan.Plan{k.Plan, parsed(t, ""), parsed(t, "UPCAST s0 7"), parsed(t, "UPCAST s0 4"), parsed(t, "UNROLL s0 4"), parsed(t, "ROLL s0"), parsed(t, "VECTOR r0 999")}
	try := func(m *Model) (out []Outcome, ran []string) {
		b, err := NewBench(t.Context(), dev, k.AST, BenchOptions{Limits: DefaultLimits(), Baseline: k.Plan.String(), Ranked: true, Model: m})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		b.report = func(o Outcome) {
			if o.Status == running {
				ran = append(ran, o.Plan)
			}
		}
		if out, err = b.Try(t.Context(), plans); err != nil {
			t.Fatal(err)
		}
		return out, ran
	}
	plain, first := try(nil)
	m := &Model{Features: featureNames[:], Weights: make([]float64, numFeatures)}
	m.Weights[featureSource] = -1 // large programs first
	ranked, second := try(m)
	if len(ranked) != len(plain) || len(first) != len(second) || slices.Equal(first, second) {
		t.Fatalf("%d and %d outcomes, run in the orders %q and %q", len(plain), len(ranked), first, second)
	}
	for i := range plain {
		if plain[i].Plan != ranked[i].Plan || plain[i].Status != ranked[i].Status || plain[i].Source != ranked[i].Source {
			t.Errorf("%+v with a model, %+v without", ranked[i], plain[i])
		}
	}
	for _, text := range []string{"", "[]", `{"features":["memory"],"weights":[1]}`} {
		if _, err := ReadModel(strings.NewReader(text)); err == nil {
			t.Errorf("%q is a model", text)
		}
	}
}
