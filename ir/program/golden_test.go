package program

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// testdata/verify*.txtar: pairs of NAME.program and NAME.error.
func TestVerifyGolden(t *testing.T) {
	forFiles(t, "testdata/verify*.txtar", ".error", func(t *testing.T, text string) string {
		p, err := Parse(text)
		if err == nil {
			err = Verify(p)
		}
		if err == nil {
			t.Fatal("no error")
		}
		return err.Error() + "\n"
	})
}

func forFiles(t *testing.T, pattern, suffix string, run func(t *testing.T, text string) string) {
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatal("no golden files", err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want := make(map[string]string)
		for _, f := range archive.Files {
			want[f.Name] = string(f.Data)
		}
		var out []txtar.File
		for _, f := range archive.Files {
			name, ok := strings.CutSuffix(f.Name, ".program")
			if !ok {
				continue
			}
			t.Run(name, func(t *testing.T) {
				got := run(t, string(f.Data))
				out = append(out, f, txtar.File{Name: name + suffix, Data: []byte(got)})
				if diff := cmp.Diff(want[name+suffix], got); diff != "" && !*update {
					t.Errorf("differs (-want +got):\n%s", diff)
				}
			})
		}
		if *update {
			archive.Files = out
			if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}
