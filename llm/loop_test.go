package llm_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"tgc/llm"
	"tgc/llm/tokenizer"
	"tgc/runtime"
	"tgc/runtime/interp"
)

// loopSampling are the ways to draw that a loop must know.
var loopSampling = map[string]llm.Sampling{
	"greedy": {TopP: 1},
	"seeded": {Temperature: 1.5, TopK: 200, TopP: 0.95, Seed: 11},
}

// endAt makes token id the model's only end of text.
func endAt(t *testing.T, m *llm.Model, id int32) {
	t.Helper()
	v, err := tokenizer.FromMetadata(m.File.Optional())
	if err != nil {
		t.Fatal(err)
	}
	v.EOS = id
	if m.Tokenizer, err = tokenizer.New(v); err != nil {
		t.Fatal(err)
	}
}

func newLoopSession(t *testing.T, m *llm.Model, dev runtime.Device, context, ahead int) *llm.Session {
	t.Helper()
	s, err := llm.NewSession(t.Context(), m, dev, llm.SessionOptions{Context: context, Ahead: ahead})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// The loop on the device gives the tokens of the host's loop: whole
// generations one after the other, ended by their number of tokens, by the full
// context, and in the middle of the steps of one look.
func TestLoopEqualsHost(t *testing.T) {
	for _, device := range []string{"cpu", "interp"} {
		dev := openDevice(t, device)
		m := loopModel(t)
		for name, sampling := range loopSampling {
			t.Run(device+" "+name, func(t *testing.T) {
				host := newLoopSession(t, m, dev, 40, -1)
				ahead := newLoopSession(t, m, dev, 40, 5)
				for _, r := range []llm.Request{
					{Prompt: []int32{5, 300, 7}, Tokens: 9, IgnoreEOS: true},
					{Prompt: []int32{12}, Tokens: 1, IgnoreEOS: true},
					{Prompt: []int32{900}, Tokens: 2, IgnoreEOS: true},
					{Prompt: []int32{8, 8}, Tokens: -1, IgnoreEOS: true},
				} {
					r.Sampling = sampling
					sameGeneration(t, host, ahead, r)
				}
			})
		}
	}
}

// sameGeneration runs a request on both and compares.
func sameGeneration(t *testing.T, host, ahead *llm.Session, r llm.Request) *llm.Result {
	t.Helper()
	want, err := host.Generate(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ahead.Generate(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Tokens, want.Tokens) || got.DecodeTokens != want.DecodeTokens || ahead.Position() != host.Position() {
		t.Errorf("got %v in %d steps, position %d; want %v in %d steps, position %d",
			got.Tokens, got.DecodeTokens, ahead.Position(), want.Tokens, want.DecodeTokens, host.Position())
	}
	return want
}

var errEnough = errors.New("enough")

// Cancelled and refused generations end where the caller said, and the next one
// goes on from there as the host's loop does.
func TestLoopCancelled(t *testing.T) {
	dev, m := openDevice(t, "cpu"), tinyModel(t)
	host, ahead := newLoopSession(t, m, dev, 64, -1), newLoopSession(t, m, dev, 64, 8)
	for _, s := range []*llm.Session{host, ahead} {
		seen := 0
		got, err := s.Generate(t.Context(), llm.Request{
			Prompt: []int32{3, 4}, Tokens: 30, IgnoreEOS: true, Sampling: loopSampling["greedy"],
			Token: func(int32) error {
				if seen++; seen == 6 {
					return errEnough
				}
				return nil
			},
		})
		if !errors.Is(err, errEnough) || len(got.Tokens) != 6 || s.Position() != 7 {
			t.Errorf("%v, %d tokens, position %d; want the callback's error, 6 and 7", err, len(got.Tokens), s.Position())
		}
	}
	sameGeneration(t, host, ahead, llm.Request{Prompt: []int32{9}, Tokens: 7, IgnoreEOS: true, Sampling: loopSampling["greedy"]})

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	before := ahead.Position()
	got, err := ahead.Generate(ctx, llm.Request{
		Prompt: []int32{3, 4}, Tokens: 30, IgnoreEOS: true, Sampling: loopSampling["greedy"],
		Token: func(int32) error { cancel(); return nil },
	})
	if !errors.Is(err, context.Canceled) || len(got.Tokens) == 0 || ahead.Position() != before+1+len(got.Tokens) {
		t.Errorf("%v, %d tokens, position %d after %d", err, len(got.Tokens), ahead.Position(), before)
	}
}

// An end of text in the middle of the steps of one look: the steps behind it
// leave the position and the logits as they are, so that sampling again and the
// next generation are the host's.
func TestLoopEndOfText(t *testing.T) {
	dev := openDevice(t, "cpu")
	for name, sampling := range loopSampling {
		t.Run(name, func(t *testing.T) {
			m := tinyModel(t)
			r := llm.Request{Prompt: []int32{5, 300, 7}, Tokens: 20, Sampling: sampling}
			whole, err := newLoopSession(t, m, dev, 64, -1).Generate(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			endAt(t, m, whole.Tokens[min(9, len(whole.Tokens)-1)])
			host, ahead := newLoopSession(t, m, dev, 64, -1), newLoopSession(t, m, dev, 64, 8)
			if got := sameGeneration(t, host, ahead, r); len(got.Tokens) >= r.Tokens {
				t.Fatalf("%d tokens: the end of text was not met", len(got.Tokens))
			}
			for range 2 {
				want, err := host.Sample(t.Context(), sampling)
				if err != nil {
					t.Fatal(err)
				}
				if got, err := ahead.Sample(t.Context(), sampling); err != nil || got != want {
					t.Errorf("sampled again: %d, %v, want %d", got, err, want)
				}
			}
			sameGeneration(t, host, ahead, r)
			r.IgnoreEOS = true
			sameGeneration(t, host, ahead, r)
		})
	}
}

// As a GPU's programs, checked, the loop draws the same tokens; a GPU takes it
// without being asked.
func TestLoopGPUPrograms(t *testing.T) {
	dev := interp.New(interp.Options{Debug: true, Target: mustTarget(t, "ptx:sm_90")})
	m := loopModel(t)
	for name, sampling := range loopSampling {
		host, ahead := newLoopSession(t, m, dev, 16, -1), newLoopSession(t, m, dev, 16, 0)
		t.Run(name, func(t *testing.T) {
			sameGeneration(t, host, ahead, llm.Request{Prompt: []int32{5}, Tokens: 4, IgnoreEOS: true, Sampling: sampling})
		})
	}
}
