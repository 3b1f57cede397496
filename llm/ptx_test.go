package llm_test

import (
	"fmt"
	"testing"

	"tgc/engine"
	"tgc/internal/cudatools"
	"tgc/ir"
	"tgc/llm"
	"tgc/llm/synth"
	"tgc/render/ptx"
)

// Every kernel of every model, decoding and reading a prompt, assembles for a
// Jetson Orin and for Hopper. Registers spilled are logged.
func TestStepsAssemble(t *testing.T) {
	tools := cudatools.FromEnvironment()
	if tools.PtxasPath == "" {
		t.Skip("no ptxas (Debian: nvidia-cuda-toolkit; TGC_CUDA_PATH names its root)")
	}
	archs := []string{"sm_87", "sm_90"}
	if testing.Short() {
		archs = archs[1:]
	}
	for _, arch := range archs {
		for _, shape := range synth.Shapes() {
			t.Run(arch+" "+shape.Name, func(t *testing.T) {
				t.Parallel()
				m := openOutline(t, shape.Name)
				for _, tokens := range []int{1, 128} {
					assembleStep(t, tools, arch, m, tokens)
				}
			})
		}
	}
}

func assembleStep(t *testing.T, tools cudatools.Tools, arch string, m *llm.Model, tokens int) {
	t.Helper()
	desc := mustTarget(t, "ptx:"+arch)
	v := llm.Variant{Batch: 1, Tokens: tokens, Context: m.Config.Context, Cache: ir.F32}
	step, err := llm.CompileStep(t.Context(), m, v, 0, desc, engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range step.Compiled.Kernels {
		rendered, err := ptx.Render(k.Program, desc, ptx.Options{})
		if err != nil {
			t.Fatal(err)
		}
		what := fmt.Sprintf("%s at %d tokens: %s", arch, tokens, k.Name)
		made, err := tools.Ptxas(t.Context(), rendered.Text, arch)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if made.SpillStores+made.SpillLoads > 0 {
			t.Logf("%s: %d bytes stored and %d loaded by spills", what, made.SpillStores, made.SpillLoads)
		}
	}
}
