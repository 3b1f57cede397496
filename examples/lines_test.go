package examples

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// codeLines counts the lines of a program that are neither empty nor comments.
func codeLines(t *testing.T, path, comment string) (n int) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, comment) {
			n++
		}
	}
	return n
}

// A network is trained in at most one and a half times the lines that it takes in PyTorch.
func TestLinesOfPrograms(t *testing.T) {
	for _, name := range []string{"classifier", "transformer"} {
		ours, theirs := codeLines(t, filepath.Join(name, "main.go"), "//"), codeLines(t, filepath.Join(name, name+".py"), "#")
		t.Logf("%s: %d lines, %d in PyTorch", name, ours, theirs)
		if 2*ours > 3*theirs {
			t.Errorf("%s has %d lines, %d in PyTorch: want at most 1.5 times as many", name, ours, theirs)
		}
	}
}
