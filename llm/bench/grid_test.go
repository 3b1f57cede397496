package bench

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tgc/llm/synth"
	"tgc/nn"
)

func TestReadGrid(t *testing.T) {
	rows, err := ReadGrid(strings.NewReader("# MODEL ..\n\ntiny int8 - 2 0 16 8 # small\n\tm.gguf  exact cuda:1 1 512 0 0\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []Row{
		{Line: 3, Model: "tiny", Mode: nn.Int8, Batch: 2, Decode: 16, Depth: 8},
		{Line: 4, Model: "m.gguf", Mode: nn.Exact, Device: "cuda:1", Batch: 1, Prompt: 512},
	}
	if !slices.Equal(rows, want) {
		t.Errorf("rows %v, want %v", rows, want)
	}
	for _, r := range rows {
		again, err := ReadGrid(strings.NewReader(r.String()))
		if r.Line = 1; err != nil || !slices.Equal(again, []Row{r}) {
			t.Errorf("%q is read as %v (%v)", r.String(), again, err)
		}
	}
}

// Every wrong line is named, with what is wrong.
func TestReadGridRefuses(t *testing.T) {
	_, err := ReadGrid(strings.NewReader(strings.Join([]string{
		"tiny int8 - 1 0 16 0", "tiny int8 - 1 0 16", "tiny int9 - 1 0 16 0", "tiny int8 - 0 0 16 0",
		"tiny int8 - 1 0 0 0", "tiny int8 - 1 0 16 -1", "tiny int8 - 1 x 16 0",
	}, "\n")))
	if err == nil {
		t.Fatal("no error")
	}
	for i, want := range []string{"6 fields", "int9", "0 sequences", "0 generated", "-1", `"x"`} {
		lines := strings.Split(err.Error(), "\n")
		if len(lines) != 6 || !strings.Contains(lines[i], want) || !strings.HasPrefix(lines[i], "line ") {
			t.Errorf("errors %q, want %q in number %d", lines, want, i)
		}
	}
	if _, err := ReadGrid(strings.NewReader("# nothing\n")); err == nil || !strings.Contains(err.Error(), GridForm) {
		t.Errorf("an empty grid gives %v", err)
	}
}

// The grids of the repository hold models that can be made and positions that they have.
func TestGridsOfDocs(t *testing.T) {
	files, err := filepath.Glob("../../docs/bench/grid*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no grids: %v", err)
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		rows, err := ReadGrid(f)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for i, r := range rows {
			s, err := synth.Lookup(r.Model)
			if need := max(r.Prompt, r.Depth+r.Decode); err != nil || need > s.Context {
				t.Errorf("%s:%d: %d positions of %d (%v)", name, r.Line, need, s.Context, err)
			}
			r.Line = 0
			if slices.ContainsFunc(rows[:i], func(o Row) bool { o.Line = 0; return o == r }) {
				t.Errorf("%s: %v stands there twice", name, &r)
			}
		}
	}
}

// Kernels are below a floor only if they read enough to be held against it.
func TestBelow(t *testing.T) {
	r := &Result{ReadRate: 4000, Kernels: []KernelResult{
		{Name: "slow", Memory: 2 * LeastBytes, Fraction: 0.3},
		{Name: "small", Memory: LeastBytes - 1, Fraction: 0.01},
		{Name: "fast", Memory: 5 * LeastBytes, Fraction: 0.45},
		{Name: "least", Memory: LeastBytes, Fraction: 0.44},
	}}
	var names []string
	for _, k := range r.Below(0.45) {
		names = append(names, k.Name)
	}
	if want := []string{"slow", "least"}; !slices.Equal(names, want) {
		t.Errorf("below the floor are %v, want %v", names, want)
	}
	if r.ReadRate = 0; r.Below(1) != nil {
		t.Error("kernels are below a bandwidth that is not known")
	}
}
