//go:build unix

package llm_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tgc/engine"
	"tgc/llm"
	"tgc/llm/synth"
)

// A file that is cut while its weights are in use ends in an error that says so: in kernels
// of the interpreter and of a CPU, and where Go code reads weights to copy them.
func TestTruncatedWhileMapped(t *testing.T) {
	shape, err := synth.Lookup("llama:d=256,layers=2,heads=4,ff=512,vocab=512,quant=q8_0")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "m.gguf")
	if err := synth.Write(t.Context(), shape, path, 1, nil); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"interp", "cpu"} {
		t.Run(name, func(t *testing.T) {
			dev := openDevice(t, name)
			if err := os.WriteFile(path, whole, 0o666); err != nil {
				t.Fatal(err)
			}
			m, err := llm.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			s, err := llm.NewSession(t.Context(), m, dev, llm.SessionOptions{Context: 16})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			nothing := func([]float32) error { return nil }
			if err := s.Feed(t.Context(), []int32{1}, nothing); err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(path, 4096); err != nil {
				t.Fatal(err)
			}
			if err = s.Feed(t.Context(), []int32{2}, nothing); err == nil || !strings.Contains(err.Error(), "shorter") {
				t.Errorf("a step gives %v, want an error that the file is shorter", err)
			}
			x, _ := m.File.Tensor("blk.1.ffn_up.weight")
			if err := llm.DumpTensor(t.Context(), dev, engine.Config{}, x, io.Discard); err == nil || !strings.Contains(err.Error(), "shorter") {
				t.Errorf("a dump gives %v, want an error that the file is shorter", err)
			}
		})
	}
}
