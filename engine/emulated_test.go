package engine_test

import (
	"testing"

	"tgc/runtime"
	"tgc/runtime/devices"
	"tgc/runtime/interp"
)

// openEmulated is a GPU on the host, and the interpreter to compare it with.
func openEmulated(t *testing.T) (gpu, host runtime.Device) {
	t.Helper()
	dev, _, err := devices.Open(t.Context(), "cuda:emu", devices.Options{})
	if err != nil {
		t.Fatal(err)
	}
	host = interp.New(interp.Options{})
	t.Cleanup(func() { dev.Close(); host.Close() })
	return dev, host
}
