package llm_test

import (
	"testing"

	"tgc/llm"
	"tgc/nn"
	"tgc/runtime/interp"
)

// Oracle models as a GPU's programs: blocks of threads
// on the interpreter, with races on shared memory checked. All tokens of a model whose step is
// short; of the others the prompt and a few, each by the same step.
func TestOracleModelsGPUPrograms(t *testing.T) {
	models := []string{"small-llama-q4_k_m", "small-qwen2-q5_0", "small-qwen3-q8_0", "llama-bf16"}
	if !testing.Short() {
		models = append(models, "small-gpt2-f16")
	}
	if *allModels {
		models = append(models, "qwen3-tied-q8_0", "llama-iq4_nl")
	}
	for _, name := range presentModels(t, models...) {
		dev := interp.New(interp.Options{Debug: true, Target: mustTarget(t, "ptx:sm_90")})
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, steps := loadAnswers(t, name), 3
			if name == "small-qwen3-q8_0" {
				steps = len(want.Greedy.Tokens)
			}
			checkModelSteps(t, dev, name, want, gpuLimits, steps, 0)
		})
	}
}

// A step of 128 tokens, whose matrix products share decoded weights and activations
// in shared memory, gives what a CPU gives. With activations rounded to halves both are
// as far from exact mode: a sum that differs in its last bit may round to another half.
func TestLongPromptGPUPrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("takes ten seconds; run without -short")
	}
	for _, shape := range []string{
		"llama:d=256,layers=1,heads=4,kv=2,head=64,ff=768,vocab=272,quant=q4_k_m", // Q4_K and Q6_K
		"llama:d=96,layers=2,heads=3,kv=1,head=32,ff=160,vocab=266,quant=q5_0",
	} {
		t.Run(shape, func(t *testing.T) {
			t.Parallel()
			longPromptGPUPrograms(t, shape)
		})
	}
}

func longPromptGPUPrograms(t *testing.T, shape string) {
	t.Helper()
	const count = 128
	m, err := llm.NewModel(synthetic(t, shape))
	if err != nil {
		t.Fatal(err)
	}
	tokens := make([]int32, count)
	for i := range tokens {
		tokens[i] = int32(i*7919+i*i) % int32(m.Config.Vocabulary)
	}
	gpu, cpu := interp.New(interp.Options{Target: mustTarget(t, "ptx:sm_90")}), openDevice(t, "cpu")
	exact := feedModel(t, cpu, nn.Exact, m, tokens, count)
	if v := difference(feedModel(t, gpu, nn.Exact, m, tokens, count), exact); !(v <= gpuLimits.nmse) {
		t.Errorf("NMSE %.3g of %d rows, want at most %g", v, len(exact), gpuLimits.nmse)
	}
	half := difference(feedModel(t, cpu, nn.Half, m, tokens, count), exact)
	if v := difference(feedModel(t, gpu, nn.Half, m, tokens, count), exact); !(v <= 1.25*half+gpuLimits.nmse) {
		t.Errorf("halves: NMSE %.3g against exact mode, %.3g on a CPU", v, half)
	} else {
		t.Logf("halves: NMSE %.3g against exact mode, %.3g on a CPU", v, half)
	}
}
