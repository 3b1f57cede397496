package llm_test

import (
	"testing"

	"tgc/engine"
	"tgc/ir/program"
	"tgc/llm"
	"tgc/llm/synth"
	"tgc/nn"
	"tgc/runtime/interp"
)

// Every kernel of every model lowers for a GPU, decoding and reading a prompt,
// with the plan that a heuristic chose.
func TestStepsLowerForGPU(t *testing.T) {
	for _, shape := range synth.Shapes() {
		t.Run(shape.Name, func(t *testing.T) {
			t.Parallel()
			m := openOutline(t, shape.Name)
			for _, tokens := range []int{1, 16, 512} {
				v := llm.Variant{Batch: 1, Tokens: tokens, Context: min(tokens+128, m.Config.Context)}
				step, err := llm.CompileStep(t.Context(), m, v, 64, mustTarget(t, "ptx:sm_90"), engine.Config{Verify: true})
				if err != nil {
					t.Fatal(err)
				}
				for _, k := range step.Compiled.Kernels {
					if err := program.VerifyGPU(k.Program); err != nil {
						t.Error(err)
					}
					t.Logf("%d tokens: %s: grid %v block %v: %s | %s", tokens, k.Name, k.Program.Grid, k.Program.Block, k.Plan, k.Why)
					for _, r := range k.Records {
						if r.Reason == "illegal" || r.Reason == "refused" {
							t.Errorf("kernel %s: %s", k.Name, r)
						}
					}
				}
			}
		})
	}
}

// Oracle models as a GPU's programs: blocks of threads
// on the interpreter, with races on shared memory checked.
func TestOracleModelsGPUPrograms(t *testing.T) {
	models := []string{"small-llama-q4_k_m", "small-qwen2-q5_0", "small-qwen3-q8_0", "llama-bf16"}
	if !testing.Short() {
		models = append(models, "small-gpt2-f16", "qwen3-tied-q8_0", "llama-iq4_nl")
	}
	for _, name := range presentModels(t, models...) {
		dev := interp.New(interp.Options{Debug: true, Target: mustTarget(t, "ptx:sm_90")})
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkModel(t, dev, name, loadAnswers(t, name), 0, gpuLimits)
		})
	}
}

// A step of 128 tokens, whose matrix products share decoded weights and activations
// in shared memory, gives what a CPU gives. With activations rounded to halves both are
// as far from exact mode: a sum that differs in its last bit may round to another half.
func TestLongPromptGPUPrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute; run without -short")
	}
	for _, name := range presentModels(t, "small-llama-q4_k_m", "llama-ropefreqs-tied-q6_k") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			longPromptGPUPrograms(t, name)
		})
	}
}

func longPromptGPUPrograms(t *testing.T, name string) {
	t.Helper()
	const count = 128
	want := loadAnswers(t, name)
	var tokens []int32
	for len(tokens) < count {
		tokens = append(tokens, want.PromptTokens...)
	}
	tokens = tokens[:count]
	gpu, cpu := interp.New(interp.Options{Target: mustTarget(t, "ptx:sm_90")}), openDevice(t, "cpu")
	exact := feedTokens(t, cpu, nn.Exact, name, want, tokens, count)
	if v := difference(feedTokens(t, gpu, nn.Exact, name, want, tokens, count), exact); !(v <= gpuLimits.nmse) {
		t.Errorf("NMSE %.3g of %d rows, want at most %g", v, len(exact), gpuLimits.nmse)
	}
	half := difference(feedTokens(t, cpu, nn.Half, name, want, tokens, count), exact)
	if v := difference(feedTokens(t, gpu, nn.Half, name, want, tokens, count), exact); !(v <= 1.25*half+gpuLimits.nmse) {
		t.Errorf("halves: NMSE %.3g against exact mode, %.3g on a CPU", v, half)
	} else {
		t.Logf("halves: NMSE %.3g against exact mode, %.3g on a CPU", v, half)
	}
}
