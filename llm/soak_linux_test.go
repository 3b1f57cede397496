package llm_test

import (
	"os"
	"runtime"
	"testing"

	"tgc/llm"
	"tgc/llm/synth"
)

// Five thousand decoded tokens leave nothing behind: goroutines, files, threads, memory.
// The context is shorter, so that the session begins anew some times.
func TestFiveThousandTokens(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	shape, err := synth.Lookup("llama:d=64,layers=2,heads=4,ff=96,vocab=512,quant=q8_0")
	if err != nil {
		t.Fatal(err)
	}
	file, err := synth.Memory(t.Context(), shape, 1)
	if err != nil {
		t.Fatal(err)
	}
	m, err := llm.NewModel(file)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	s, err := llm.NewSession(t.Context(), m, openDevice(t, "cpu"), llm.SessionOptions{Context: 512})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var before footprint
	for round := range 10 {
		s.Reset()
		r := llm.Request{Prompt: []int32{1, 2, 3}, Tokens: 500, IgnoreEOS: true, Sampling: llm.Sampling{Temperature: 1, TopP: 0.9, Seed: uint32(round)}}
		got, err := s.Generate(t.Context(), r)
		if err != nil || len(got.Tokens) != 500 {
			t.Fatalf("round %d: %v", round, err)
		}
		if round == 1 {
			before = footprintNow(t)
		}
	}
	after := footprintNow(t)
	if after.goroutines > before.goroutines || after.files > before.files || after.threads > before.threads+2 || after.heap > before.heap+1<<19 {
		t.Errorf("after 5,000 tokens %+v, after 1,000 %+v", after, before)
	}
}

// footprint is what a process holds.
type footprint struct {
	goroutines, files, threads int
	heap                       uint64 // bytes, without garbage
}

func footprintNow(t *testing.T) footprint {
	t.Helper()
	count := func(dir string) int {
		list, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	runtime.GC()
	runtime.GC() // what finalizers held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return footprint{runtime.NumGoroutine(), count("/proc/self/fd"), count("/proc/self/task"), m.HeapAlloc}
}
