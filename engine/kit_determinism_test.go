package engine_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"tgc/engine"
	"tgc/internal/testkit"
	"tgc/ir"
	"tgc/ir/program"
	"tgc/render/llvm"
	"tgc/target"
)

// form is the text of one pipeline form.
type form struct{ name, text string }

// forms lists the texts of everything a compilation makes, first form first.
func forms(c *engine.Compiled) ([]form, error) {
	var kernels, plans, programs, calls strings.Builder
	for _, k := range c.Kernels {
		fmt.Fprintf(&kernels, "%s\n%s", k.Name, ir.Text(k.AST))
		fmt.Fprintf(&plans, "%s: %s (%s)\n%v\n", k.Name, k.Plan, k.Why, k.Records)
		programs.WriteString(program.Print(k.Program))
	}
	for _, launch := range c.Launches {
		for _, call := range launch {
			fmt.Fprintf(&calls, "%s%v ", call.Kernel.Name, call.Args)
		}
		calls.WriteString("\n")
	}
	list := []form{
		{"schedule", c.Schedule.String()},
		{"buffers", fmt.Sprint(describeBuffers(c))},
		{"decisions", fmt.Sprint(c.Schedule.Records)},
		{"kernels", kernels.String()}, {"plans", plans.String()},
		{"calls", calls.String()}, {"programs", programs.String()},
	}
	if c.Target.Kind != target.CPU {
		return list, nil
	}
	var source strings.Builder
	for _, k := range c.Kernels {
		text, _, err := llvm.Render(k.Program, c.Target)
		if err != nil {
			return nil, err
		}
		source.WriteString(text)
	}
	return append(list, form{"source", source.String()}), nil
}

func describeBuffers(c *engine.Compiled) []string {
	var out []string
	for _, b := range c.Schedule.Buffers {
		out = append(out, fmt.Sprintf("%d %s %q %d@%d", b.UserID, b.DType, b.Format, b.Bytes, b.Offset))
	}
	return out
}

// Compiling the same graph, built anew, gives the same text of every form,
// whatever runs beside it and on however many processors.
func TestKitDeterminism(t *testing.T) {
	desc, err := target.Parse("llvm:x86-64-v3")
	if err != nil {
		t.Fatal(err)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, entry := range testkit.Zoo() {
		t.Run(entry.Name, func(t *testing.T) {
			var first []form
			for _, procs := range []int{1, 4} {
				runtime.GOMAXPROCS(procs)
				for _, got := range compileMany(t, entry, desc, 10) {
					if first == nil {
						first = got
					}
					for i := range first {
						if got[i] != first[i] {
							t.Fatalf("the first form that differs is %s:\n%s", first[i].name, firstDifference(first[i].text, got[i].text))
						}
					}
				}
			}
		})
	}
}

// compileMany compiles n copies of a graph at the same time.
func compileMany(t *testing.T, entry testkit.ZooEntry, desc *target.Desc, n int) [][]form {
	out := make([][]form, n)
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			c, err := entry.Build(1)
			if err != nil {
				errs[i] = err
				return
			}
			compiled, err := c.Compile(t.Context(), desc, checked())
			if err != nil {
				errs[i] = err
				return
			}
			out[i], errs[i] = forms(compiled)
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// firstDifference is the first line in which two texts differ.
func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Sprintf("line %d\n- %s\n+ %s", i+1, x[i], y[i])
		}
	}
	return fmt.Sprintf("%d and %d lines", len(x), len(y))
}
