package llm_test

import (
	"context"
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
	_ "tgc/internal/rarecollection"
	"tgc/llm"
	"tgc/runtime"
	"tgc/runtime/devices"
)

// answers is what the test reads of an oracle model's NAME.json and
// NAME.logits.gguf.
type answers struct {
	Model         string
	PromptTokens  []int32 `json:"prompt_tokens"`
	ProbeIDs      []int   `json:"probe_ids"`
	Shape         struct{ Vocab int }
	FirstPosition int    `json:"logits_first_position"`
	LogitsFile    string `json:"logits_file"`
	Positions     []struct {
		Pos, Argmax, Second int
		Margin              float64
		Probe               []float64
	}
	Greedy struct {
		Tokens, Second []int32
		Margin         []float64
	}
	Native map[string]nativeError `json:"llama_cpp_native_error"`
	prompt [][]float32            // full rows from FirstPosition
	decode map[int][]float32
}

const maxNMSE = 1e-9 // exact mode on a CPU

// limits of exact mode: the NMSE, and the margin below which the reference's own
// argmax may flip.
type limits struct{ nmse, margin float64 }

var (
	cpuLimits = limits{maxNMSE, 1e-3}
	gpuLimits = limits{1e-8, 1e-2}
)

// All oracle models give the oracle's logits and greedy tokens on the CPU,
// whole and split at two places.
func TestOracleModelsCPU(t *testing.T) {
	dev := openDevice(t, "cpu")
	for _, name := range oracleModels(t) {
		t.Run(name, func(t *testing.T) {
			want := loadAnswers(t, name)
			checkModel(t, dev, name, want, cpuLimits, 0, 1, len(want.PromptTokens)/2)
		})
	}
}

// All oracle models on a CPU with tile instructions, emulated: prompts, whole and in two parts.
func TestOracleModelsTiles(t *testing.T) {
	dev := openDevice(t, "cpu:emu")
	if !dev.Target().HasTiles() {
		t.Skip("vectors of less than 64 bytes")
	}
	for _, name := range oracleModels(t) {
		t.Run(name, func(t *testing.T) {
			want := loadAnswers(t, name)
			checkModel(t, dev, name, want, cpuLimits, 0, len(want.PromptTokens)/2)
		})
	}
}

// All oracle models on a GPU, where there is one.
func TestOracleModelsCUDA(t *testing.T) {
	dev := openDevice(t, "cuda")
	for _, name := range oracleModels(t) {
		t.Run(name, func(t *testing.T) {
			want := loadAnswers(t, name)
			checkModel(t, dev, name, want, gpuLimits, 0, len(want.PromptTokens)/2)
		})
	}
}

// The models of the repository and three larger ones, one an expert mixture, on the
// interpreter.
func TestOracleModelsInterpreter(t *testing.T) {
	if testing.Short() {
		t.Skip("the interpreter takes a minute; run without -short")
	}
	dev := openDevice(t, "interp")
	for _, name := range presentModels(t, append(smallModels, "llama-bf16", "olmoe-q8_0", "llama-ropefreqs-tied-q6_k")...) {
		t.Run(name, func(t *testing.T) { checkModel(t, dev, name, loadAnswers(t, name), cpuLimits, 0) })
	}
}

func openDevice(t *testing.T, name string) runtime.Device {
	t.Helper()
	dev, _, err := devices.Open(context.Background(), name, devices.Options{})
	if err != nil {
		t.Skipf("device %s: %v", name, err)
	}
	t.Cleanup(func() { dev.Close() })
	return dev
}

// oracleModels are all models with recorded answers.
func oracleModels(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, f := range oracle.Files(t, "models", "*.logits.gguf") {
		names = append(names, strings.TrimSuffix(filepath.Base(f), ".logits.gguf"))
	}
	return names
}

// smallModels are the models of the repository, one of each architecture.
var smallModels = []string{"small-gpt2-f16", "small-llama-q4_k_m", "small-olmoe-q4_0", "small-qwen2-q5_0", "small-qwen3-q8_0"}

// presentModels are those of the named models that are present: the larger set may
// be absent.
func presentModels(t *testing.T, names ...string) []string {
	t.Helper()
	list := slices.DeleteFunc(oracleModels(t), func(name string) bool { return !slices.Contains(names, name) })
	if len(list) == 0 {
		t.Fatalf("none of %v is present", names)
	}
	return list
}

func modelPath(t *testing.T, name string) string {
	t.Helper()
	return oracle.Path(t, "models", name+".gguf")
}

func loadAnswers(t *testing.T, name string) *answers {
	t.Helper()
	path := oracle.Path(t, "models", name+".json")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	a := &answers{decode: make(map[int][]float32)}
	if err := json.Unmarshal(raw, a); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(filepath.Join(filepath.Dir(path), a.LogitsFile))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	a.prompt = rowsOf(t, f, "prompt_logits", a.Shape.Vocab)
	steps, err := f.Ints("oracle.decode_logits_steps")
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range rowsOf(t, f, "decode_logits", a.Shape.Vocab) {
		a.decode[int(steps[i])] = row
	}
	return a
}

func rowsOf(t *testing.T, f *gguf.File, tensor string, width int) [][]float32 {
	t.Helper()
	info, ok := f.Tensor(tensor)
	if !ok {
		t.Fatalf("%s has no tensor %s", f.Name(), tensor)
	}
	var rows [][]float32
	for raw := info.Data(); len(raw) > 0; raw = raw[4*width:] {
		row := make([]float32, width)
		for i := range row {
			row[i] = math.Float32frombits(uint32(raw[4*i]) | uint32(raw[4*i+1])<<8 | uint32(raw[4*i+2])<<16 | uint32(raw[4*i+3])<<24)
		}
		rows = append(rows, row)
	}
	return rows
}

// checkModel generates 33 greedy tokens after the prompt, fed whole (split at 0) or in two
// parts, and compares logits and tokens.
func checkModel(t *testing.T, dev runtime.Device, name string, want *answers, limit limits, splits ...int) {
	t.Helper()
	checkModelSteps(t, dev, name, want, limit, len(want.Greedy.Tokens), splits...)
}

// checkModelSteps stops after feeding a number of greedy tokens. One session feeds all
// splits, so that the steps that they share are compiled once.
func checkModelSteps(t *testing.T, dev runtime.Device, name string, want *answers, limit limits, steps int, splits ...int) {
	t.Helper()
	ctx := context.Background()
	model, err := llm.Open(modelPath(t, name))
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	n := steps + 1
	session, err := llm.NewSession(ctx, model, dev, llm.SessionOptions{Context: len(want.PromptTokens) + n, All: true})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	for i, split := range splits {
		if i > 0 {
			spoil(t, session, len(want.PromptTokens)+n)
		}
		var rows [][]float32
		result, err := session.Generate(ctx, llm.Request{
			Prompt: want.PromptTokens, Tokens: n, IgnoreEOS: true, SplitAt: split,
			Sampling: llm.Sampling{TopP: 1},
			Logits: func(logits []float32) error {
				for ; len(logits) > 0; logits = logits[want.Shape.Vocab:] {
					rows = append(rows, logits[:want.Shape.Vocab])
				}
				return nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		compareRows(t, fmt.Sprintf("%s split at %d", name, split), want, rows, result.Tokens, limit, steps)
	}
}

// spoil fills a cache with rows of another text and forgets them, so that what the next one
// fails to write is not found there.
func spoil(t *testing.T, session *llm.Session, rows int) {
	t.Helper()
	session.Reset()
	for range rows {
		if err := session.Feed(t.Context(), []int32{1}, nil); err != nil {
			t.Fatal(err)
		}
	}
	session.Reset()
}

func compareRows(t *testing.T, what string, want *answers, rows [][]float32, tokens []int32, limit limits, steps int) {
	t.Helper()
	prompt := len(want.PromptTokens)
	if len(rows) != prompt+steps {
		t.Fatalf("%s: %d rows of logits, want %d", what, len(rows), prompt+steps)
	}
	same := 0
	for same < steps && tokens[same] == want.Greedy.Tokens[same] {
		same++
	}
	if same < steps && (want.Greedy.Margin[same] >= limit.margin || tokens[same] != want.Greedy.Second[same]) {
		t.Errorf("%s: greedy token %d is %d, want %d (margin %g)", what, same, tokens[same], want.Greedy.Tokens[same], want.Greedy.Margin[same])
	}
	var full, probes nmse
	for i, row := range want.prompt {
		full.add(t, what, want.FirstPosition+i, rows[want.FirstPosition+i], row, limit)
	}
	for step, row := range want.decode {
		if step < same {
			full.add(t, what, prompt+step, rows[prompt+step], row, limit)
		}
	}
	for _, p := range want.Positions {
		for i, id := range want.ProbeIDs {
			probes.point(float64(rows[p.Pos][id]), p.Probe[i])
		}
		best := 0
		for id, v := range rows[p.Pos] {
			if v > rows[p.Pos][best] {
				best = id
			}
		}
		if best != p.Argmax && (p.Margin >= limit.margin || best != p.Second) {
			t.Errorf("%s: argmax at position %d is %d, want %d", what, p.Pos, best, p.Argmax)
		}
	}
	if got := full.value(); !(got <= limit.nmse) {
		t.Errorf("%s: NMSE %.3g over full rows, want at most %g", what, got, limit.nmse)
	}
	if got := probes.value(); !(got <= limit.nmse) {
		t.Errorf("%s: NMSE %.3g over probes, want at most %g", what, got, limit.nmse)
	}
	t.Logf("%s: NMSE %.2g, probes %.2g, greedy %d of %d", what, full.value(), probes.value(), same, steps)
}

// nmse is sum((x-ref)^2) / sum(ref^2).
type nmse struct{ err, ref float64 }

func (n *nmse) point(got, want float64) {
	n.err += (got - want) * (got - want)
	n.ref += want * want
}

func (n *nmse) value() float64 { return n.err / n.ref }

// add adds a row and checks it alone against ten times the limit.
func (n *nmse) add(t *testing.T, what string, position int, got, want []float32, limit limits) {
	t.Helper()
	var row nmse
	for i := range want {
		row.point(float64(got[i]), float64(want[i]))
	}
	if v := row.value(); !(v <= 10*limit.nmse) {
		t.Errorf("%s: NMSE %.3g at position %d, want at most %g", what, v, position, 10*limit.nmse)
	}
	n.err += row.err
	n.ref += row.ref
}
