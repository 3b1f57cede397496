package llm_test

import (
	"strings"
	"testing"

	"tgc/engine"
	"tgc/llm"
	"tgc/runtime/interp"
	"tgc/target"
)

// windowed are models of which some layers see a window of a cache: one that steps of one token gather
// rows of, and one that is longer than the first rows of a long cache, for which such steps are compiled.
var windowed = []struct {
	shape    string
	context  int
	together int // tokens fed at once
}{
	{"gemma3:d=64,layers=2,heads=4,kv=1,head=32,ff=64,vocab=266,window=12,quant=q8_0", 64, 1},
	{"gemma3:d=64,layers=2,heads=4,kv=1,head=32,ff=64,vocab=266,window=12,quant=q8_0", 64, 33},
	{"gemma3:d=64,layers=2,heads=4,kv=1,head=32,ff=64,vocab=266,window=300,quant=q8_0", 700, 1},
	{"gpt-oss:d=64,layers=2,heads=4,kv=2,head=32,ff=64,experts=4,used=2,window=6,vocab=266,tied=0,quant=mxfp4_moe", 64, 1},
	{"gpt-oss:d=64,layers=2,heads=4,kv=2,head=32,ff=64,experts=4,used=2,window=6,vocab=266,tied=0,quant=mxfp4_moe", 64, 33},
}

// Windows on a GPU are those of the interpreter, wherever a step's rows end.
func TestWindows(t *testing.T) {
	gpu := emulatedGPU(t)
	if rows := gpu.Target().Tuning.ShortCaches; len(rows) == 0 || rows[0] >= 300 {
		t.Fatalf("steps over the first %d rows, want fewer than the window", rows)
	}
	tokens := make([]int32, 36)
	for i := range tokens {
		tokens[i] = int32(7*i%250 + 5)
	}
	for _, c := range windowed {
		model := synthModel(t, c.shape)
		list := tokens[:min(len(tokens), c.together+15)]
		want := feedSession(t, interp.New(interp.Options{Target: target.Interp()}), llm.SessionOptions{Context: c.context}, model, list, c.together)
		if v := difference(feedSession(t, gpu, llm.SessionOptions{Context: c.context}, model, list, c.together), want); !(v <= 1e-9) {
			t.Errorf("%s, a cache of %d rows, %d tokens at once: NMSE %.3g to the interpreter", c.shape, c.context, c.together, v)
		}
	}
}

// A step of one token reads the rows of a window where they lie in the cache: none of its kernels stores rows of them.
func TestWindowsAreReadAsTheyLie(t *testing.T) {
	m := shortOutline(t, "gpt-oss:d=2880,layers=4,heads=64,kv=8,head=64,ff=2880,experts=4,used=2,window=128,vocab=266,tied=0,quant=mxfp4_moe")
	step, err := llm.CompileStep(t.Context(), m, llm.Variant{Batch: 1, Tokens: 1, Context: 768}, 64, mustTarget(t, "ptx:sm_90a"), engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range step.Compiled.Kernels {
		for _, part := range append(k.Parts, k) {
			if strings.HasPrefix(part.Name, "map_8_n") {
				t.Errorf("%s of %s stores rows of the cache", part.Name, k.Name)
			}
		}
	}
}
