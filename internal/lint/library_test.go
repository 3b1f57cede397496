package lint_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The program in docs/library.md is what a newcomer copies: it compiles and runs.
func TestLibraryProgram(t *testing.T) {
	text, err := os.ReadFile("../../docs/library.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "```go\n")
	program, _, closed := strings.Cut(rest, "```\n")
	if !found || !closed || !strings.HasPrefix(program, "package main\n") {
		t.Fatal("docs/library.md has no program")
	}
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	run := exec.Command("go", "run", file)
	run.Dir = "../.."
	out, err := run.CombinedOutput()
	if want := "[0.26894143 0.7310586 0.26894143 0.7310586] <nil>\n256 <nil>\n"; err != nil || string(out) != want {
		t.Errorf("%v\n%s\nwant:\n%s", err, out, want)
	}
}
