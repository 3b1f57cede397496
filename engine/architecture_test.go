package engine_test

import (
	"context"
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
	"tgc/render/llvm"
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

func architectureDumps(t *testing.T) map[string]string {
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
	desc, err := target.Parse("llvm:x86-64-v4")
	if err != nil {
		t.Fatal(err)
	}
	c, err := engine.Compile(context.Background(), sink, desc, engine.Config{Explain: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Kernels) != 1 {
		t.Fatalf("%d kernels, want 1:\n%s", len(c.Kernels), c.Schedule)
	}
	k := c.Kernels[0]
	source, _, err := llvm.Render(k.Program, desc)
	if err != nil {
		t.Fatal(err)
	}
	var rules strings.Builder
	for _, r := range c.Schedule.Records {
		if r.Applied {
			fmt.Fprintln(&rules, r)
		}
	}
	return map[string]string{
		"graph":   ir.Text(sink),
		"rules":   rules.String(),
		"kernel":  schedule.KernelText(k.AST),
		"plan":    fmt.Sprintf("%s\nplan: %s\n", k.Why, k.Plan),
		"program": program.Print(k.Program),
		"llvm":    gridBody(source),
	}
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
