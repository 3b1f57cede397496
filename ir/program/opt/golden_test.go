package opt

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"tgc/ir/program"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// testdata/expand*.txtar: pairs of NAME.program and NAME.expanded.
func TestExpandGolden(t *testing.T) {
	forFiles(t, "testdata/expand*.txtar", ".expanded", func(t *testing.T, text string) string {
		p, err := program.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		before := program.Print(p)
		q := ExpandMath(p)
		if err := program.Verify(q); err != nil {
			t.Error(err)
		}
		if program.Print(p) != before {
			t.Error("the argument was changed")
		}
		if again := ExpandMath(q); again != q {
			t.Error("the result is expanded again")
		}
		return program.Print(q)
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
