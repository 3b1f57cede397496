package engine_test

import (
	"os"
	"testing"

	"tgc/runtime/cpu"
)

// The compiler child of the CPU device is this test binary.
func TestMain(m *testing.M) {
	cpu.MaybeChild()
	os.Exit(m.Run())
}
