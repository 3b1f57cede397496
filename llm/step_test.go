package llm_test

import (
	"path/filepath"
	"testing"

	"tgc/gguf"
	"tgc/internal/oracle"
	"tgc/llm"
)

// Every oracle model's metadata makes a step graph of each variant.
func TestBuildStep(t *testing.T) {
	for _, path := range oracle.Files(t, "models", "*.gguf") {
		if matched, _ := filepath.Match("*.logits.gguf", filepath.Base(path)); matched {
			continue
		}
		f, err := gguf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		config, err := llm.ReadConfig(f)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for _, v := range []llm.Variant{
			{Batch: 1, Tokens: 1, Context: 64},
			{Batch: 2, Tokens: 8, Context: 64, Cache: llm.CacheF16},
			{Batch: 1, Tokens: 8, Context: 64, All: true},
		} {
			g, err := llm.BuildStep(config, f, v)
			if err != nil {
				t.Fatalf("%s %+v: %v", filepath.Base(path), v, err)
			}
			if _, err := g.Sink(); err != nil {
				t.Fatalf("%s %+v: %v", filepath.Base(path), v, err)
			}
		}
		f.Close()
	}
}
