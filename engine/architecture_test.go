package engine_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"tgc/engine"
	"tgc/ir"
	"tgc/ir/program"
	"tgc/nn"
	"tgc/pass"
	"tgc/render"
	"tgc/schedule"
	"tgc/target"
	"tgc/tensor"
)

var updateDocs = flag.Bool("update-architecture", false, "rewrite the dumps of ARCHITECTURE.md")

// The dumps of ARCHITECTURE.md are what the compiler makes today.
func TestArchitectureDumps(t *testing.T) {
	const path = "../ARCHITECTURE.md"
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := string(raw)
	got := want
	for name, text := range architectureDumps(t) {
		block := regexp.MustCompile("(?s)(<!-- dump " + name + " -->\n```\n)(.*?)(```\n)")
		if !block.MatchString(got) {
			t.Errorf("%s has no block %s", path, name)
			continue
		}
		got = block.ReplaceAllStringFunc(got, func(old string) string {
			parts := block.FindStringSubmatch(old)
			return parts[1] + text + parts[3]
		})
	}
	if got == want {
		return
	}
	if !*updateDocs {
		t.Errorf("%s is out of date: go test ./engine -run Architecture -update-architecture", path)
		return
	}
	if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
		t.Fatal(err)
	}
}

// architectureDumps compiles the step of the page for a CPU and for a GPU.
func architectureDumps(t *testing.T) map[string]string {
	t.Helper()
	onCPU, onGPU := compileStep(t, "llvm:x86-64-v4"), compileStep(t, "ptx:sm_90")
	k := onCPU.Kernels[0]
	var rules strings.Builder
	for _, r := range onCPU.Schedule.Records {
		if r.Applied {
			fmt.Fprintln(&rules, r)
		}
	}
	gpu := onGPU.Kernels[0]
	written := rowsOfProgram(t, onGPU.Target, "write-program")
	return map[string]string{
		"graph":       ir.Text(stepGraph(t)),
		"rules":       rules.String(),
		"kernel":      schedule.KernelText(k.AST),
		"plan":        planText(k),
		"program":     excerpt(program.Print(k.Program), "gridloop"),
		"llvm":        gridBody(renderStep(t, onCPU)),
		"gpu-kernel":  schedule.KernelText(gpu.AST),
		"gpu-plan":    planText(gpu),
		"gpu-written": excerpt(written, "gridloop"),
		"gpu-program": excerpt(program.Print(gpu.Program), "gridloop"),
		"gpu-ptx":     ptxBody(renderStep(t, onGPU)),
	}
}

func planText(k *engine.Kernel) string { return fmt.Sprintf("%s\nplan: %s\n", k.Why, k.Plan) }

// rowsOfProgram is the form of the step's kernel after a pass.
func rowsOfProgram(t *testing.T, desc *target.Desc, name string) string {
	t.Helper()
	var text string
	control := &pass.Control{StopAfter: name, Dump: func(_ pass.Info, _, form string) { text = form }}
	_, err := engine.Compile(t.Context(), stepGraph(t), desc, engine.Config{Control: control})
	if !errors.Is(err, pass.ErrStopped) {
		t.Fatalf("stop after %s: %v", name, err)
	}
	return text
}

// excerpt cuts lines out of a program: from the first line that begins with a
// word on, as many as a reader wants to see.
func excerpt(text, word string) string {
	const most = 28
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, word) {
			lines = lines[i:]
			break
		}
	}
	if len(lines) > most {
		lines = append(lines[:most:most], "..")
	}
	return strings.Join(lines, "\n") + "\n"
}

// ptxBody cuts the instructions around the wait out of PTX.
func ptxBody(source string) string {
	lines := strings.Split(source, "\n")
	const before, after = 16, 24
	for i, line := range lines {
		if strings.Contains(line, "griddepcontrol.wait") {
			return strings.Join(lines[max(i-before, 0):min(i+after, len(lines))], "\n") + "\n..\n"
		}
	}
	return source
}

func renderStep(t *testing.T, c *engine.Compiled) string {
	t.Helper()
	r, err := render.For(c.Target)
	if err != nil {
		t.Fatal(err)
	}
	source, err := r.Source(c.Kernels[0].Program)
	if err != nil {
		t.Fatal(err)
	}
	return source
}

// stepGraph is the step that the page follows.
func stepGraph(t *testing.T) *ir.UOp {
	t.Helper()
	g := tensor.NewGraph()
	x := g.Input("x", ir.F32, 256)
	gamma := g.Input("gamma", ir.F32, 256)
	w := g.Packed("w", "Q8_0", 512, 256)
	residual := g.Input("residual", ir.F32, 512)
	g.Output("y", residual.Add(nn.RMSNorm(x, gamma, 1e-5).Linear(w)))
	sink, err := g.Sink()
	if err != nil {
		t.Fatal(err)
	}
	return sink
}

func compileStep(t *testing.T, to string) *engine.Compiled {
	t.Helper()
	desc, err := target.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	c, err := engine.Compile(t.Context(), stepGraph(t), desc, engine.Config{Explain: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Kernels) != 1 {
		t.Fatalf("%d kernels, want 1:\n%s", len(c.Kernels), c.Schedule)
	}
	return c
}

// gridBody cuts the innermost loop out of an LLVM function: what runs for every
// weight.
func gridBody(source string) string {
	lines := strings.Split(source, "\n")
	const most = 40
	start := 0
	for i, line := range lines {
		if strings.HasPrefix(line, "loop") && strings.HasSuffix(line, ":") {
			start = i
		}
	}
	end := min(start+most, len(lines))
	return strings.Join(lines[start:end], "\n") + "\n...\n"
}
