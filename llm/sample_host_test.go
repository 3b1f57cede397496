package llm

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"tgc/engine"
	"tgc/runtime/interp"
	"tgc/tensor"
)

// The host draws what the device's sampler draws from the same logits, where both can.
func TestHostDrawsAsDevice(t *testing.T) {
	ctx := t.Context()
	random := rand.New(rand.NewPCG(3, 4))
	logits := make([]float32, 60)
	for i := range logits {
		logits[i] = float32(random.NormFloat64() * 2)
	}
	logits[7], logits[11] = logits[9], logits[9] // ties
	for _, greedy := range []bool{false, true} {
		g := BuildSampler(1, len(logits))
		if greedy {
			g = BuildGreedy(1, len(logits))
		}
		f, err := tensor.Compile(ctx, g, interp.New(interp.Options{}), engine.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for draw := range uint32(60) {
			s := Sampling{Temperature: 0.3 + float64(draw%5)*0.4, TopK: int(draw % 9 * 4), TopP: 0.35 + float64(draw%14)*0.05, Seed: draw / 7}
			if greedy {
				s.Temperature = 0
			}
			row := slices.Clone(logits)
			if err := tensor.Set(ctx, f, BufferLogits, row); err != nil {
				t.Fatal(err)
			}
			if !greedy {
				k := s.TopK
				if k == 0 {
					k = len(logits)
				}
				if err := tensor.Set(ctx, f, bufferFloats, []float32{float32(1 / s.Temperature), float32(s.TopP)}); err != nil {
					t.Fatal(err)
				}
				if err := tensor.Set(ctx, f, bufferWords, []uint32{uint32(k), s.Seed, draw}); err != nil {
					t.Fatal(err)
				}
			}
			if err := f.Run(ctx, nil); err != nil {
				t.Fatal(err)
			}
			want, err := tensor.Get[int32](ctx, f, "token")
			if err != nil {
				t.Fatal(err)
			}
			if got := s.pick(slices.Clone(logits), nil, draw); got != want[0] {
				t.Errorf("%+v, draw %d: the host drew %d, the device %d", s, draw, got, want[0])
			}
		}
	}
}

// Min-p keeps what has that part of the largest probability, a bias moves and forbids
// tokens, a penalty makes recent ones less likely, once each.
func TestHostSampling(t *testing.T) {
	logits := []float32{2, 1.9, 0, -1}
	drawn := func(s Sampling, recent ...int32) []bool {
		got := make([]bool, len(logits))
		for draw := range uint32(400) {
			got[s.pick(slices.Clone(logits), recent, draw)] = true
		}
		return got
	}
	flat := Sampling{Temperature: 10, TopP: 1}
	for _, c := range []struct {
		name   string
		s      Sampling
		recent []int32
		want   []bool
	}{
		{"everything", flat, nil, []bool{true, true, true, true}},
		{"min-p", Sampling{Temperature: 1, TopP: 1, MinP: 0.5}, nil, []bool{true, true, false, false}},
		{"min-p of all", Sampling{Temperature: 1, TopP: 1, MinP: 1}, nil, []bool{true, false, false, false}},
		{"min-p after temperature", Sampling{Temperature: 10, TopP: 1, MinP: 0.5}, nil, []bool{true, true, true, true}},
		{"forbidden", Sampling{Temperature: 10, TopP: 1, Bias: map[int32]float32{0: float32(math.Inf(-1)), 2: -100000}}, nil, []bool{false, true, false, true}},
		{"wanted", Sampling{TopP: 1, Bias: map[int32]float32{3: 5, 99: 7}}, nil, []bool{false, false, false, true}},
		{"penalty", Sampling{TopP: 1, RepeatPenalty: 1.2}, []int32{0, 0, 0}, []bool{false, true, false, false}},
		{"penalty below zero", Sampling{TopP: 1, RepeatPenalty: 4, Bias: map[int32]float32{0: -5, 1: -4.5, 2: -2.5, 3: -9}}, []int32{2}, []bool{false, true, false, false}},
		{"penalty for old tokens", Sampling{TopP: 1, RepeatPenalty: 1.2}, append([]int32{0}, make64(3)...), []bool{true, false, false, false}},
	} {
		if got := drawn(c.s, c.recent...); !slices.Equal(got, c.want) {
			t.Errorf("%s: drawn %v, want %v", c.name, got, c.want)
		}
	}
}

func make64(id int32) []int32 { return slices.Repeat([]int32{id}, repeatWindow) }

// Top-k finds what sorting finds.
func TestCandidates(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		logits := make([]float32, 1+random.IntN(12))
		for i := range logits {
			logits[i] = float32(random.IntN(6))
		}
		k := 1 + random.IntN(12)
		want := slices.Sorted(slices.Values(logits))
		slices.Reverse(want)
		for k < len(want) && want[k-1] != want[k] {
			want = want[:k]
		}
		for n := len(want); k < n; n-- {
			if want[n-1] == want[k-1] {
				want = want[:n]
				break
			}
		}
		if got := (Sampling{TopK: k}).candidates(logits); !slices.Equal(got, want) {
			t.Fatalf("top %d of %v: got %v, want %v", k, logits, got, want)
		}
	}
}

// A stop is found wherever the stream is cut, as it is in the whole text.
func TestStopMatcher(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	word := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteString([]string{"a", "b", "é"}[random.IntN(3)])
		}
		return b.String()
	}
	for range 100000 {
		text := word(random.IntN(14))
		var stops []string
		for range random.IntN(4) {
			stops = append(stops, word(1+random.IntN(4)))
		}
		end := len(text)
		for _, s := range stops {
			if i := strings.Index(text, s); i >= 0 {
				end = min(end, i)
			}
		}
		m, err := NewStopMatcher(stops)
		if err != nil {
			t.Fatal(err)
		}
		got, rest := "", text
		for rest != "" {
			n := 1
			for n < len(rest) && random.IntN(3) > 0 {
				n++
			}
			before, stopped := m.Next(rest[:n])
			got, rest = got+before, rest[n:]
			if stopped {
				break
			}
		}
		got += m.Flush()
		if got != text[:end] || m.Stopped() != (end < len(text)) {
			t.Fatalf("%q with stops %q: got %q (stopped: %t), want %q", text, stops, got, m.Stopped(), text[:end])
		}
	}
	if _, err := NewStopMatcher([]string{"a", ""}); err == nil {
		t.Error("an empty stop is no error")
	}
}
