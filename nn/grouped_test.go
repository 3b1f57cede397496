package nn_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tgc/engine"
	"tgc/nn"
	"tgc/runtime/interp"
	"tgc/target"
	"tgc/tensor"
)

// expertsCase is a layer whose router reads a token's preferences off its first
// elements.
type expertsCase struct {
	batch, tokens, experts, used int
	prefers                      func(r *rand.Rand, token, expert int) float64
}

const expertsWidth, expertsHidden = 16, 8

// Tokens grouped by expert give what each gets by itself: with groups of any size,
// none among them, that end in the midst of a tile.
func TestExpertsOfManyTokens(t *testing.T) {
	random := func(r *rand.Rand, _, _ int) float64 { return r.NormFloat64() }
	among := func(first, behind int) func(*rand.Rand, int, int) float64 {
		return func(r *rand.Rand, _, expert int) float64 {
			if expert < first || expert >= behind {
				return -3
			}
			return r.NormFloat64()
		}
	}
	gpu, err := target.Parse("ptx:sm_90")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]expertsCase{
		"balanced":         {1, 24, 4, 2, random},
		"two sequences":    {2, 19, 4, 2, random},
		"all to the same":  {1, 21, 8, 2, among(3, 5)},
		"experts left out": {1, 17, 8, 2, among(2, 7)},
		"all but full":     {1, 33, 8, 1, func(_ *rand.Rand, token, expert int) float64 { return float64(8 - (expert-token%4)*(expert-token%4)) }},
		"one expert":       {4, 1, 1, 1, random},
	} {
		t.Run(name, func(t *testing.T) { c.check(t, interp.Options{}) })
		if c.batch > 1 { // blocks of threads take a hundred times as long
			t.Run(name+" gpu", func(t *testing.T) { c.check(t, interp.Options{Target: gpu, Debug: true}) })
		}
	}
}

func (c expertsCase) check(t *testing.T, options interp.Options) {
	r := rand.New(rand.NewPCG(7, uint64(c.tokens)))
	normal := func(n int) []float32 {
		out := make([]float32, n)
		for i := range out {
			out[i] = float32(r.NormFloat64())
		}
		return out
	}
	const d, f = expertsWidth, expertsHidden
	x, router := normal(c.batch*c.tokens*d), make([]float32, c.experts*d)
	gate, up, down := normal(c.experts*f*d), normal(c.experts*f*d), normal(c.experts*d*f)
	for e := range c.experts {
		router[e*d+e] = 1
		for n := range c.batch * c.tokens {
			x[n*d+e] = float32(c.prefers(r, n, e))
		}
	}
	g := tensor.NewGraph()
	layer := nn.Experts{
		Router: tensor.FromSlice(g, router, c.experts, d), Gate: tensor.FromSlice(g, gate, c.experts, f, d),
		Up: tensor.FromSlice(g, up, c.experts, f, d), Down: tensor.FromSlice(g, down, c.experts, d, f), Used: c.used,
	}
	g.Output("y", layer.Apply(tensor.FromSlice(g, x, c.batch, c.tokens, d)))
	run, err := tensor.Compile(t.Context(), g, interp.New(options), engine.Config{Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	got, err := tensor.Get[float32](t.Context(), run, "y")
	if err != nil {
		t.Fatal(err)
	}
	for n := range c.batch * c.tokens {
		want, difference, total := c.token(x[n*d:][:d], gate, up, down), 0., 0.
		for k, w := range want {
			difference += (float64(got[n*d+k]) - w) * (float64(got[n*d+k]) - w)
			total += w * w
		}
		if !(difference <= 1e-10*total) {
			t.Errorf("token %d: %g, want %g", n, got[n*d:][:d], want)
		}
	}
}

// token is the layer for one token, in float64.
func (c expertsCase) token(x, gate, up, down []float32) []float64 {
	const d, f = expertsWidth, expertsHidden
	order, total := make([]int, c.experts), 0.
	for e := range order {
		order[e] = e
		total += math.Exp(float64(x[e]))
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case x[a] > x[b]:
			return -1
		case x[a] < x[b]:
			return 1
		}
		return 0
	})
	out := make([]float64, d)
	for _, e := range order[:c.used] {
		weight := math.Exp(float64(x[e])) / total
		for i := range f {
			g, u := 0., 0.
			for k := range d {
				g += float64(gate[(e*f+i)*d+k]) * float64(x[k])
				u += float64(up[(e*f+i)*d+k]) * float64(x[k])
			}
			hidden := g / (1 + math.Exp(-g)) * u
			for k := range d {
				out[k] += weight * hidden * float64(down[(e*d+k)*f+i])
			}
		}
	}
	return out
}
