package engine_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	"tgc/engine"
	"tgc/internal/testkit"
	"tgc/ir"
	"tgc/schedule"
	"tgc/target"
)

var update = flag.Bool("update", false, "rewrite golden files")

// What the fixed graphs cost: kernels, launches, bytes moved, nodes made and
// decisions taken by the scheduler, instructions of the programs. A change of
// these numbers is a change of what the compiler does, for better or worse.
func TestKitZooCosts(t *testing.T) {
	path := filepath.Join("testdata", "zoo.txtar")
	var got txtar.Archive
	for _, entry := range testkit.Zoo() {
		got.Files = append(got.Files, txtar.File{Name: entry.Name, Data: []byte(costs(t, entry))})
	}
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, txtar.Format(&got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatalf("%v (run with -update)", err)
	}
	texts := make(map[string]string)
	for _, f := range want.Files {
		texts[f.Name] = string(f.Data)
	}
	for _, f := range got.Files {
		if texts[f.Name] != string(f.Data) {
			t.Errorf("%s: %s", f.Name, firstDifference(texts[f.Name], string(f.Data)))
		}
	}
}

func costs(t *testing.T, entry testkit.ZooEntry) string {
	c, err := entry.Build(1)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, name := range []string{"llvm:x86-64-v3", "llvm:x86-64-v4"} {
		desc, err := target.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		compiled, err := c.Compile(t.Context(), desc, engine.Config{})
		if err != nil {
			t.Fatal(err)
		}
		var m engine.Manifest
		m.Describe(compiled, engine.Binding{Vars: c.Vars})
		calls := 0
		for _, launch := range compiled.Launches {
			calls += len(launch)
		}
		fmt.Fprintf(&out, "%s: %d calls of %d kernels in %d launches, %d bytes moved, arena of %d bytes\n",
			name, calls, len(compiled.Kernels), m.Launches, m.Bytes, m.Scratch)
		for i := range m.Kernels {
			k := &m.Kernels[i]
			fmt.Fprintf(&out, "  %s x%d: reads %d, writes %d bytes, %d flops; %s\n", k.Name, k.Launches, k.BytesRead, k.BytesWritten, k.Flops, firstWord(k.Why))
		}
	}
	fmt.Fprintf(&out, "%s\n", schedulerWork(t, c))
	return out.String()
}

// firstWord is the name of the heuristic in a plan's why.
func firstWord(why string) string {
	name, _, _ := strings.Cut(why, ":")
	return name
}

// schedulerWork counts what package schedule did, under its default profile.
func schedulerWork(t *testing.T, c *testkit.Case) string {
	sink, err := c.Sink()
	if err != nil {
		t.Fatal(err)
	}
	a := ir.NewArena()
	graph := a.Import(sink)
	before := a.Len()
	s, err := schedule.Run(t.Context(), a, graph, schedule.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	kernels := 0
	for _, l := range s.Launches {
		kernels += len(l.Kernels)
	}
	return fmt.Sprintf("default profile: %d graph nodes, some %d nodes made, %d values, some %d decisions, %d kernels in %d launches",
		before, twoDigits(a.Len()-before), s.Values, twoDigits(len(s.Records)), kernels, len(s.Launches))
}

// twoDigits rounds to two significant digits: smaller changes of a work counter
// are no news.
func twoDigits(n int) int {
	unit := 1
	for n/unit >= 100 {
		unit *= 10
	}
	return (n + unit/2) / unit * unit
}
