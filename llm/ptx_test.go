package llm_test

import (
	"fmt"
	"sync"
	"testing"

	"tgc/engine"
	"tgc/internal/cudatools"
	"tgc/ir/program"
	"tgc/llm"
	"tgc/llm/synth"
	"tgc/render/ptx"
)

// gpuSteps are the steps that are compiled for each shape on an architecture: a token and
// prompts of as many tokens as plans tell apart, over a whole cache or little of it.
var gpuSteps = []struct {
	arch     string
	tokens   int
	short    bool // rows of the cache: those of the prompt and some more
	assemble bool // ptxas takes its kernels, too
}{
	{arch: "sm_90", tokens: 1, assemble: true},
	{arch: "sm_90", tokens: 16, short: true},
	{arch: "sm_90", tokens: 128, assemble: true},
	{arch: "sm_90", tokens: 512, short: true},
	{arch: "sm_87", tokens: 1, assemble: true},
	{arch: "sm_87", tokens: 128, assemble: true},
}

// Every kernel of every model, decoding and reading a prompt, lowers for Hopper and for a
// Jetson Orin with the plan that a heuristic chose, and assembles where ptxas is present.
// Registers spilled are logged. Every shape takes turns: the Orin has every second one, and
// ptxas those of the Orin and the others for Hopper; -zoo takes all.
func TestStepsLowerForGPU(t *testing.T) {
	a := &assembler{tools: cudatools.FromEnvironment(), seen: make(map[string]bool)}
	for i, shape := range synth.Shapes() {
		for _, step := range gpuSteps {
			onOrin, turn := step.arch == "sm_87", i%2 == 1
			if onOrin && !*zoo && (!turn || testing.Short()) {
				continue
			}
			t.Run(fmt.Sprintf("%s %s %d tokens", step.arch, shape.Name, step.tokens), func(t *testing.T) {
				t.Parallel()
				m := outlineOf(t, fewerLayers(shape))
				v := llm.Variant{Batch: 1, Tokens: step.tokens, Context: m.Config.Context}
				depth := 0
				if step.short {
					v.Context, v.Cache, depth = min(step.tokens+128, m.Config.Context), llm.CacheF16, 64
				}
				kernels := lowerStep(t, step.arch, m, v, depth)
				if step.assemble && (*zoo || onOrin == turn) && a.tools.PtxasPath != "" {
					a.assemble(t, step.arch, kernels)
				}
			})
		}
	}
}

// fewerLayers cuts a shape to as many layers as have the kernels of all: a mixture gives
// some layers wider types, and among eight any two kinds are neighbours.
func fewerLayers(s synth.Shape) synth.Shape {
	s.Layers = min(s.Layers, 8)
	return s
}

// lowerStep compiles a step with all verifiers, and wants every plan to be legal.
func lowerStep(t *testing.T, arch string, m *llm.Model, v llm.Variant, depth int) []*engine.Kernel {
	t.Helper()
	step, err := llm.CompileStep(t.Context(), m, v, depth, mustTarget(t, "ptx:"+arch), engine.Config{Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range step.Compiled.Kernels {
		if err := program.VerifyGPU(k.Program); err != nil {
			t.Error(err)
		}
		t.Logf("%s: grid %v block %v: %s | %s", k.Name, k.Program.Grid, k.Program.Block, k.Plan, k.Why)
		for _, r := range k.Records {
			if r.Reason == "illegal" || r.Reason == "refused" {
				t.Errorf("kernel %s: %s", k.Name, r)
			}
		}
	}
	return step.Compiled.Kernels
}

// assembler assembles kernels, equal ones once.
type assembler struct {
	tools cudatools.Tools
	mu    sync.Mutex
	seen  map[string]bool // texts, which name their architecture
}

func (a *assembler) isNew(text string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	old := a.seen[text]
	a.seen[text] = true
	return !old
}

func (a *assembler) assemble(t *testing.T, arch string, kernels []*engine.Kernel) {
	t.Helper()
	desc := mustTarget(t, "ptx:"+arch)
	for _, k := range kernels {
		rendered, err := ptx.Render(k.Program, desc, ptx.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if !a.isNew(rendered.Text) {
			continue
		}
		made, err := a.tools.Ptxas(t.Context(), rendered.Text, arch)
		if err != nil {
			t.Fatalf("%s: %v", k.Name, err)
		}
		if made.SpillStores+made.SpillLoads > 0 {
			t.Logf("%s: %d bytes stored and %d loaded by spills", k.Name, made.SpillStores, made.SpillLoads)
		}
	}
}
