package llm_test

import (
	"flag"
	"path/filepath"
	"testing"

	"tgc/gguf"
	"tgc/internal/oracle"
	"tgc/llm"
)

// Models on the emulated GPU: generated PTX, graphs and early launches, with the
// emulator's checks. A step of a small model takes it a second.

// emulateAll asks for what takes an hour.
var emulateAll = flag.Bool("emulate.all", false, "run every oracle model on the emulated GPU, with all its tokens")

// emulatedModels are small models of each architecture.
var emulatedModels = []string{
	"llama-bf16", "llama-iq4_nl", "llama-wide-heads-q5_0",
	"qwen2-bias-tied-q4_0", "qwen2-bias-q5_k_m", "qwen3-tied-q8_0",
	"olmoe-q8_0", "olmoe-q4_k_m",
}

// Models of each architecture give the logits and the greedy tokens of the
// float64 model.
func TestModelsEmulated(t *testing.T) {
	for _, name := range emulatedModels {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, err := gguf.Open(filepath.Join(oracle.Dir(t, "models"), name+".gguf"))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			compareWithReference(t, openDevice(t, "cuda:emu"), f, generation{prompt: 6, tokens: 3, nmse: gpuLimits.nmse})
		})
	}
	for i, typ := range []gguf.Type{gguf.F16, gguf.Q8_0, gguf.Q4_0} {
		t.Run("gpt2-"+typ.String(), func(t *testing.T) {
			t.Parallel()
			f := gpt2File(t, typ, uint64(i))
			defer f.Close()
			compareWithReference(t, openDevice(t, "cuda:emu"), f, generation{prompt: 6, split: 2, tokens: 3, nmse: gpuLimits.nmse})
		})
	}
}

// An oracle model with its recorded answers: the prompt and some tokens; all
// models with all tokens where that is asked for.
func TestOracleModelsEmulated(t *testing.T) {
	models, steps := []string{"llama-bf16"}, 3
	if *emulateAll {
		models = oracleModels(t)
	}
	for _, name := range models {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dev, want := openDevice(t, "cuda:emu"), loadAnswers(t, name)
			if !*emulateAll {
				checkModelSteps(t, dev, name, want, 0, gpuLimits, steps)
				return
			}
			checkModel(t, dev, name, want, 0, gpuLimits)
			checkModel(t, dev, name, want, len(want.PromptTokens)/2, gpuLimits)
		})
	}
}

var _ = llm.BufferLast
