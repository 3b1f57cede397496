package lint_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The programs in docs/library.md are what a newcomer copies: each compiles, runs and prints
// what stands after it.
func TestLibraryPrograms(t *testing.T) {
	text, err := os.ReadFile("../../docs/library.md")
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(text), "```go\npackage main\n")[1:]
	if len(parts) == 0 {
		t.Fatal("docs/library.md has no program")
	}
	for i, part := range parts {
		program, after, closed := strings.Cut(part, "```\n")
		want, _, printed := strings.Cut(strings.TrimPrefix(after, "\n```\n"), "```\n")
		if !closed || !printed {
			t.Fatalf("program %d of docs/library.md has no output after it", i+1)
		}
		file := filepath.Join(t.TempDir(), "main.go")
		if err := os.WriteFile(file, []byte("package main\n"+program), 0o600); err != nil {
			t.Fatal(err)
		}
		run := exec.Command("go", "run", file)
		run.Dir = "../.."
		if out, err := run.CombinedOutput(); err != nil || string(out) != want {
			t.Errorf("%v\n%s\nwant:\n%s", err, out, want)
		}
	}
}
