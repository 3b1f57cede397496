package refmodel

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tgc/gguf"
	"tgc/internal/oracle"
)

// answers is the recorded run of a model.
type answers struct {
	PromptTokens []int `json:"prompt_tokens"`
	ProbeIDs     []int `json:"probe_ids"`
	Positions    []struct {
		Argmax int       `json:"argmax"`
		Margin float64   `json:"margin"`
		Second int       `json:"second"`
		Probe  []float64 `json:"probe"`
	} `json:"positions"`
	First  int `json:"logits_first_position"`
	Greedy struct {
		Tokens []int     `json:"tokens"`
		Margin []float64 `json:"margin"`
		Second []int     `json:"second"`
	} `json:"greedy"`
}

// gate is the largest normalised squared error of the logits of a run; a single
// row may have ten times as much.
const gate = 1e-9

// closeCall is the margin below which the second best token may win: the
// recorded run was made in float32.
const closeCall = 1e-3

// TestOracleModels runs every recorded model: all layer outputs and logits of
// the prompt, then 32 greedy steps. Short mode stops after a few positions.
func TestOracleModels(t *testing.T) {
	for _, path := range oracle.Files(t, "models", "*.json") {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".json"), func(t *testing.T) {
			t.Parallel()
			checkModel(t, strings.TrimSuffix(path, ".json"))
		})
	}
}

func checkModel(t *testing.T, base string) {
	var want answers
	text, err := os.ReadFile(base + ".json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	f := open(t, base+".gguf")
	m, err := Load(f)
	if err != nil {
		t.Fatal(err)
	}
	recorded := open(t, base+".logits.gguf")
	run := &comparison{t: t, recorded: recorded, sums: map[string]*errorSum{}}
	s := m.NewState(len(want.PromptTokens) + len(want.Greedy.Tokens))
	logits := checkPrompt(t, run, m, s, &want)
	if !testing.Short() {
		checkGreedy(t, run, m, s, &want, logits)
	}
	run.report()
}

// checkPrompt feeds the prompt and returns the last logits.
func checkPrompt(t *testing.T, run *comparison, m *Model, s *State, want *answers) []float64 {
	prompt := want.PromptTokens
	if testing.Short() {
		prompt = prompt[:min(4, len(prompt))]
	}
	var logits []float64
	for i, token := range prompt {
		s.Hook = func(name string, value []float64) { run.row(name, i, value) }
		logits = m.Step(s, token)
		p := want.Positions[i]
		for n, id := range want.ProbeIDs {
			run.add("probe", logits[id:id+1], p.Probe[n:n+1])
		}
		if i >= want.First {
			run.row("prompt_logits", i-want.First, logits)
		}
		if best := largest(logits, 1)[0]; best != p.Argmax && !(p.Margin < closeCall && best == p.Second) {
			t.Errorf("position %d: token %d is best, want %d (margin %g)", i, best, p.Argmax, p.Margin)
		}
	}
	return logits
}

// checkGreedy continues with the recorded tokens.
func checkGreedy(t *testing.T, run *comparison, m *Model, s *State, want *answers, logits []float64) {
	steps := recordedSteps(t, run.recorded)
	s.Hook = nil
	for i, token := range want.Greedy.Tokens {
		margin := want.Greedy.Margin[i]
		if best := largest(logits, 1)[0]; best != token && !(margin < closeCall && best == want.Greedy.Second[i]) {
			t.Errorf("step %d: token %d is best, want %d (margin %g)", i, best, token, margin)
		}
		logits = m.Step(s, token)
		if row := slices.Index(steps, i); row >= 0 {
			run.row("decode_logits", row, logits)
		}
	}
}

func recordedSteps(t *testing.T, f *gguf.File) []int {
	list, err := f.Uints("oracle.decode_logits_steps")
	if err != nil {
		t.Fatal(err)
	}
	steps := make([]int, len(list))
	for i, v := range list {
		steps[i] = int(v)
	}
	return steps
}

// comparison sums the errors of named values against recorded rows.
type comparison struct {
	t        *testing.T
	recorded *gguf.File
	sums     map[string]*errorSum
}

type errorSum struct {
	rows               int
	squared, reference float64
}

func (e *errorSum) nmse() float64 { return e.squared / e.reference }

// row compares a value with a row of a recorded tensor; values that were not
// recorded are ignored.
func (c *comparison) row(name string, i int, value []float64) {
	tensor, ok := c.recorded.Tensor(name)
	if !ok {
		return
	}
	all, err := Dequantise(c.recorded, tensor)
	if err != nil {
		c.t.Fatal(err)
	}
	want := make([]float64, len(value))
	for k := range want {
		want[k] = float64(all[i*len(value)+k])
	}
	one := errorSum{}
	one.add(value, want)
	if one.nmse() > 10*gate {
		c.t.Errorf("%s row %d: NMSE %.2g, want at most %.2g", name, i, one.nmse(), 10*gate)
	}
	c.add(name, value, want)
}

func (c *comparison) add(name string, value, want []float64) {
	if c.sums[name] == nil {
		c.sums[name] = &errorSum{}
	}
	c.sums[name].add(value, want)
}

func (e *errorSum) add(value, want []float64) {
	e.rows++
	for k, v := range value {
		e.squared += (v - want[k]) * (v - want[k])
		e.reference += want[k] * want[k]
	}
}

// report checks the sums and logs them in the order of their names.
func (c *comparison) report() {
	names := make([]string, 0, len(c.sums))
	for name := range c.sums {
		names = append(names, name)
	}
	slices.Sort(names)
	var line strings.Builder
	for _, name := range names {
		v := c.sums[name].nmse()
		fmt.Fprintf(&line, " %s %.1g (%d)", name, v, c.sums[name].rows)
		if v > gate || math.IsNaN(v) {
			c.t.Errorf("%s: NMSE %.2g, want at most %.2g", name, v, gate)
		}
	}
	c.t.Log(line.String())
}

func open(t *testing.T, path string) *gguf.File {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}
