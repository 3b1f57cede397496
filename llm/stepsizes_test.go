package llm

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"tgc/target"
)

// sizesOf are the steps that n tokens of one sequence are fed in.
func sizesOf(t *target.Tuning, n int) (list []int) {
	s := stepSizes{sizes: t.StepSizes, edge: t.StepEdge, sequences: 1}
	for ; n > 0; n -= s.first(n) {
		list = append(list, s.first(n))
	}
	return list
}

func TestStepSizes(t *testing.T) {
	sm90, err := target.ForGPU(90, false)
	if err != nil {
		t.Fatal(err)
	}
	cpu, gpu := target.ForCPU("haswell", nil, 1).Tuning, sm90.Tuning
	for _, c := range []struct {
		n        int
		cpu, gpu []int
	}{
		{1, []int{1}, []int{1}},
		{2, []int{8}, []int{8}},
		{9, []int{8, 1}, []int{16}},
		{16, []int{8, 8}, []int{16}},
		{33, []int{32, 1}, []int{64}},
		{34, []int{32, 8}, []int{64}},
		{50, []int{64}, []int{64}},
		{70, []int{64, 8}, []int{64, 8}},
		{90, []int{64, 32}, []int{128}},
		{128, []int{128}, []int{128}},
		{129, []int{128, 1}, []int{128, 1}},
		{300, []int{128, 128, 64}, []int{256, 64}},
		{700, []int{128, 128, 128, 128, 128, 64}, []int{512, 128, 64}},
	} {
		if got := sizesOf(&cpu, c.n); !slices.Equal(got, c.cpu) {
			t.Errorf("CPU, %d tokens: steps %v, want %v", c.n, got, c.cpu)
		}
		if got := sizesOf(&gpu, c.n); !slices.Equal(got, c.gpu) {
			t.Errorf("GPU, %d tokens: steps %v, want %v", c.n, got, c.gpu)
		}
	}
}

// TestStepSizesHold checks that steps hold all tokens, that padding is what the last one has, and that one
// padded step would take no less time.
func TestStepSizesHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := stepSizes{sizes: []int{512, 256, 128, 64, 32, 16, 8, 1}, edge: rapid.IntRange(0, 300).Draw(t, "edge"), sequences: rapid.IntRange(1, 9).Draw(t, "sequences")}
		n := rapid.IntRange(1, 1500).Draw(t, "tokens")
		cost, left := 0, n
		for left > 0 {
			c := s.first(left)
			if left < c && c > paddedChunk {
				t.Fatalf("%d tokens left: a step of %d", left, c)
			}
			cost += s.step(c)
			left -= c
		}
		if i := slices.IndexFunc(s.sizes, func(c int) bool { return c < n }) - 1; n <= paddedChunk && i >= 0 && cost > s.step(s.sizes[i]) {
			t.Fatalf("%d tokens take %d, one step %d", n, cost, s.step(s.sizes[i]))
		}
	})
}
