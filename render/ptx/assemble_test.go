package ptx

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"tgc/internal/cudatools"
	"tgc/internal/programtest"
	"tgc/ir"
	"tgc/ir/program/opt"
	"tgc/target"
)

// assembler returns ptxas, or skips.
func assembler(t *testing.T) cudatools.Tools {
	t.Helper()
	tools := cudatools.FromEnvironment()
	if tools.PtxasPath == "" {
		t.Skip("no ptxas: set TGC_CUDA_PATH")
	}
	return tools
}

func describe(t testing.TB, name string) *target.Desc {
	t.Helper()
	d, err := target.Parse("ptx:" + name)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// located is an assembler's error with the lines that it names.
func located(err error, text string) string {
	out := err.Error()
	lines := strings.Split(text, "\n")
	for _, m := range regexp.MustCompile(`line (\d+)`).FindAllStringSubmatch(out, -1) {
		if n, err := strconv.Atoi(m[1]); err == nil && n >= 1 && n <= len(lines) {
			out += "\n" + m[0] + ": " + lines[n-1]
		}
	}
	return out
}

// architectures for which everything must assemble.
var architectures = []string{"sm_75", "sm_87", "sm_90"}

// Random programs assemble.
func TestRandomProgramsAssemble(t *testing.T) {
	tools := assembler(t)
	for seed := range uint64(12) {
		p, _ := programtest.Generate(seed, 40)
		arch := architectures[seed%3]
		desc := describe(t, arch)
		k, err := Render(opt.Expand(p, desc), desc, Options{Persistent: seed%2 == 1})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tools.Ptxas(context.Background(), k.Text, arch); err != nil {
			t.Fatalf("seed %d: %s", seed, located(err, k.Text))
		}
	}
}

// Every elementwise case assembles for every architecture: one module of all.
func TestElementwiseAssembles(t *testing.T) {
	tools := assembler(t)
	for _, arch := range architectures {
		var module strings.Builder
		for i, c := range programtest.Cases() {
			p := *c.Program
			p.Name = fmt.Sprintf("case_%d_%s", i, p.Name)
			desc := describe(t, arch)
			k, err := Render(opt.Expand(&p, desc), desc, Options{})
			if err != nil {
				t.Fatal(err)
			}
			header, entry, _ := strings.Cut(k.Text, ".visible")
			if i == 0 {
				module.WriteString(header)
			}
			module.WriteString(".visible" + entry)
		}
		if _, err := tools.Ptxas(context.Background(), module.String(), arch); err != nil {
			t.Error(located(err, module.String()))
		}
	}
}

// Approximations stand where the target asks for them.
func TestApproxMath(t *testing.T) {
	for op, want := range approximations {
		p := programtest.Elementwise(op, ir.F32, ir.F32)
		for _, approx := range []bool{false, true} {
			desc := *describe(t, "sm_75")
			desc.ApproxMath = approx
			k, err := Render(opt.Expand(p, &desc), &desc, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(k.Text, want+".f32") != approx {
				t.Errorf("%s: %t", want, approx)
			}
			if !approx || cudatools.FromEnvironment().PtxasPath == "" {
				continue
			}
			if _, err := assembler(t).Ptxas(context.Background(), k.Text, "sm_75"); err != nil {
				t.Error(located(err, k.Text))
			}
		}
	}
}
