package llm_test

import (
	"errors"
	"testing"

	"tgc/engine"
	"tgc/llm"
	"tgc/runtime/cuda"
	"tgc/runtime/cuda/emulator"
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
			for _, part := range []string{"graph", "write-kernels", "choose-plans", "load"} {
				if parts[part] <= 0 {
					t.Errorf("%s: no time was spent in %s: %v", name, part, parts)
				}
			}
		}
	}
}

// A session whose steps another one has scheduled schedules none, and generates the same.
func TestSessionsOfKeptSchedules(t *testing.T) {
	for _, device := range []string{"cpu", "cuda:emu"} {
		m, dev, dir := tinyModel(t), openDevice(t, device), t.TempDir()
		plain := newLoopSession(t, m, dev, 16, -1)
		r := llm.Request{Prompt: []int32{5, 300, 7}, Tokens: 3, IgnoreEOS: true}
		for run := range 2 {
			kept := engine.OpenSchedules(dir)
			s, err := llm.NewSession(t.Context(), m, dev, llm.SessionOptions{Context: 16, Config: engine.Config{Schedules: kept}})
			if err != nil {
				t.Fatal(err)
			}
			plain.Reset()
			sameGeneration(t, plain, s, r)
			if scheduled := s.CompileParts()["write-kernels"] > 0; scheduled != (run == 0) {
				t.Errorf("%s, session %d: scheduled %t", device, run, scheduled)
			}
			s.Close()
			if err := kept.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// What is known when a session is made compiles while the weights are loaded: Prepare only
// loads it, and a generation is the same.
func TestPreparedWithWeights(t *testing.T) {
	for _, device := range []string{"interp", "cuda:emu"} {
		m, dev := tinyModel(t), openDevice(t, device)
		p := llm.Preparation{Prompt: 2, Sampling: loopSampling["greedy"]}
		s, err := llm.NewSession(t.Context(), m, dev, llm.SessionOptions{Context: 16, Prepare: &p})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		before := s.CompileParts()["write-kernels"]
		if before <= 0 || s.LoadTime() <= 0 {
			t.Errorf("%s: %v writing kernels and %v loading, want more than 0", device, before, s.LoadTime())
		}
		if err := s.Prepare(t.Context(), p.Prompt, p.Sampling); err != nil {
			t.Fatal(err)
		}
		if got := s.CompileParts()["write-kernels"]; got != before {
			t.Errorf("%s: Prepare writes kernels again: %v after %v", device, got, before)
		}
		sameGeneration(t, newLoopSession(t, m, openDevice(t, "cpu"), 16, -1), s, llm.Request{Prompt: []int32{5, 300}, Tokens: 2, IgnoreEOS: true, Sampling: p.Sampling})
	}
}

// A model that does not fit the device is refused while its steps compile.
func TestPreparedWithoutRoom(t *testing.T) {
	dev, _ := emulated(t, emulator.Options{MemoryBytes: 3 << 20}, false)
	_, err := llm.NewSession(t.Context(), tinyModel(t), dev, llm.SessionOptions{Context: 16, Prepare: &llm.Preparation{Prompt: 2}})
	if !errors.Is(err, cuda.ErrOutOfMemory) {
		t.Errorf("%v, want %v", err, cuda.ErrOutOfMemory)
	}
}
