package pages

import (
	"runtime"
	"testing"
)

// What is available is some of what a machine has; a system that does not say is no error.
func TestAvailable(t *testing.T) {
	n, ok := Available()
	if ok != (runtime.GOOS == "linux") || ok && (n < 1<<20 || n > 1<<50) {
		t.Errorf("%d bytes are available (%t)", n, ok)
	}
}
