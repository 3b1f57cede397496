package rewrite

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"tgc/ir"
)

var update = flag.Bool("update", false, "rewrite golden files")

// TestGoldens simplifies the cases of testdata/*.txtar.
func TestGoldens(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatal("no golden files", err)
	}
	for _, path := range files {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want := make(map[string]string)
		for _, f := range archive.Files {
			want[f.Name] = string(f.Data)
		}
		out := &txtar.Archive{Comment: archive.Comment}
		for _, f := range archive.Files {
			name, ok := strings.CutSuffix(f.Name, ".in")
			if !ok {
				continue
			}
			result, fired := simplifyText(t, string(f.Data))
			out.Files = append(out.Files, f, txtar.File{Name: name + ".out", Data: []byte(result)}, txtar.File{Name: name + ".fired", Data: []byte(fired)})
			if diff := cmp.Diff(want[name+".out"]+want[name+".fired"], result+fired); diff != "" && !*update {
				t.Errorf("%s: %s (-want +got):\n%s", path, name, diff)
			}
		}
		if *update {
			if err := os.WriteFile(path, txtar.Format(out), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func simplifyText(t *testing.T, text string) (result, fired string) {
	a := ir.NewArena()
	root, err := ir.Parse(a, text)
	if err != nil {
		t.Fatal(err)
	}
	out, counts, err := Apply(a, root, Sets()...)
	if err != nil {
		t.Fatal(err)
	}
	var list strings.Builder
	for _, c := range counts {
		fmt.Fprintf(&list, "%s %d\n", c.Rule, c.N)
	}
	return ir.Text(out), list.String()
}
