package examples

import (
	"flag"
	"fmt"
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

var updateLines = flag.Bool("update", false, "rewrite docs/program-lines.md")

// What stands in docs of the lines of programs is what they have.
func TestLinesDocument(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Lines of programs\n\nLines that are neither empty nor comments, of programs of [examples/programs](../examples/programs)\n" +
		"and of the same in PyTorch (`NAME.py` beside them; each was run with PyTorch 1.13) and in gomlx 0.26\n" +
		"(`gomlx.txt`; each was compiled, and run with its backend simplego, which has no FFT yet). Go's\n" +
		"package clause and imports are lines too. Generated: `go test ./examples -run LinesDocument -update`.\n\n" +
		"| program | tgc | PyTorch | gomlx |\n|---|---|---|---|\n")
	paths, err := filepath.Glob("programs/*/gomlx.txt")
	if err != nil || len(paths) < 10 {
		t.Fatalf("%d programs are in gomlx too, want 10 (%v)", len(paths), err)
	}
	for _, path := range paths {
		folder := filepath.Dir(path)
		name := filepath.Base(folder)
		fmt.Fprintf(&b, "| %s | %d | %d | %d |\n", name, codeLines(t, filepath.Join(folder, "main.go"), "//"),
			codeLines(t, filepath.Join(folder, name+".py"), "#"), codeLines(t, path, "//"))
	}
	for _, name := range []string{"classifier", "transformer"} {
		fmt.Fprintf(&b, "| [%s](../examples/%s) | %d | %d | |\n", name, name,
			codeLines(t, filepath.Join(name, "main.go"), "//"), codeLines(t, filepath.Join(name, name+".py"), "#"))
	}
	const document = "../docs/program-lines.md"
	if *updateLines {
		if err := os.WriteFile(document, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(document); err != nil || string(got) != b.String() {
		t.Errorf("%s is not what the programs give (%v): run with -update", document, err)
	}
}
