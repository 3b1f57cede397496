package search

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

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
	if err := (&Model{Features: []string{"other"}, Weights: []float64{1}}).Check(); err == nil {
		t.Error("a model of other features is accepted")
	}
}

// A model changes the order in which candidates are tried, and no outcome.
func TestModelOrders(t *testing.T) {
	dev := interp.New(interp.Options{})
	k := smallKernel(t, 0, dev.Target()).Kernels[0]
	plans := []plan.Plan{k.Plan, parsed(t, ""), parsed(t, "UPCAST s0 7"), parsed(t, "UPCAST s0 4"), parsed(t, "UNROLL s0 4"), parsed(t, "ROLL s0"), parsed(t, "VECTOR r0 999")}
	try := func(m *Model) (out []Outcome, ran []string) {
		b, err := NewBench(t.Context(), dev, k.AST, BenchOptions{Limits: DefaultLimits(), Baseline: k.Plan.String(), Model: m})
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
