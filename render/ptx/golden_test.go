package ptx

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"tgc/internal/cudatools"
	"tgc/internal/programtest"
	"tgc/ir/program"
	"tgc/ir/program/opt"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Each testdata/*.txtar has a program (in.program) and the module it becomes
// (out.ptx). A line `target: sm_NN` of the comment names the architecture.
// Every one of them assembles for all architectures from that one on.
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
	arch := "sm_90"
	for line := range strings.Lines(string(archive.Comment)) {
		if name, ok := strings.CutPrefix(line, "target: "); ok {
			arch = strings.TrimSpace(name)
		}
	}
	k, err := Render(p, describe(t, arch), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		archive.Files = []txtar.File{archive.Files[0], {Name: "out.ptx", Data: []byte(k.Text)}}
		if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if diff := cmp.Diff(section(archive, "out.ptx"), k.Text); diff != "" {
		t.Errorf("module differs (-want +got):\n%s", diff)
	}
	tools := cudatools.FromEnvironment()
	if tools.PtxasPath == "" {
		return
	}
	for _, name := range architectures {
		if name >= arch {
			inspect(t, tools, p, name, name == architectures[2])
		}
	}
}

// inspect assembles a program and checks the machine code: nothing spills, and
// (listing takes a third of a second) no global load is wider than the widest
// alignment that the program proves.
func inspect(t *testing.T, tools cudatools.Tools, p *program.Program, arch string, listing bool) {
	t.Helper()
	k, err := Render(p, describe(t, arch), Options{})
	if err != nil {
		t.Fatal(err)
	}
	a, err := tools.Ptxas(context.Background(), k.Text, arch)
	if err != nil {
		t.Fatal(located(err, k.Text))
	}
	if a.SpillLoads+a.SpillStores > 0 {
		t.Errorf("%s: spills: %s", arch, a.Log)
	}
	if tools.NvdisasmPath == "" || !listing {
		return
	}
	l, err := tools.Nvdisasm(context.Background(), a.Cubin)
	if err != nil {
		t.Fatal(err)
	}
	if widest := widestAlign(p.Body); l.WidestLoad["global"] > widest {
		t.Errorf("%s: a global load of %d bytes, the widest proven alignment is %d", arch, l.WidestLoad["global"], widest)
	}
	if l.ByPipe["other"] > 0 {
		t.Errorf("%s: opcodes of no pipe: %v", arch, l.ByOpcode)
	}
	t.Logf("%s: %d registers, %d instructions, by pipe %v", arch, a.Registers, l.Instructions, l.ByPipe)
}

func widestAlign(b *program.Block) int {
	widest := 1
	for i := range b.Instrs {
		in := &b.Instrs[i]
		switch in.Op {
		case program.Load, program.Gather, program.Guarded:
			widest = max(widest, in.Align)
		}
		if in.Body != nil {
			widest = max(widest, widestAlign(in.Body))
		}
		if in.Else != nil {
			widest = max(widest, widestAlign(in.Else))
		}
	}
	return widest
}

func section(a *txtar.Archive, name string) string {
	for _, f := range a.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

// Rendering is a pure function.
func TestDeterministic(t *testing.T) {
	for seed := range uint64(5) {
		p, _ := programtest.Generate(seed, 60)
		desc := describe(t, architectures[seed%3])
		p = opt.Expand(p, desc)
		first, err := Render(p, desc, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			again, err := Render(p, desc, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(first, again); diff != "" {
				t.Fatalf("seed %d: two renderings differ: %s", seed, diff)
			}
		}
	}
}

// The PTX version follows the architecture.
func TestVersions(t *testing.T) {
	p := warpSums(32, 1)
	for _, c := range []struct{ arch, want string }{
		{"sm_75", "7.4"}, {"sm_80", "7.4"}, {"sm_87", "7.4"}, {"sm_89", "7.8"}, {"sm_90", "7.8"}, {"sm_90a", "8.0"},
		{"sm_100", "8.6"}, {"sm_100a", "8.6"}, {"sm_120", "8.7"}, {"sm_130", "8.8"},
	} {
		k, err := Render(p, describe(t, c.arch), Options{})
		if err != nil {
			t.Fatal(err)
		}
		want := ".version " + c.want + "\n.target " + c.arch + "\n"
		if !strings.HasPrefix(k.Text, want) {
			t.Errorf("%s: %.40q, want %q", c.arch, k.Text, want)
		}
	}
}
