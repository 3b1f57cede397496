package llm_test

import (
	"testing"

	"tgc/llm"
)

// What was compiled ahead, several graphs at once, is what is compiled when it is
// needed; after it nothing is compiled.
func TestPrepare(t *testing.T) {
	dev, m := openDevice(t, "cpu"), tinyModel(t)
	for name, sampling := range loopSampling {
		for _, ahead := range []int{-1, 4} {
			r := llm.Request{Prompt: make([]int32, 9), Tokens: 6, IgnoreEOS: true, Sampling: sampling}
			plain, prepared := newLoopSession(t, m, dev, 40, ahead), newLoopSession(t, m, dev, 40, ahead)
			for range 2 { // the second has nothing to do
				if err := prepared.Prepare(t.Context(), len(r.Prompt), sampling); err != nil {
					t.Fatal(err)
				}
			}
			before := prepared.CompileTime()
			sameGeneration(t, plain, prepared, r)
			if got := prepared.CompileTime(); got != before || before <= 0 {
				t.Errorf("%s, %d ahead: compiling took %v when prepared, %v in the end", name, ahead, before, got)
			}
			parts := prepared.CompileParts()
			for _, part := range []string{"graph", "schedule", "lower", "load"} {
				if parts[part] <= 0 {
					t.Errorf("%s: no time was spent in %s: %v", name, part, parts)
				}
			}
		}
	}
}
