package ptx

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"tgc/internal/cudatools"
	"tgc/internal/programtest"
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

func gpu(t testing.TB, name string) *target.Desc {
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
		k, err := Render(p, gpu(t, arch), Options{Persistent: seed%2 == 1})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tools.Ptxas(context.Background(), k.Text, arch); err != nil {
			t.Fatalf("seed %d: %s", seed, located(err, k.Text))
		}
	}
}

// One program per case is slow to assemble; all cases are one module each only
// in the emulator's tests. Here every eighth goes to the assembler.
func TestElementwiseAssembles(t *testing.T) {
	tools := assembler(t)
	for i, c := range programtest.Cases() {
		arch := architectures[i%3]
		k, err := Render(c.Program, gpu(t, arch), Options{})
		if err != nil {
			t.Error(err)
			continue
		}
		if i%8 != 0 {
			continue
		}
		if _, err := tools.Ptxas(context.Background(), k.Text, arch); err != nil {
			t.Errorf("%s %s %v: %s", c.Op, c.Result, c.Args, located(err, k.Text))
		}
	}
}
