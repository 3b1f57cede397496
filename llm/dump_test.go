package llm_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"tgc/engine"
	"tgc/gguf"
	"tgc/internal/oracle"
	"tgc/llm"
	"tgc/runtime/devices"
)

// Every tensor type of the oracle decodes to the bits it stands for (-0 and 0
// are equal), through the whole compiler, on every device that is here.
func TestDumpMatchesOracle(t *testing.T) {
	files := oracle.Files(t, "quant", "*.gguf")
	for _, device := range []string{"interp", "cpu", "cuda:emu"} {
		t.Run(device, func(t *testing.T) {
			dev, _, err := devices.Open(t.Context(), device, devices.Options{})
			if errors.Is(err, devices.ErrNoLLVM) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			defer dev.Close()
			for _, path := range files {
				t.Run(strings.TrimSuffix(filepath.Base(path), ".gguf"), func(t *testing.T) { checkDump(t, dev, path) })
			}
		})
	}
}

func checkDump(t *testing.T, dev *devices.Device, path string) {
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	x, ok := f.Tensor("x")
	ref, ok2 := f.Tensor("ref")
	if !ok || !ok2 {
		t.Fatal("the file lacks x or ref")
	}
	var out bytes.Buffer
	if err := llm.DumpTensor(t.Context(), dev, engine.Config{Verify: true}, x, &out); err != nil {
		t.Fatal(err)
	}
	got, want := out.Bytes(), ref.Data()
	if len(got) != len(want) {
		t.Fatalf("%d bytes, want %d", len(got), len(want))
	}
	for i := 0; i < len(want); i += 4 {
		g := math.Float32frombits(binary.LittleEndian.Uint32(got[i:]))
		w := math.Float32frombits(binary.LittleEndian.Uint32(want[i:]))
		if g != w {
			t.Fatalf("value %d (row %d, column %d) is %v, want %v", i/4, i/4/x.RowLength(), i/4%x.RowLength(), g, w)
		}
	}
}
