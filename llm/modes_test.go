package llm_test

import (
	"flag"
	"math"
	"slices"
	"testing"

	"tgc/llm"
	"tgc/nn"
	"tgc/runtime"
	"tgc/runtime/interp"
)

// nativeError is what llama.cpp's own quantised kernels lose on a model.
type nativeError struct {
	Prompt float64 `json:"prompt_logits_nmse"`
	Decode float64 `json:"decode_logits_nmse"`
	Worst  float64 `json:"prompt_logits_nmse_worst_position"`
}

// Slack of single comparisons, which are samples: of the probes of all
// positions, and of the few full rows.
const (
	probeSlack = 1.25
	rowSlack   = 2
	meanRatio  = 0.9 // of the probes over the models; llama.cpp itself measures 0.85 over all
)

// modeLimits are what whole models of random weights lose in a mode: a mode that
// falls back to a coarser one passes llama.cpp's limit, but not its own.
var modeLimits = map[nn.Numeric]float64{nn.Int8: 0.1, nn.Int16: 1e-6, nn.Half: 3e-5}

// modeError is how far a run of a model in a fast mode is from the f32 oracle.
type modeError struct{ full, probes, worst nmse }

var allModels = flag.Bool("all-models", false, "try every oracle model in every numeric mode")

// modeModels are one of each kind: packed with offsets, with minima, with signs, with
// a table, with a bit apart, a mixture.
var modeModels = []string{
	"llama-ropefreqs-tied-q6_k", "llama-untied-q4_k_m", "qwen3-tied-q8_0", "llama-iq4_nl", "llama-wide-heads-q5_0", "olmoe-q4_k_m",
}

// Fast modes lose no more than llama.cpp's 8-bit kernels do: on every model, and
// in the mean over all of them.
func TestModesCPU(t *testing.T) {
	dev := openDevice(t, "cpu")
	models := oracleModels(t)
	for _, mode := range []nn.Numeric{nn.Int8, nn.Int16, nn.Half} {
		list := models
		switch {
		case *allModels:
		case mode == nn.Int8:
			list = presentModels(t, append(smallModels, modeModels...)...)
		default:
			list = presentModels(t, append(smallModels, modeModels[:2]...)...)
		}
		t.Run(mode.String(), func(t *testing.T) { checkMode(t, dev, mode, list) })
	}
}

// The same on a GPU, where there is one.
func TestModesCUDA(t *testing.T) {
	dev := openDevice(t, "cuda")
	for _, mode := range []nn.Numeric{nn.Int8, nn.Int16, nn.Half} {
		t.Run(mode.String(), func(t *testing.T) { checkMode(t, dev, mode, oracleModels(t)) })
	}
}

func checkMode(t *testing.T, dev runtime.Device, mode nn.Numeric, models []string) {
	sum, compared := 0., 0
	for _, name := range models {
		want := loadAnswers(t, name)
		native := 0.
		worst := 0.
		for _, e := range want.Native {
			native = max(native, e.Prompt, e.Decode)
			worst = max(worst, e.Worst)
		}
		e := runMode(t, dev, mode, name, want)
		if limit := modeLimits[mode]; !(e.probes.value() <= limit) {
			t.Errorf("%s: NMSE %.3g over probes, want at most %g of %s", name, e.probes.value(), limit, mode)
		}
		if len(want.Native) == 0 { // of the repository: llama.cpp has not run it
			t.Logf("%-32s full %.2e probes %.2e", name, e.full.value(), e.probes.value())
			continue
		}
		ratio := e.probes.value() / native
		sum, compared = sum+ratio, compared+1
		t.Logf("%-32s full %.2e probes %.2e of %.2e: %.2f", name, e.full.value(), e.probes.value(), native, ratio)
		if got := e.full.value(); !(got <= rowSlack*native) {
			t.Errorf("%s: NMSE %.3g over full rows, want at most %.3g", name, got, rowSlack*native)
		}
		if !(ratio <= probeSlack) {
			t.Errorf("%s: NMSE %.3g over probes, want at most %.3g", name, e.probes.value(), probeSlack*native)
		}
		if got := e.worst.value(); !(got <= probeSlack*worst) {
			t.Errorf("%s: NMSE %.3g at the worst position, want at most %.3g", name, got, probeSlack*worst)
		}
	}
	if compared == 0 {
		return
	}
	if mean := sum / float64(compared); !(mean <= meanRatio) {
		t.Errorf("mean of the errors in units of llama.cpp's: %.3f, want at most %g", mean, meanRatio)
	} else {
		t.Logf("mean of the errors in units of llama.cpp's: %.3f", mean)
	}
}

// In every mode the kernels of a GPU give the same numbers as PTX, run by the
// emulator, and as programs, run by the interpreter: correctness apart from
// rounding, for which the same activations round the same way.
func TestModesPTX(t *testing.T) {
	for _, mode := range []nn.Numeric{nn.Int8, nn.Int16, nn.Half} {
		models, count := presentModels(t, "small-llama-q4_k_m", modeModels[0]), 1
		switch {
		case *allModels:
			models, count = presentModels(t, append(smallModels, modeModels...)...), 2
		case mode == nn.Half: // nothing but conversions
			continue
		case mode == nn.Int8 && !testing.Short():
			models = presentModels(t, append(smallModels, modeModels[:2]...)...)
		}
		for _, name := range models {
			t.Run(mode.String()+" "+name, func(t *testing.T) {
				t.Parallel()
				want := loadAnswers(t, name)
				tokens := want.PromptTokens[:count]
				gpu := emulatedGPU(t)
				model := interp.New(interp.Options{Target: gpu.Target()})
				var all nmse
				got, ref := feedTokens(t, gpu, mode, name, want, tokens, 1), feedTokens(t, model, mode, name, want, tokens, 1)
				for i := range ref {
					for k := range ref[i] {
						all.point(float64(got[i][k]), float64(ref[i][k]))
					}
				}
				if v := all.value(); !(v <= 1e-8) {
					t.Errorf("NMSE %.3g between PTX and programs", v)
				}
				t.Logf("NMSE %.3g between PTX and programs", all.value())
			})
		}
	}
}

// runMode feeds the prompt and the oracle's greedy tokens, the latter one by
// one, and compares all logits that the oracle has.
func runMode(t *testing.T, dev runtime.Device, mode nn.Numeric, name string, want *answers) modeError {
	return errorOf(feedMode(t, dev, mode, name, want), want)
}

// errorOf compares the logits of the prompt and of the oracle's greedy tokens with the oracle's.
func errorOf(rows [][]float32, want *answers) modeError {
	var e modeError
	add := func(got, ref []float32) {
		var row nmse
		for i := range ref {
			row.point(float64(got[i]), float64(ref[i]))
		}
		e.full.err, e.full.ref = e.full.err+row.err, e.full.ref+row.ref
		if e.worst.ref == 0 || row.value() > e.worst.value() {
			e.worst = row
		}
	}
	for i, row := range want.prompt {
		add(rows[want.FirstPosition+i], row)
	}
	for step, row := range want.decode {
		add(rows[len(want.PromptTokens)+step], row)
	}
	for _, p := range want.Positions {
		for i, id := range want.ProbeIDs {
			e.probes.point(float64(rows[p.Pos][id]), p.Probe[i])
		}
	}
	return e
}

// feed returns a row of logits for each token of the prompt and each of the
// oracle's greedy ones.
func feedMode(t *testing.T, dev runtime.Device, mode nn.Numeric, name string, want *answers) [][]float32 {
	t.Helper()
	return feedTokens(t, dev, mode, name, want, append(slices.Clone(want.PromptTokens), want.Greedy.Tokens...), len(want.PromptTokens))
}

// feedTokens feeds so many tokens at once, then the others one by one.
func feedTokens(t *testing.T, dev runtime.Device, mode nn.Numeric, name string, want *answers, tokens []int32, together int) [][]float32 {
	t.Helper()
	rows := feedFile(t, dev, mode, modelPath(t, name), tokens, together)
	for i, row := range rows {
		if len(row) != want.Shape.Vocab {
			t.Fatalf("%s: row %d of %d logits, want %d", name, i, len(row), want.Shape.Vocab)
		}
	}
	return rows
}

// feedFile is feedTokens of a model's file.
func feedFile(t *testing.T, dev runtime.Device, mode nn.Numeric, file string, tokens []int32, together int) [][]float32 {
	t.Helper()
	model, err := llm.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	return feedModel(t, dev, mode, model, tokens, together)
}

// feedModel is feedTokens of a model.
func feedModel(t *testing.T, dev runtime.Device, mode nn.Numeric, model *llm.Model, tokens []int32, together int) [][]float32 {
	t.Helper()
	ctx := t.Context()
	session, err := llm.NewSession(ctx, model, dev, llm.SessionOptions{Context: len(tokens) + 1, All: true, Mode: mode})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	var rows [][]float32
	for at := 0; at < len(tokens); {
		n := 1
		if at < together {
			n = together - at
		}
		err := session.Feed(ctx, tokens[at:at+n], func(logits []float32) error {
			for width := model.Config.Vocabulary; len(logits) > 0; logits = logits[width:] {
				rows = append(rows, slices.Clone(logits[:width]))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		at += n
	}
	for i, row := range rows {
		if slices.ContainsFunc(row, func(v float32) bool { return math.IsNaN(float64(v)) }) {
			t.Fatalf("%s: NaN in row %d", model.File.Name(), i)
		}
	}
	return rows
}
