package ir

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite golden files")

// TestErrors parses each case of testdata/errors.txtar and compares the first
// error of Parse, then of the verifier that its name starts with.
func TestErrors(t *testing.T) {
	golden(t, "errors.txtar", func(name, in string) string {
		a := NewArena()
		root, err := Parse(a, in)
		if err == nil && strings.HasPrefix(name, "tensor") {
			err = VerifyTensor(root)
		}
		if err == nil && strings.HasPrefix(name, "kernel") {
			err = VerifyKernel(root)
		}
		return fmt.Sprintln(err)
	})
}

// golden runs f on every file NAME.in of an archive and compares with NAME.out.
func golden(t *testing.T, file string, f func(name, in string) string) {
	t.Helper()
	path := filepath.Join("testdata", file)
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := make(map[string]string)
	for _, part := range archive.Files {
		want[part.Name] = string(part.Data)
	}
	out := &txtar.Archive{Comment: archive.Comment}
	for _, part := range archive.Files {
		name, ok := strings.CutSuffix(part.Name, ".in")
		if !ok {
			continue
		}
		got := f(name, string(part.Data))
		out.Files = append(out.Files, part, txtar.File{Name: name + ".out", Data: []byte(got)})
		if diff := cmp.Diff(want[name+".out"], got); diff != "" && !*update {
			t.Errorf("%s: %s (-want +got):\n%s", file, name, diff)
		}
	}
	if *update {
		if err := os.WriteFile(path, txtar.Format(out), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
