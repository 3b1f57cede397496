package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every fault finds its text once in the sources as they are, and changes it.
func TestFaultsApply(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	faults, err := parseFaults(faultsText)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
		path, changed, err := f.plant(root)
		if err != nil {
			t.Error(err)
			continue
		}
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if string(source) == changed {
			t.Errorf("fault %s changes nothing", f.name)
		}
		for _, args := range f.tests {
			folder := strings.TrimSuffix(args[0], "/...")
			if _, err := os.Stat(filepath.Join(root, folder)); err != nil || !strings.HasPrefix(folder, "./") {
				t.Errorf("fault %s: no package %s to test", f.name, folder)
			}
		}
	}
}

// The output of go test says which test noticed, or that nothing was compiled.
func TestJudge(t *testing.T) {
	for _, c := range []struct {
		out         string
		failed      bool
		outcome, by string
	}{
		{"ok  \ttgc/ir\t0.1s\n", false, survived, ""},
		{"--- FAIL: TestA (0.00s)\n    --- FAIL: TestA/b (0.00s)\nFAIL\nFAIL\ttgc/ir\t0.1s\n", true, killed, "TestA"},
		{"panic: nil\nFAIL\ttgc/ir\t0.1s\n", true, killed, "tgc/ir"},
		{"panic: test timed out after 4m0s\n\trunning tests:\n\t\tTestB (4m0s)\nFAIL\ttgc/ir\t240s\n", true, killed, "TestB (endless)"},
		{"# tgc/ir\nir/a.go:3:2: declared and not used: x\nFAIL\ttgc/ir [build failed]\n", true, noCompile, "ir/a.go:3:2: declared and not used: x"},
	} {
		if outcome, by := judge(c.out, c.failed); outcome != c.outcome || by != c.by {
			t.Errorf("%q: %s by %s, want %s by %s", c.out, outcome, by, c.outcome, c.by)
		}
	}
}

// A fault without a place, a text or a test is refused, as is a name that is there twice.
func TestParseFaults(t *testing.T) {
	const row = "fault a\nin ir\n- x\n+ y\ntest ./ir\n"
	if faults, err := parseFaults("# words\n" + row); err != nil || len(faults) != 1 || faults[0].tests[0][0] != "./ir" {
		t.Errorf("%v, %v", faults, err)
	}
	for _, text := range []string{row + row, "in ir\n", "fault a\nin ir\n- x\ntest ./ir\n", row + "what is it\n"} {
		if _, err := parseFaults(text); err == nil {
			t.Errorf("%q is read without an error", text)
		}
	}
}
