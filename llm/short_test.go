package llm_test

import (
	"testing"

	"tgc/llm"
	"tgc/runtime/interp"
	"tgc/target"
)

// shortCaches is the interpreter as a target that compiles steps for the first rows of a
// long cache.
func shortCaches(rows int) *interp.Device {
	desc := target.Interp()
	desc.Tuning.ShortCache = rows
	return interp.New(interp.Options{Target: desc})
}

// A text that grows past the first rows of a long cache, and one that begins past them,
// get the tokens that one step over the whole cache gives: by the host's loop, by the
// device's, and in a batch.
func TestShortCache(t *testing.T) {
	m := loopModel(t)
	sampling := loopSampling["seeded"]
	requests := []llm.Request{
		{Prompt: []int32{5, 300}, Tokens: 7, IgnoreEOS: true, Sampling: sampling},
		{Prompt: []int32{12}, Tokens: 2, IgnoreEOS: true, Sampling: sampling},
	}
	for name, ahead := range map[string]int{"host": -1, "device": 3} {
		t.Run(name, func(t *testing.T) {
			whole, short := newLoopSession(t, m, shortCaches(0), 20, -1), newLoopSession(t, m, shortCaches(5), 20, ahead)
			if err := short.Prepare(t.Context(), 2, sampling); err != nil {
				t.Fatal(err)
			}
			for _, r := range requests {
				sameGeneration(t, whole, short, r)
			}
			if got := short.CompiledSteps(); got < 2 {
				t.Errorf("%d steps and loops of one token, want those over 5 and over 20 rows", got)
			}
		})
	}
	t.Run("batch", func(t *testing.T) {
		batch := newBatch(t, m, shortCaches(3), llm.BatchOptions{Sequences: 4, Context: batchContext, Ahead: 4})
		batchEqualsSingles(t, batch, m, shortCaches(0), batchRequests(sampling), 1)
	})
}
