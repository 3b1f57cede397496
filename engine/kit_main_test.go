package engine_test

import (
	"os"
	"testing"

	_ "tgc/internal/rarecollection"
	"tgc/runtime/cpu"
)

// The compiler child of the CPU device is this test binary.
func TestMain(m *testing.M) {
	cpu.MaybeChild()
	os.Exit(m.Run())
}
