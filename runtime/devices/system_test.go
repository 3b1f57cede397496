package devices

import (
	"strings"
	"testing"
)

// On every system the interpreter says in one line what a faster device wants.
func TestInterpreted(t *testing.T) {
	for goos, want := range map[string]string{"linux": "libllvm19", "darwin": "brew install llvm", "windows": "Linux and macOS only", "freebsd": "Linux and macOS only"} {
		text := interpreted(goos)
		if !strings.HasPrefix(text, "device: interp, which is slow: ") || !strings.Contains(text, want) || strings.Contains(text, "\n") {
			t.Errorf("%s: %q, want %q in it", goos, text, want)
		}
	}
}
