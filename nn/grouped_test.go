package nn_test

import (
	"cmp"
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
	biased                       bool // as gpt-oss: biases, a softmax of the chosen scores, a clamped unit
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
		"balanced":         {1, 24, 4, 2, random, false},
		"two sequences":    {2, 19, 4, 2, random, false},
		"all to the same":  {1, 21, 8, 2, among(3, 5), false},
		"experts left out": {1, 17, 8, 2, among(2, 7), false},
		"all but full":     {1, 33, 8, 1, func(_ *rand.Rand, token, expert int) float64 { return float64(8 - (expert-token%4)*(expert-token%4)) }, false},
		"biased":           {2, 19, 4, 2, random, true},
		"one expert":       {4, 1, 1, 1, random, false},
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
	biases := expertBiases{}
	if c.biased {
		biases = expertBiases{router: normal(c.experts), gate: normal(c.experts * f), up: normal(c.experts * f), down: normal(c.experts * d)}
		layer.RouterBias, layer.GateBias = tensor.FromSlice(g, biases.router, c.experts), tensor.FromSlice(g, biases.gate, c.experts, f)
		layer.UpBias, layer.DownBias = tensor.FromSlice(g, biases.up, c.experts, f), tensor.FromSlice(g, biases.down, c.experts, d)
		layer.AmongChosen, layer.Hidden = true, nn.ClampedGLU
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
		want, difference, total := c.token(x[n*d:][:d], gate, up, down, biases), 0., 0.
		for k, w := range want {
			difference += (float64(got[n*d+k]) - w) * (float64(got[n*d+k]) - w)
			total += w * w
		}
		if !(difference <= 1e-10*total) {
			t.Errorf("token %d: %g, want %g", n, got[n*d:][:d], want)
		}
	}
}

// expertBiases are those of a layer; nil where it has none.
type expertBiases struct{ router, gate, up, down []float32 }

// token is the layer for one token, in float64.
func (c expertsCase) token(x, gate, up, down []float32, biases expertBiases) []float64 {
	const d, f = expertsWidth, expertsHidden
	order, scores := make([]int, c.experts), make([]float64, c.experts)
	for e := range order {
		order[e], scores[e] = e, float64(x[e])
		if c.biased {
			scores[e] = float64(x[e] + biases.router[e])
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	total, among := 0., order // whose scores the softmax is over
	if c.biased {
		among = order[:c.used]
	}
	for _, e := range among {
		total += math.Exp(scores[e])
	}
	out := make([]float64, d)
	for _, e := range order[:c.used] {
		weight := math.Exp(scores[e]) / total
		for i := range f {
			g, u := 0., 0.
			for k := range d {
				g += float64(gate[(e*f+i)*d+k]) * float64(x[k])
				u += float64(up[(e*f+i)*d+k]) * float64(x[k])
			}
			hidden := g / (1 + math.Exp(-g)) * u
			if c.biased {
				g, u = min(g+float64(biases.gate[e*f+i]), 7), max(min(u+float64(biases.up[e*f+i]), 7), -7)
				hidden = g / (1 + math.Exp(-1.702*g)) * (u + 1)
			}
			for k := range d {
				out[k] += weight * hidden * float64(down[(e*d+k)*f+i])
			}
		}
		for k := range d {
			if c.biased {
				out[k] += weight * float64(biases.down[e*d+k])
			}
		}
	}
	return out
}
