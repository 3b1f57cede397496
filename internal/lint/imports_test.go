// Package lint holds tests that read the source tree: what no compiler checks.
package lint

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// layers lists the packages from the bottom up, by longest matching prefix. A
// package may import those of its own and lower layers only. The order is the
// architecture; README and ARCHITECTURE.md draw the same picture.
var layers = [][]string{
	{"target", "pass", "safetensors", "internal/lists", "internal/mapfile", "internal/pages", "internal/cpucache", "internal/processor", "internal/sharedlibrary", "internal/childprocess", "internal/steadyseed", "internal/rarecollection", "internal/cudatools", "internal/cudalib", "internal/nvrtc", "internal/nvjitlink", "internal/oracle", "internal/cachefile", "internal/atomicfile", "internal/filelock", "internal/svg"},
	{"ir"},
	{"rewrite", "packed", "gguf"},
	{"schedule/expr"},
	{"schedule/state"},
	{"schedule/rangeify", "schedule/algebra", "schedule/place", "schedule/emit"},
	{"kernel/plan"},
	{"kernel/shape"},
	{"kernel/lower"},
	{"schedule", "kernel", "internal/programtest"},
	{"heuristic", "search/database"},
	{"render", "internal/ptxemu"},
	{"runtime"},
	{"engine"},
	{"search"},
	{"tensor"},
	{"grad"},
	{"nn"},
	{"llm", "search/job", "internal/refmodel", "internal/testkit", "internal/microbench", "internal/kernelhash", "internal/planbench", "internal/opsbench", "internal/cliffs", "internal/orinmodel", "internal/mutants", "internal/passtable", "internal/viz"},
	{"cmd", "examples"},
}

// Nothing imports upwards.
func TestImportsPointDownwards(t *testing.T) {
	root := moduleRoot(t)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		relative, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		own, known := layerOf(filepath.ToSlash(relative))
		if relative == "." {
			return nil
		}
		if !known {
			t.Errorf("%s: package %s stands in no layer", path, relative)
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			below, ours := strings.CutPrefix(name, "tgc/")
			if !ours {
				continue
			}
			if layer, _ := layerOf(below); layer > own {
				t.Errorf("%s imports %s, which stands above it", relative, below)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// apart are packages that may know nothing of others, so that what both say of one thing
// is said twice.
var apart = []struct{ pkg, from, why string }{
	{"runtime/hcq", "runtime/cuda", noDriver},
	{"runtime/hcq/tegra", "runtime/cuda", noDriver},
	{"runtime/hcq/tegra/kernel", "runtime/cuda", noDriver},
	{"runtime/nvidia", "runtime/cuda", noDriver},
	{"runtime/hcq/emu", "runtime", "it checks the words that the runtime writes against the vendor's pages, not against the runtime's tables"},
}

const noDriver = "it drives a GPU that the driver library must not open in the same process"

func TestApart(t *testing.T) {
	root := moduleRoot(t)
	for _, rule := range apart {
		files, err := filepath.Glob(filepath.Join(root, rule.pkg, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", rule.pkg, len(files), err)
		}
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
			if err != nil {
				t.Fatal(err)
			}
			for _, spec := range file.Imports {
				if name := strings.Trim(spec.Path.Value, `"`); name == "tgc/"+rule.from || strings.HasPrefix(name, "tgc/"+rule.from+"/") {
					t.Errorf("%s imports %s: %s", path, name, rule.why)
				}
			}
		}
	}
}

// No code opens a node of the desktop's kernel driver: its structures are tables only.
func TestNoNodeOfTheDesktop(t *testing.T) {
	const node = "/dev/nvidia"
	root, seen := moduleRoot(t), 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		seen++
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), node) {
			t.Errorf("%s names a node %s..", path, node)
		}
		return err
	})
	if err != nil || seen < 100 {
		t.Errorf("%d files, %v", seen, err)
	}
}

func layerOf(pkg string) (layer int, ok bool) {
	best := -1
	for i, names := range layers {
		for _, name := range names {
			if (pkg == name || strings.HasPrefix(pkg, name+"/")) && len(name) > best {
				best, layer, ok = len(name), i, true
			}
		}
	}
	return layer, ok
}

func moduleRoot(t *testing.T) string {
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above the test")
		}
		dir = parent
	}
}
