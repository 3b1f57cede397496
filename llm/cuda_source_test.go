package llm_test

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tgc/engine"
	"tgc/internal/nvrtc"
	"tgc/ir/program"
	"tgc/llm"
	"tgc/llm/synth"
	"tgc/render/cuda"
	"tgc/render/gpu"
	"tgc/render/gpu/gputest"
	"tgc/render/ptx"
	"tgc/target"
)

var zoo = flag.Bool("zoo", false, "take all shapes to every architecture: kernels for an Orin, and as CUDA C")

// Every kernel of every model, decoding and reading a prompt, compiles as CUDA C;
// its first block, run on the PTX interpreter, gives the bits of render/ptx's.
func TestStepsAsCUDA(t *testing.T) {
	c, err := nvrtc.FromEnvironment()
	if errors.Is(err, nvrtc.ErrNotFound) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	archs := []string{"sm_90", "sm_87"}
	if !*zoo {
		archs = archs[:1]
	}
	for _, arch := range archs {
		for _, shape := range synth.Shapes() {
			if !*zoo && (shape.Name != "tiny" || testing.Short()) {
				continue
			}
			t.Run(arch+" "+shape.Name, func(t *testing.T) {
				m := openOutline(t, shape.Name)
				for _, tokens := range []int{1, 32} {
					stepAsCUDA(t, c, arch, m, tokens)
				}
			})
		}
	}
}

func stepAsCUDA(t *testing.T, c *nvrtc.Library, arch string, m *llm.Model, tokens int) {
	t.Helper()
	desc := mustTarget(t, "cuda:"+arch)
	v := llm.Variant{Batch: 1, Tokens: tokens, Context: 256}
	step, err := llm.CompileStep(t.Context(), m, v, 0, desc, engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[*program.Program]bool)
	for _, k := range step.Compiled.Kernels {
		if seen[k.Program] {
			continue
		}
		seen[k.Program] = true
		t.Run(fmt.Sprintf("%d tokens %s", tokens, k.Name), func(t *testing.T) { kernelAsCUDA(t, c, k.Program, desc, arch) })
	}
}

// mostBytes bounds the buffers of a kernel that is run.
const mostBytes = 4 << 20

func kernelAsCUDA(t *testing.T, c *nvrtc.Library, p *program.Program, desc *target.Desc, arch string) {
	t.Helper()
	k, err := cuda.Render(p, desc, gpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := c.Compile(k.Text, arch)
	if err != nil {
		t.Fatal(err)
	}
	bytes := int64(0)
	vars := make(map[string]int64)
	for i := range p.Params {
		bytes += p.Params[i].Bytes
		vars[p.Params[i].Name] = 1
	}
	if bytes > mostBytes {
		return
	}
	reference, err := ptx.Render(p, desc, gpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := gputest.Fill(p, rand.New(rand.NewPCG(1, 1)))
	got := gputest.Fill(p, rand.New(rand.NewPCG(1, 1)))
	if err := gputest.Run(p, gputest.FirstBlocks(reference, 1), reference.Text, want, vars, 1); err != nil {
		t.Fatalf("PTX: %v", err)
	}
	if err := gputest.Run(p, gputest.FirstBlocks(k, 1), text, got, vars, 1); err != nil {
		t.Fatalf("CUDA C: %v", err)
	}
	for slot := range want {
		if !cmp.Equal(want[slot], got[slot]) {
			t.Errorf("buffer %d differs", slot)
		}
	}
}
