package llm_test

import (
	"os"
	"path/filepath"
	"testing"

	"tgc/llm"
	"tgc/nn"
)

// Long prompts on a GPU, where there is one: tokens fed 512, 128 and fewer at a time,
// by matrix instructions, give what the same tokens give one by one, with the kernels
// that the oracle's answers prove. With rounded activations a sum that differs in its
// last bit may round to another integer, here as on a CPU: there both ways must be as
// far from exact mode. TGC_TEST_MODELS names a folder with more models.
func TestLongPromptsCUDA(t *testing.T) {
	dev := openDevice(t, "cuda")
	var files []string
	for _, name := range oracleModels(t) {
		files = append(files, modelPath(t, name))
	}
	if dir := os.Getenv("TGC_TEST_MODELS"); dir != "" {
		more, err := filepath.Glob(filepath.Join(dir, "*.gguf"))
		if err != nil || len(more) == 0 {
			t.Fatalf("no models in %s: %v", dir, err)
		}
		files = append(files, more...)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			tokens := longPrompt(t, file)
			exact := feedFile(t, dev, nn.Exact, file, tokens, 0)
			if v := difference(feedFile(t, dev, nn.Exact, file, tokens, len(tokens)), exact); !(v <= gpuLimits.nmse) {
				t.Errorf("exact: NMSE %.3g, want at most %g", v, gpuLimits.nmse)
			}
			one := difference(feedFile(t, dev, nn.Int8, file, tokens, 0), exact)
			many := difference(feedFile(t, dev, nn.Int8, file, tokens, len(tokens)), exact)
			t.Logf("int8 against exact: NMSE %.3g of a prompt, %.3g one by one", many, one)
			if !(many <= 1.25*one+gpuLimits.nmse) {
				t.Errorf("int8 against exact: NMSE %.3g of a prompt, %.3g of its tokens one by one", many, one)
			}
		})
	}
}

// difference is the NMSE of rows of logits.
func difference(got, want [][]float32) float64 {
	var all nmse
	for i := range want {
		for k := range want[i] {
			all.point(float64(got[i][k]), float64(want[i][k]))
		}
	}
	return all.value()
}

// longPrompt is tokens for a step of 512, one of 128 behind it, and a rest.
func longPrompt(t *testing.T, file string) []int32 {
	t.Helper()
	m, err := llm.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	tokens := make([]int32, min(512+128+9, m.Config.Context-1))
	for i := range tokens {
		tokens[i] = int32(i*7919+i*i) % int32(m.Config.Vocabulary)
	}
	return tokens
}
