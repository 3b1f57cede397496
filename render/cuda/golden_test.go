package cuda

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"tgc/internal/cudatools"
	"tgc/internal/nvrtc"
	"tgc/internal/programtest"
	"tgc/ir/program"
	"tgc/ir/program/opt"
	"tgc/render/gpu"
	"tgc/target"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// architectures for which everything must compile.
var architectures = []string{"sm_75", "sm_87", "sm_90"}

func describe(t testing.TB, name string) *target.Desc {
	t.Helper()
	d, err := target.Parse("cuda:" + name)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// compiler returns NVRTC, or skips.
func compiler(t testing.TB) *nvrtc.Library {
	t.Helper()
	l, err := nvrtc.FromEnvironment()
	if errors.Is(err, nvrtc.ErrNotFound) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Each testdata/*.txtar has a program (in.program) and the text it becomes
// (out.cu). A line `target: sm_NN` of the comment names the architecture.
func TestGolden(t *testing.T) {
	eachGolden(t, func(t *testing.T, file, arch string, archive *txtar.Archive, p *program.Program) {
		k, err := Render(p, describe(t, arch), gpu.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			archive.Files = []txtar.File{archive.Files[0], {Name: "out.cu", Data: []byte(k.Text)}}
			if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
				t.Fatal(err)
			}
		} else if diff := cmp.Diff(section(archive, "out.cu"), k.Text); diff != "" {
			t.Errorf("text differs (-want +got):\n%s", diff)
		}
	})
}

// Every golden program compiles and assembles for all architectures from its
// own on, and nothing spills.
func TestGoldenCompiles(t *testing.T) {
	c := compiler(t)
	tools := cudatools.FromEnvironment()
	eachGolden(t, func(t *testing.T, _, arch string, _ *txtar.Archive, p *program.Program) {
		for _, name := range architectures {
			if name < arch {
				continue
			}
			k, err := Render(p, describe(t, name), gpu.Options{})
			if err != nil {
				t.Fatal(err)
			}
			ptx, err := c.Compile(k.Text, name)
			if err != nil {
				t.Fatal(err)
			}
			if tools.PtxasPath == "" {
				continue
			}
			a, err := tools.Ptxas(context.Background(), ptx, name)
			if err != nil {
				t.Fatal(err)
			}
			if a.SpillLoads+a.SpillStores > 0 {
				t.Errorf("%s: spills: %s", name, a.Log)
			}
		}
	})
}

func eachGolden(t *testing.T, f func(t *testing.T, file, arch string, archive *txtar.Archive, p *program.Program)) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no golden files", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
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
			f(t, file, arch, archive, p)
		})
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

// Rendering is a pure function.
func TestDeterministic(t *testing.T) {
	for seed := range uint64(5) {
		p, _ := programtest.Generate(seed, 60)
		desc := describe(t, architectures[seed%3])
		p = opt.Expand(p, desc)
		first, err := Render(p, desc, gpu.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			again, err := Render(p, desc, gpu.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(first, again); diff != "" {
				t.Fatalf("seed %d: two renderings differ: %s", seed, diff)
			}
		}
	}
}
