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
	if rows := gpu.Target().Tuning.ShortCache; rows <= 0 || rows >= 300 {
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
	m := shortOutline(t, "gpt-oss:d=256,layers=2,heads=16,kv=4,head=64,ff=256,experts=4,used=2,window=128,vocab=266,tied=0,quant=mxfp4_moe")
	step, err := llm.CompileStep(t.Context(), m, llm.Variant{Batch: 1, Tokens: 1, Context: 2048}, 64, mustTarget(t, "ptx:sm_90a"), engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	window := 4 * int64(m.Config.KVHeads*m.Config.HeadSize*128)
	if bytes := step.Compiled.Schedule.ArenaBytes; bytes >= window {
		t.Errorf("%d bytes of temporaries, keys of a window are %d", bytes, window)
	}
	for _, k := range step.Compiled.Kernels {
		if strings.HasPrefix(k.Name, "map_4_n") {
			t.Errorf("%s stores rows of the cache", k.Name)
		}
	}
}
