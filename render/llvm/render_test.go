package llvm

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"tgc/internal/programtest"
	"tgc/ir"
	"tgc/ir/program"
	"tgc/ir/program/opt"
	"tgc/target"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Each testdata/*.txtar has a program (in.program) and the module it becomes
// (out.ll). A line `target: NAME` of the comment names the target.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no golden files", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { golden(t, file) })
	}
}

func golden(t *testing.T, file string) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p, err := program.Parse(section(archive, "in.program"))
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Verify(p); err != nil {
		t.Fatal(err)
	}
	desc := target.ForCPU("x86-64-v4", nil, 1)
	for line := range strings.Lines(string(archive.Comment)) {
		if name, ok := strings.CutPrefix(line, "target: "); ok {
			if desc, err = target.Parse(strings.TrimSpace(name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	text, _, err := Render(p, desc)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		archive.Files = []txtar.File{archive.Files[0], {Name: "out.ll", Data: []byte(text)}}
		if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(section(archive, "out.ll"), text); diff != "" {
		t.Errorf("module differs (-want +got):\n%s", diff)
	}
}

func section(a *txtar.Archive, name string) string {
	for _, f := range a.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

// Which lanes are computed by themselves is the target's price of taking one out: five instructions of general registers are less
// with 32 bytes, and more with 64, where only words and masks are.
func TestLanesAloneByTarget(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/lanes-alone.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"x86-64-v3": 4, "x86-64-v4": 8} {
		p, err := program.Parse(section(archive, "in.program"))
		if err != nil {
			t.Fatal(err)
		}
		text, _, err := Render(p, target.ForCPU(name, nil, 1))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(text, "= extractelement"); n != want {
			t.Errorf("%s takes %d lanes out of vectors, want %d", name, n, want)
		}
	}
}

// Rendering is a pure function.
func TestDeterministic(t *testing.T) {
	desc := target.ForCPU("x86-64-v4", nil, 1)
	for seed := range uint64(5) {
		p, _ := programtest.Generate(seed, 60)
		p = opt.Expand(p, desc)
		first, _, err := Render(p, desc)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if again, _, _ := Render(p, desc); again != first {
				t.Fatalf("seed %d: two renderings differ", seed)
			}
		}
	}
}

func TestGPUInstructionIsAnError(t *testing.T) {
	b := program.NewBuilder("barrier")
	b.GridLoop(func(*program.Value) { b.Emit(program.Instr{Op: program.Barrier}) })
	if _, _, err := Render(b.Finish(), target.Interp()); err == nil || !strings.Contains(err.Error(), "a CPU has no barrier") {
		t.Fatal(err)
	}
}

// BenchmarkRender reports the time of 1000 instructions after expansion.
func BenchmarkRender(b *testing.B) {
	desc := target.ForCPU("x86-64-v4", nil, 1)
	builder := program.NewBuilder("long")
	x := builder.Buffer(0, ir.F32, "x", 64, 64)
	builder.GridLoop(func(*program.Value) {
		v := builder.Load(x, 16, 64)
		for range 500 {
			v = builder.Add(builder.Mul(v, v), v)
		}
		builder.Store(x, v, 64)
	})
	p := builder.Finish()
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Render(p, desc); err != nil {
			b.Fatal(err)
		}
	}
}
