package main

import (
	"testing"

	"tgc/internal/cudatools"
)

// The figures of a small model's step add up: what bounds a kernel is not faster than its
// bytes, and all of its weights are read.
func TestCompile(t *testing.T) {
	if tools := cudatools.FromEnvironment(); tools.PtxasPath == "" || tools.NvdisasmPath == "" {
		t.Skip("no ptxas or nvdisasm")
	}
	s, err := compile(t.Context(), "odd", "exact", 16)
	if err != nil {
		t.Fatal(err)
	}
	if s.launches < 5 || s.kernels > s.launches || s.weights < 20_000 || s.weights > 60_000 || s.instructions < s.weights/16 {
		t.Errorf("%+v", s)
	}
	if s.kernelTime < s.bytesTime || s.bytesTime <= 0 || s.bytes < s.weightBytes {
		t.Errorf("%+v", s)
	}
	if r, o := s.registers/s.bytes, s.occupancy/s.bytes; r < 16 || r > 255 || o <= 0 || o > 1 {
		t.Errorf("%g registers, occupancy %g", r, o)
	}
}
