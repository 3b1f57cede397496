package opt_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"tgc/ir/program/opt"
	"tgc/target"
)

// cpuRows are the rows that change programs of CPUs.
var cpuRows = []string{"widen-bytes", "take-turns", "join-lanes", "expand-math", "spread-prefetches"}

// testdata/rows/ROW.txtar: pairs of NAME.program and NAME.result, what the row makes of
// the text on a GPU (those of cpuRows on a CPU). Every row has one, and changes its first
// program, or none if it is an analysis.
func TestRowsGolden(t *testing.T) {
	update := flag.Lookup("update").Value.String() == "true"
	gpu, err := target.ForGPU(90, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range opt.Passes.Infos() {
		t.Run(row.Name, func(t *testing.T) {
			file := filepath.Join("testdata", "rows", row.Name+".txtar")
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			desc := gpu
			if slices.Contains(cpuRows, row.Name) {
				desc = &target.Desc{Kind: target.CPU, FMA: true, VectorBytes: 64, VectorRegs: 32}
			}
			want := make(map[string]string)
			for _, f := range archive.Files {
				if _, twice := want[f.Name]; twice {
					t.Fatalf("%s has %s twice", file, f.Name)
				}
				want[f.Name] = string(f.Data)
			}
			var out []txtar.File
			for _, f := range archive.Files {
				name, ok := strings.CutSuffix(f.Name, ".program")
				if !ok {
					continue
				}
				got, err := opt.RunPass(t.Context(), row.Name, string(f.Data), desc)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if same := got == string(f.Data); len(out) == 0 && same && !row.Analysis || !same && row.Analysis {
					t.Errorf("%s: the row changes nothing: %t, it is an analysis: %t", name, same, row.Analysis)
				}
				out = append(out, f, txtar.File{Name: name + ".result", Data: []byte(got)})
				if diff := cmp.Diff(want[name+".result"], got); diff != "" && !update {
					t.Errorf("%s differs (-want +got):\n%s", name, diff)
				}
			}
			if update {
				archive.Files = out
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
