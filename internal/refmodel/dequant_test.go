package refmodel

import (
	"encoding/binary"
	"math"
	"testing"

	"tgc/gguf"
	"tgc/internal/oracle"
)

// TestDequantise compares every decoder that has a recorded file with it.
func TestDequantise(t *testing.T) {
	checked := make(map[gguf.Type]bool)
	for _, path := range oracle.Files(t, "quant", "*.gguf") {
		f, err := gguf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		x, _ := f.Tensor("x")
		if _, ok := decoders[x.Type]; ok {
			checked[x.Type] = true
			got, err := Dequantise(f, x)
			if err != nil {
				t.Fatal(err)
			}
			ref, _ := f.Tensor("ref")
			for i, v := range got {
				want := math.Float32frombits(binary.LittleEndian.Uint32(ref.Data()[4*i:]))
				if v != want {
					t.Fatalf("%s element %d: %g, want %g", x.Type, i, v, want)
				}
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if want := len(decoders) - 1; len(checked) != want { // F32 has no file
		t.Errorf("%d types checked, want %d", len(checked), want)
	}
}
