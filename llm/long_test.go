package llm_test

import (
	"os"
	"path/filepath"
	"testing"

	"tgc/internal/oracle"
	"tgc/llm"
	"tgc/nn"
)

// Long prompts on a GPU, where there is one: tokens fed 512, 128 and fewer at a time,
// by matrix instructions, give what the same tokens give one by one, with the kernels
// that the oracle's answers prove. TGC_TEST_MODELS names a folder with more models.
func TestLongPromptsCUDA(t *testing.T) {
	dev := openDevice(t, "cuda")
	var files []string
	for _, name := range oracleModels(t) {
		files = append(files, filepath.Join(oracle.Dir(t, "models"), name+".gguf"))
	}
	if dir := os.Getenv("TGC_TEST_MODELS"); dir != "" {
		more, err := filepath.Glob(filepath.Join(dir, "*.gguf"))
		if err != nil || len(more) == 0 {
			t.Fatalf("no models in %s: %v", dir, err)
		}
		files = append(files, more...)
	}
	modes := []struct {
		mode  nn.Numeric
		limit float64
	}{
		{nn.Exact, gpuLimits.nmse},
		{nn.Int8, 1e-3}, // a sum that differs in its last bit may round to another integer
	}
	for _, file := range files {
		tokens := longPrompt(t, file)
		for _, m := range modes {
			t.Run(filepath.Base(file)+"/"+m.mode.String(), func(t *testing.T) {
				got := feedFile(t, dev, m.mode, file, tokens, len(tokens))
				ref := feedFile(t, dev, m.mode, file, tokens, 0)
				var all nmse
				for i := range ref {
					for k := range ref[i] {
						all.point(float64(got[i][k]), float64(ref[i][k]))
					}
				}
				t.Logf("NMSE %.3g", all.value())
				if v := all.value(); !(v <= m.limit) {
					t.Errorf("NMSE %.3g of %d rows, want at most %g", v, len(ref), m.limit)
				}
			})
		}
	}
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
