package passtable_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sort"
	"strings"
	"sync"
	"testing"

	"tgc/engine"
	_ "tgc/internal/rarecollection"
	"tgc/ir"
	"tgc/llm"
	"tgc/llm/synth"
	"tgc/nn"
	"tgc/pass"
	"tgc/target"
)

// zooModels are compiled with two layers, which have the
// kernels of the whole model.
var zooModels = []string{
	"llama3.2:1b-q6_k", "llama3.1:8b-q4_k_m", "qwen2.5:1.5b-q5_k_m", "qwen3:0.6b-q8_0", "qwen3:1.7b-q4_k_m",
	"olmoe:1b-7b-q4_k_m", "gpt2:124m-f16", "smollm2:135m-q8_0", "odd",
}

const (
	zooLayers   = 2
	zooContext  = 1024
	zooPrompt   = 128
	zooPrograms = 24 // of the library
)

var zooTargets = []string{"ptx:sm_90a", "ptx:sm_87", "llvm:x86-64-v4", "llvm:x86-64-v3"}

var zooModes = []struct {
	name string
	mode nn.Numeric
}{{"exact", nn.Exact}, {"i16", nn.Int16}, {"f16", nn.Half}, {"int8", nn.Int8}}

// firing counts in how many compilations each pass changed its form.
type firing struct {
	subjects []string                   // columns: models and "library", steps, modes, targets
	compiled map[string]int             // compilations of a column
	fired    map[string]map[string]int  // pass -> column -> compilations in which it fired
	programs map[string]map[string]bool // pass -> models and library programs
}

func (f *firing) add(program string, columns []string, fired map[string]int) {
	for _, c := range columns {
		if f.compiled[c] == 0 {
			f.subjects = append(f.subjects, c)
		}
		f.compiled[c]++
	}
	for name := range fired {
		if f.fired[name] == nil {
			f.fired[name], f.programs[name] = make(map[string]int), make(map[string]bool)
		}
		f.programs[name][program] = true
		for _, c := range columns {
			f.fired[name][c]++
		}
	}
}

// job is one compilation of the zoo.
type job struct {
	program string
	columns []string
	compile func() (*engine.Compiled, error)
	fired   map[string]int
}

// countFirings compiles the zoo, on all cores.
func countFirings(t *testing.T) *firing {
	jobs := append(modelJobs(t), libraryJobs(t)...)
	work := make(chan *job)
	var workers sync.WaitGroup
	for range runtime.NumCPU() {
		workers.Go(func() {
			for j := range work {
				c, err := j.compile()
				if err != nil {
					t.Errorf("%s %s: %v", j.program, j.columns, err)
					continue
				}
				j.fired = c.Fired
			}
		})
	}
	for _, j := range jobs {
		work <- j
	}
	close(work)
	workers.Wait()
	f := &firing{compiled: make(map[string]int), fired: make(map[string]map[string]int), programs: make(map[string]map[string]bool)}
	for _, j := range jobs {
		f.add(j.program, j.columns, j.fired)
	}
	return f
}

func modelJobs(t *testing.T) (jobs []*job) {
	for _, name := range zooModels {
		m := openOutline(t, name)
		for _, tokens := range []int{1, zooPrompt} {
			step := "decode"
			if tokens > 1 {
				step = "prompt"
			}
			for _, mode := range zooModes {
				for _, to := range zooTargets {
					v := llm.Variant{Batch: 1, Tokens: tokens, Context: zooContext, Numeric: mode.mode}
					desc := parseTarget(t, to)
					jobs = append(jobs, &job{program: name, columns: []string{name, step, mode.name, to}, compile: func() (*engine.Compiled, error) {
						c, err := llm.CompileStep(t.Context(), m, v, 0, desc, traced())
						if err != nil {
							return nil, err
						}
						return c.Compiled, nil
					}})
				}
			}
		}
	}
	return jobs
}

// libraryJobs compiles the graphs of kernelhash.
func libraryJobs(t *testing.T) (jobs []*job) {
	paths, err := filepath.Glob("../kernelhash/testdata/*.uop")
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d graphs: %v", len(paths), err)
	}
	sort.Strings(paths)
	for _, path := range paths {
		for _, to := range zooTargets {
			root, desc := readGraph(t, path), parseTarget(t, to)
			jobs = append(jobs, &job{program: path, columns: []string{"library", to}, compile: func() (*engine.Compiled, error) {
				return engine.Compile(t.Context(), root, desc, traced())
			}})
		}
	}
	return jobs
}

func traced() engine.Config { return engine.Config{Control: &pass.Control{Trace: true}} }

func openOutline(t *testing.T, name string) *llm.Model {
	t.Helper()
	shape, err := synth.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	shape.Layers = min(shape.Layers, zooLayers)
	file, err := synth.Outline(context.Background(), shape)
	if err != nil {
		t.Fatal(err)
	}
	m, err := llm.NewModel(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func parseTarget(t *testing.T, name string) *target.Desc {
	t.Helper()
	desc, err := target.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	return desc
}

func readGraph(t *testing.T, path string) *ir.UOp {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	root, err := ir.Parse(ir.NewArena(), string(text))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return root
}

// column is a short heading of a column.
func column(subject string) string {
	if strings.HasPrefix(subject, "ptx:") || strings.HasPrefix(subject, "llvm:") {
		return strings.TrimPrefix(strings.TrimPrefix(subject, "ptx:"), "llvm:")
	}
	name, _, _ := strings.Cut(subject, "-q")
	name, _, _ = strings.Cut(name, "-f")
	return name
}

func (f *firing) cell(pass, subject string) string {
	if n := f.fired[pass][subject]; n > 0 {
		return fmt.Sprint(n)
	}
	return ""
}
