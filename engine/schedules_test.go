package engine_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tgc/engine"
	"tgc/internal/lists"
	"tgc/ir"
	"tgc/pass"
	"tgc/schedule"
	"tgc/target"
	"tgc/tensor"
)

// keptGraph has several kernels, a symbolic extent and a temporary.
func keptGraph(t *testing.T, width int) *tensor.Graph {
	t.Helper()
	g := tensor.NewGraph()
	n := g.Var("n", 1, 40)
	x := g.Input("x", ir.F32, 64, width)
	g.Output("y", x.Linear(g.Input("w", ir.F32, 96, width)).Softmax(1))
	g.Output("z", g.InputDims("c", ir.F32, n, g.Dims(8)[0]).Sum(0))
	return g
}

// compileKept compiles the graph with schedules of a folder, and tells whether it was scheduled.
func compileKept(t *testing.T, g *tensor.Graph, name string, config engine.Config) (c *engine.Compiled, scheduled bool) {
	t.Helper()
	desc, err := target.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	if c, err = g.Compile(t.Context(), desc, config); err != nil {
		t.Fatal(err)
	}
	return c, slices.ContainsFunc(c.Passes, func(p pass.Time) bool { return p.Name == "write-kernels" })
}

// textsOf are the kernels of a compiled graph, each with its plan, and its launches.
func textsOf(t *testing.T, c *engine.Compiled) []string {
	t.Helper()
	texts := lists.Map(c.Kernels, func(k *engine.Kernel) string { return k.Name + "\n" + k.Plan.String() + "\n" + ir.Text(k.AST) })
	return append(texts, c.Schedule.String())
}

// A graph is scheduled once: by another compilation, with another folder handle, its kernels are the same.
func TestSchedulesAreKept(t *testing.T) {
	for _, name := range []string{"ptx:sm_90", "llvm:haswell", "interp"} {
		dir := t.TempDir()
		plain, _ := compileKept(t, keptGraph(t, 128), name, engine.Config{})
		for run := range 3 {
			kept := engine.OpenSchedules(dir)
			c, scheduled := compileKept(t, keptGraph(t, 128), name, engine.Config{Schedules: kept})
			if scheduled != (run == 0) {
				t.Errorf("%s, compilation %d: scheduled %t", name, run, scheduled)
			}
			if diff := cmp.Diff(textsOf(t, plain), textsOf(t, c)); diff != "" {
				t.Errorf("%s, compilation %d: not kept (-) and kept (+):\n%s", name, run, diff)
			}
			if err := kept.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A schedule is that of its graph, its target's options, the rules and the decisions alone.
func TestSchedulesHaveKeys(t *testing.T) {
	kept := engine.OpenSchedules(t.TempDir())
	defer kept.Close()
	decide, err := schedule.ParseDecisions("split-grid 9f3a64d1c0ffee12 8")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := schedule.ParseRules("fuse-softmax", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what   string
		width  int
		target string
		config engine.Config
		known  bool
	}{
		{"the first", 128, "ptx:sm_90", engine.Config{}, false},
		{"the first again", 128, "ptx:sm_90", engine.Config{}, true},
		{"another graph", 160, "ptx:sm_90", engine.Config{}, false},
		{"a CPU", 128, "llvm:haswell", engine.Config{}, false},
		{"another GPU", 128, "ptx:sm_87", engine.Config{}, false},
		{"a rule is off", 128, "ptx:sm_90", engine.Config{Rules: rules}, false},
		{"a decision", 128, "ptx:sm_90", engine.Config{Decide: decide}, false},
		{"the decision again", 128, "ptx:sm_90", engine.Config{Decide: decide}, true},
		{"explained", 128, "ptx:sm_90", engine.Config{Explain: true}, false},
		{"verified", 128, "ptx:sm_90", engine.Config{Verify: true}, false},
		{"traced", 128, "ptx:sm_90", engine.Config{Control: &pass.Control{Trace: true}}, false},
		{"without a pass", 128, "ptx:sm_90", engine.Config{Control: &pass.Control{Without: map[string]bool{"fuse-softmax": true}}}, false},
		{"the first, at last", 128, "ptx:sm_90", engine.Config{}, true},
	} {
		c.config.Schedules = kept
		compiled, scheduled := compileKept(t, keptGraph(t, c.width), c.target, c.config)
		if scheduled == c.known {
			t.Errorf("%s: scheduled %t", c.what, scheduled)
		}
		if c.config.Explain && len(compiled.Schedule.Records) == 0 {
			t.Errorf("%s: no records", c.what)
		}
	}
}

// An entry that is cut or not a schedule is made again; a folder that cannot be made keeps nothing.
func TestSchedulesOfBrokenFolders(t *testing.T) {
	dir := t.TempDir()
	kept := engine.OpenSchedules(dir)
	defer kept.Close()
	compileKept(t, keptGraph(t, 128), "interp", engine.Config{Schedules: kept})
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%d entries, %v", len(files), err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for what, bad := range map[string][]byte{"cut": data[:len(data)/2], "flipped": flipped(data), "empty": nil} {
		if err := os.WriteFile(files[0], bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, scheduled := compileKept(t, keptGraph(t, 128), "interp", engine.Config{Schedules: kept}); !scheduled {
			t.Errorf("%s: the entry was taken", what)
		}
		if _, scheduled := compileKept(t, keptGraph(t, 128), "interp", engine.Config{Schedules: kept}); scheduled {
			t.Errorf("%s: the entry was not made again", what)
		}
	}
	none := engine.OpenSchedules(filepath.Join(files[0], "none"))
	for range 2 {
		if _, scheduled := compileKept(t, keptGraph(t, 128), "interp", engine.Config{Schedules: none}); !scheduled {
			t.Error("kept in a folder that is none")
		}
	}
}

func flipped(data []byte) []byte {
	out := slices.Clone(data)
	out[len(out)-9] ^= 1
	return out
}
