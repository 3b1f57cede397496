package oracle_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"tgc/gguf"
	"tgc/internal/refmodel"
	"tgc/ir"
	"tgc/llm/synth"
)

var (
	record = flag.Bool("record", false, "write the answers of the repository again")
	larger = flag.String("larger", "../../../shared/oracle", "the larger set, of which blocks and operator vectors are a part")
)

// models are the recorded models: one of each architecture, with different types.
var models = []struct{ name, shape string }{
	{"small-llama-q4_k_m", "llama:d=256,layers=2,heads=4,kv=2,head=16,ff=256,vocab=272,ctx=1024,quant=q4_k_m"},
	{"small-qwen2-q5_0", "qwen2:d=64,layers=2,heads=4,kv=2,ff=160,vocab=300,ctx=1024,quant=q5_0,pure=1,tied=0"},
	{"small-qwen3-q8_0", "qwen3:d=64,layers=2,heads=4,kv=2,head=24,ff=160,vocab=288,ctx=1024,quant=q8_0"},
	{"small-olmoe-q4_0", "olmoe:d=64,layers=2,heads=4,ff=32,vocab=276,ctx=1024,quant=q4_0,pure=1,experts=6,used=2,tied=0"},
	{"small-gpt2-f16", "gpt2:d=48,layers=2,heads=3,ff=192,vocab=270,ctx=64,quant=f16"},
}

const (
	promptTokens = 20
	greedySteps  = 16
	leastMargin  = 0.02 // of a chosen token, or expert, over the next best
)

// position is what a model's answers say of one position of the prompt.
type position struct {
	Pos    int       `json:"pos"`
	Argmax int       `json:"argmax"`
	Second int       `json:"second"`
	Margin float64   `json:"margin"`
	Probe  []float64 `json:"probe"`
}

// answers are written as NAME.json, in the form of the larger set.
type answers struct {
	Model        string         `json:"model"`
	Shape        map[string]int `json:"shape"`
	Made         string         `json:"made"`
	Reference    string         `json:"reference"`
	PromptTokens []int          `json:"prompt_tokens"`
	ProbeIDs     []int          `json:"probe_ids"`
	LogitsFile   string         `json:"logits_file"`
	First        int            `json:"logits_first_position"`
	Positions    []position     `json:"positions"`
	Greedy       struct {
		Tokens []int     `json:"tokens"`
		Second []int     `json:"second"`
		Margin []float64 `json:"margin"`
	} `json:"greedy"`
}

// TestRecordModels writes the models and what refmodel makes of them. Seeds are
// tried until no choice is close, so that a float32 run cannot choose otherwise.
func TestRecordModels(t *testing.T) {
	if !*record {
		t.Skip("-record writes the answers again")
	}
	for _, m := range models {
		for seed := uint64(1); !recordModel(t, m.name, m.shape, seed); seed++ {
			t.Logf("%s: a choice is close with seed %d", m.name, seed)
		}
	}
}

// recordModel returns false, and leaves a model that is not to be used, if a choice
// is close.
func recordModel(t *testing.T, name, description string, seed uint64) bool {
	t.Helper()
	dir := filepath.Join("testdata", "models")
	shape, err := synth.Lookup(description)
	check(t, err)
	check(t, synth.Write(t.Context(), shape, filepath.Join(dir, name+".gguf"), seed, nil))
	f, err := gguf.Open(filepath.Join(dir, name+".gguf"))
	check(t, err)
	defer f.Close()
	model, err := refmodel.Load(f)
	check(t, err)
	a := &answers{
		Model: name + ".gguf", Shape: map[string]int{"vocab": shape.Vocabulary}, LogitsFile: name + ".logits.gguf",
		Made:      fmt.Sprintf("tgc synth %s --seed %d", description, seed),
		Reference: "internal/refmodel: float64, one token at a time",
	}
	close := false
	state := model.NewState(promptTokens + greedySteps)
	state.Hook = func(name string, value []float64) {
		if n := shape.ExpertsUsed; n > 0 && len(name) > 14 && name[:14] == "ffn_moe_logits" {
			ranked := slices.Sorted(slices.Values(value))
			close = close || ranked[len(ranked)-n]-ranked[len(ranked)-n-1] < leastMargin
		}
	}
	for i := range 8 {
		a.ProbeIDs = append(a.ProbeIDs, (i*41+7)%shape.Vocabulary)
	}
	var prompt, decoded []float64
	var logits []float64
	for i := range promptTokens {
		a.PromptTokens = append(a.PromptTokens, (i*i*31+i*17+5)%shape.Vocabulary)
		logits = model.Step(state, a.PromptTokens[i])
		prompt = append(prompt, logits...)
		best, second := bestTwo(logits)
		p := position{Pos: i, Argmax: best, Second: second, Margin: logits[best] - logits[second]}
		for _, id := range a.ProbeIDs {
			p.Probe = append(p.Probe, logits[id])
		}
		close = close || p.Margin < leastMargin
		a.Positions = append(a.Positions, p)
	}
	for range greedySteps {
		best, second := bestTwo(logits)
		margin := logits[best] - logits[second]
		close = close || margin < leastMargin
		a.Greedy.Tokens, a.Greedy.Second = append(a.Greedy.Tokens, best), append(a.Greedy.Second, second)
		a.Greedy.Margin = append(a.Greedy.Margin, margin)
		logits = model.Step(state, best)
		decoded = append(decoded, logits...)
	}
	if close {
		return false
	}
	text, err := json.MarshalIndent(a, "", " ")
	check(t, err)
	check(t, os.WriteFile(filepath.Join(dir, name+".json"), append(text, '\n'), 0o644))
	w := gguf.NewWriter()
	var steps []uint32
	for i := range greedySteps {
		steps = append(steps, uint32(i))
	}
	w.Put("oracle.decode_logits_steps", steps)
	addFloats(w, "prompt_logits", prompt, shape.Vocabulary)
	addFloats(w, "decode_logits", decoded, shape.Vocabulary)
	check(t, w.WriteFile(t.Context(), filepath.Join(dir, a.LogitsFile), nil))
	return true
}

func addFloats(w *gguf.Writer, name string, values []float64, columns int) {
	w.Add(name, gguf.F32, []int{columns, len(values) / columns}, gguf.FromBytes([]byte(ir.EncodeTable(ir.F32, values))))
}

func bestTwo(row []float64) (best, second int) {
	best, second = -1, -1
	for i, v := range row {
		switch {
		case best < 0 || v > row[best]:
			best, second = i, best
		case second < 0 || v > row[second]:
			second = i
		}
	}
	return best, second
}

// TestRecordBlocks takes the first 256 columns of every recorded tensor of the
// larger set: every row was made in another way.
func TestRecordBlocks(t *testing.T) {
	if !*record {
		t.Skip("-record writes the answers again")
	}
	const columns = 256
	files, err := filepath.Glob(filepath.Join(*larger, "quant", "*.gguf"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no blocks in %s (%v)", *larger, err)
	}
	for _, path := range files {
		f, err := gguf.Open(path)
		check(t, err)
		w := gguf.NewWriter()
		name, err := f.String("oracle.type")
		check(t, err)
		w.Put("oracle.type", name)
		for _, tensor := range []string{"x", "ref"} {
			x, _ := f.Tensor(tensor)
			whole, err := x.Type.RowBytes(x.RowLength())
			check(t, err)
			part, err := x.Type.RowBytes(columns)
			check(t, err)
			var data []byte
			for row := range slices.Chunk(x.Data(), whole) {
				data = append(data, row[:part]...)
			}
			w.Add(tensor, x.Type, []int{columns, x.Rows()}, gguf.FromBytes(data))
		}
		check(t, w.WriteFile(t.Context(), filepath.Join("testdata", "quant", filepath.Base(path)), nil))
		check(t, f.Close())
	}
}

// TestRecordOps takes the programs of the larger set and, of every operator there,
// the smallest cases.
func TestRecordOps(t *testing.T) {
	if !*record {
		t.Skip("-record writes the answers again")
	}
	const perOperator = 2
	files, err := filepath.Glob(filepath.Join(*larger, "ops", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no vectors in %s (%v)", *larger, err)
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		check(t, err)
		var file map[string]json.RawMessage
		check(t, json.Unmarshal(text, &file))
		var cases []json.RawMessage
		check(t, json.Unmarshal(file["cases"], &cases))
		ops, size := make([]string, len(cases)), make(map[string][]int)
		for i, c := range cases {
			var head struct{ Op string }
			check(t, json.Unmarshal(c, &head))
			ops[i] = head.Op
			size[head.Op] = append(size[head.Op], len(c))
		}
		var out bytes.Buffer
		w := bufio.NewWriter(&out)
		fmt.Fprintf(w, "{\"format\":1,\"group\":%s,\"cases\":[", file["group"])
		taken := make(map[string]int)
		separator := "\n"
		for i, c := range cases {
			slices.Sort(size[ops[i]])
			if limit := size[ops[i]][min(perOperator, len(size[ops[i]]))-1]; ops[i] != "program" && (len(c) > limit || taken[ops[i]] == perOperator) {
				continue
			}
			taken[ops[i]]++
			fmt.Fprintf(w, "%s%s", separator, c)
			separator = ",\n"
		}
		fmt.Fprint(w, "\n]}\n")
		check(t, w.Flush())
		check(t, os.WriteFile(filepath.Join("testdata", "ops", filepath.Base(path)), out.Bytes(), 0o644))
	}
}

// TestSize bounds the answers that every clone of the repository carries.
func TestSize(t *testing.T) {
	total := int64(0)
	check(t, filepath.WalkDir("testdata", func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		total += info.Size()
		return err
	}))
	if total > 2<<20 {
		t.Errorf("testdata holds %d bytes, want at most 2 MiB", total)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
