package llm_test

import (
	"math"
	"testing"

	"tgc/engine"
	"tgc/llm"
	"tgc/runtime/interp"
	"tgc/target"
	"tgc/tensor"
)

// sampleRig is the sampling graph over a few logits on the interpreter.
type sampleRig struct {
	t *testing.T
	f *tensor.Function
}

func newSampleRig(t *testing.T, logits []float32, parts int) *sampleRig {
	t.Helper()
	desc := target.Interp()
	desc.Tuning.SumParts = parts
	dev := interp.New(interp.Options{Target: desc})
	f, err := tensor.Compile(t.Context(), llm.BuildSampler(1, len(logits)), dev, engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	if err := tensor.Set(t.Context(), f, llm.BufferLogits, logits); err != nil {
		t.Fatal(err)
	}
	return &sampleRig{t, f}
}

// counts draws n tokens.
func (r *sampleRig) counts(n int, temperature float64, topK int, topP float64, seed uint32, vocabulary int) []int {
	r.t.Helper()
	ctx := r.t.Context()
	if err := tensor.Set(ctx, r.f, "floats", []float32{float32(1 / temperature), float32(topP)}); err != nil {
		r.t.Fatal(err)
	}
	out := make([]int, vocabulary)
	for draw := range n {
		if err := tensor.Set(ctx, r.f, "words", []uint32{uint32(topK), seed, uint32(draw)}); err != nil {
			r.t.Fatal(err)
		}
		if err := r.f.Run(ctx, nil); err != nil {
			r.t.Fatal(err)
		}
		token, err := tensor.Get[int32](ctx, r.f, "token")
		if err != nil {
			r.t.Fatal(err)
		}
		out[token[0]]++
	}
	return out
}

var sampleLogits = []float32{1.5, -0.5, 0, 2.25, -3, 1.5, -1e30, 0.75}

// Draws follow the softmax of what top-k and top-p keep.
func TestSamplerFollowsProbabilities(t *testing.T) {
	for _, parts := range []int{1, 4} {
		followProbabilities(t, newSampleRig(t, sampleLogits, parts))
	}
}

func followProbabilities(t *testing.T, rig *sampleRig) {
	t.Helper()
	const draws = 4000
	for _, c := range []struct {
		name        string
		temperature float64
		topK        int
		topP        float64
		kept        []int
	}{
		{"all", 1, 8, 1, []int{0, 1, 2, 3, 4, 5, 6, 7}},
		{"cold", 0.5, 8, 1, []int{0, 1, 2, 3, 4, 5, 6, 7}},
		{"top 1", 1, 1, 1, []int{3}},
		{"top 2 keeps equals", 1, 2, 1, []int{0, 3, 5}},
		{"top 4", 1, 4, 1, []int{0, 3, 5, 7}},
		{"tiny p", 1, 8, 0.01, []int{3}},
		{"p of half", 1, 8, 0.5, []int{0, 3, 5}},
		{"k, then p", 1, 4, 0.95, []int{0, 3, 5, 7}},
	} {
		got := rig.counts(draws, c.temperature, c.topK, c.topP, 7, len(sampleLogits))
		total := 0.0
		want := make([]float64, len(sampleLogits))
		for _, i := range c.kept {
			want[i] = math.Exp(float64(sampleLogits[i]) / c.temperature)
			total += want[i]
		}
		for i := range want {
			p := want[i] / total
			// Five standard deviations: with a fixed seed this is no gamble.
			if bound := 5*math.Sqrt(draws*p*(1-p)) + 1e-9; math.Abs(float64(got[i])-draws*p) > bound {
				t.Errorf("%s: token %d was drawn %d times, want %.0f within %.0f", c.name, i, got[i], draws*p, bound)
			}
		}
	}
}

// A seed gives the same draws again, another seed other ones.
func TestSamplerSeed(t *testing.T) {
	rig := newSampleRig(t, sampleLogits, 1)
	sequence := func(seed uint32) (s [40]int) {
		for draw := range s {
			if err := tensor.Set(t.Context(), rig.f, "words", []uint32{8, seed, uint32(draw)}); err != nil {
				t.Fatal(err)
			}
			if err := tensor.Set(t.Context(), rig.f, "floats", []float32{1, 1}); err != nil {
				t.Fatal(err)
			}
			if err := rig.f.Run(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			token, err := tensor.Get[int32](t.Context(), rig.f, "token")
			if err != nil {
				t.Fatal(err)
			}
			s[draw] = int(token[0])
		}
		return s
	}
	first, again := sequence(1), sequence(1)
	if first != again {
		t.Error("the same seed gave other tokens")
	}
	if first == sequence(2) {
		t.Error("two seeds gave the same 40 tokens")
	}
}

// Greedy takes the first of equal maxima.
func TestGreedyTakesFirst(t *testing.T) {
	f, err := tensor.Compile(t.Context(), llm.BuildGreedy(2, 5), interp.New(interp.Options{}), engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := tensor.Set(t.Context(), f, llm.BufferLogits, []float32{1, 3, 3, 2, -1, -5, -4, -4, -6, -4}); err != nil {
		t.Fatal(err)
	}
	if err := f.Run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	got, err := tensor.Get[int32](t.Context(), f, "token")
	if err != nil || got[0] != 1 || got[1] != 1 {
		t.Errorf("got %v, %v, want 1 and 1", got, err)
	}
}
