package llm

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"tgc/internal/lists"
	"tgc/target"
)

// sizesOf are the steps that n tokens of one sequence are fed in.
func sizesOf(t *target.Tuning, n int) (list []int) {
	s := stepSizes{steps: t.Steps, most: t.Steps[0].Rows, sequences: 1}
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
		{65, []int{64, 1}, []int{64, 1}},
		{70, []int{64, 8}, []int{128}},
		{90, []int{64, 32}, []int{128}},
		{128, []int{128}, []int{128}},
		{129, []int{128, 1}, []int{128, 1}},
		{200, []int{128, 64, 8}, []int{256}},
		{300, []int{128, 128, 64}, []int{256, 64}},
		{400, []int{128, 128, 128, 8, 8}, []int{512}},
		{700, []int{128, 128, 128, 128, 128, 64}, []int{512, 256}},
		{2000, slices.Concat(slices.Repeat([]int{128}, 15), []int{64, 8, 8}), []int{1024, 1024}},
	} {
		if got := sizesOf(&cpu, c.n); !slices.Equal(got, c.cpu) {
			t.Errorf("CPU, %d tokens: steps %v, want %v", c.n, got, c.cpu)
		}
		if got := sizesOf(&gpu, c.n); !slices.Equal(got, c.gpu) {
			t.Errorf("GPU, %d tokens: steps %v, want %v", c.n, got, c.gpu)
		}
	}
}

// TestStepTimes checks times between steps of the table, past its largest, and of rows of several sequences.
func TestStepTimes(t *testing.T) {
	steps := []target.Step{{Rows: 64, Time: 60}, {Rows: 16, Time: 20}, {Rows: 4, Time: 14}, {Rows: 1, Time: 11}}
	for _, c := range []struct {
		size, sequences int
		want            float64
	}{
		{1, 1, 11}, {2, 1, 12}, {4, 1, 14}, {1, 10, 17}, {16, 1, 20}, {16, 2, 20 + 40./3}, {64, 1, 60}, {64, 2, 60 + 64*40./48},
	} {
		if got := (stepSizes{steps: steps, most: 64, sequences: c.sequences}).step(c.size); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("a step of %d tokens of %d sequences takes %g, want %g", c.size, c.sequences, got, c.want)
		}
	}
}

// TestStepSizesHold checks that steps hold all tokens, none longer than allowed, and that one padded step would take no less time.
func TestStepSizesHold(t *testing.T) {
	sizes := []int{512, 256, 128, 64, 32, 16, 8, 1}
	rapid.Check(t, func(t *rapid.T) {
		edge := rapid.IntRange(0, 300).Draw(t, "edge")
		s := stepSizes{steps: lists.Map(sizes, func(n int) target.Step { return target.Step{Rows: n, Time: float64(edge + n)} }), most: rapid.SampledFrom(sizes).Draw(t, "most"), sequences: rapid.IntRange(1, 9).Draw(t, "sequences")}
		n := rapid.IntRange(1, 1500).Draw(t, "tokens")
		time, left := 0., n
		for left > 0 {
			c := s.first(left)
			if c > s.most {
				t.Fatalf("%d tokens left: a step of %d, at most %d are allowed", left, c, s.most)
			}
			time += s.step(c)
			left -= c
		}
		if i := slices.IndexFunc(sizes, func(c int) bool { return c < n }) - 1; i >= 0 && sizes[i] <= s.most && time > s.step(sizes[i]) {
			t.Fatalf("%d tokens take %g, one step %g", n, time, s.step(sizes[i]))
		}
	})
}
