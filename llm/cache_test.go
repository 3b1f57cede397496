package llm_test

import (
	"slices"
	"strings"
	"testing"

	"tgc/engine"
	"tgc/ir"
	"tgc/llm"
	"tgc/nn"
	"tgc/runtime"
	"tgc/runtime/cuda"
	"tgc/runtime/cuda/emulator"
	"tgc/runtime/interp"
)

// cacheShapes have groups of 32, 8 and 4 elements in a head of the cache, heads that share them, and windows.
var cacheShapes = []string{
	"gemma3:d=64,layers=7,heads=4,kv=2,head=32,ff=96,vocab=512,quant=q8_0",
	"llama:d=96,layers=2,heads=6,kv=3,head=40,ff=96,vocab=512,quant=q8_0",
	"qwen3:d=64,layers=2,heads=5,kv=5,head=36,ff=96,vocab=512,quant=q4_0",
}

// cacheLimits are the NMSE that types of the cache cost these models, at least and at most: a type that is
// another one in truth is found.
var cacheLimits = map[llm.CacheType][2]float64{llm.CacheF16: {1e-9, 1e-6}, llm.CacheQ8: {1e-6, 1e-3}}

// cacheTokens are a prompt for steps of 32, 8 and single tokens.
func cacheTokens() []int32 {
	tokens := make([]int32, 45)
	for i := range tokens {
		tokens[i] = int32(i*i*7+i*13+1) % 512
	}
	return tokens
}

// feedCache is feedModel in exact mode with a type of the cache.
func feedCache(t *testing.T, dev runtime.Device, kv llm.CacheType, model *llm.Model, tokens []int32, together int) [][]float32 {
	t.Helper()
	return feedSession(t, dev, llm.SessionOptions{Context: len(tokens) + 56, Cache: kv}, model, tokens, together)
}

// feedSession has the logits of all tokens in a session with some options.
func feedSession(t *testing.T, dev runtime.Device, options llm.SessionOptions, model *llm.Model, tokens []int32, together int) [][]float32 {
	t.Helper()
	options.All, options.Mode = true, nn.Exact
	session, err := llm.NewSession(t.Context(), model, dev, options)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	var rows [][]float32
	keep := func(logits []float32) error {
		rows = append(rows, slices.Collect(slices.Chunk(slices.Clone(logits), model.Config.Vocabulary))...)
		return nil
	}
	if err := session.Feed(t.Context(), tokens[:together], keep); err != nil {
		t.Fatal(err)
	}
	for _, token := range tokens[together:] {
		if err := session.Feed(t.Context(), []int32{token}, keep); err != nil {
			t.Fatal(err)
		}
	}
	return rows
}

// emulatedGPU runs PTX in the emulator.
func emulatedGPU(t *testing.T) runtime.Device {
	t.Helper()
	driver, err := emulator.New(emulator.Options{MemoryBytes: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	gpu, err := cuda.New(cuda.Options{Driver: driver, CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { gpu.Close() })
	return gpu
}

// Caches of few bytes lose what their numbers do and no more, however the tokens are fed, and kernels
// of all devices agree on what that is.
func TestCacheTypes(t *testing.T) {
	gpu := emulatedGPU(t)
	cpu := openDevice(t, "cpu")
	for _, name := range cacheShapes {
		model := synthModel(t, name)
		exact := feedCache(t, interp.New(interp.Options{}), llm.CacheF32, model, cacheTokens(), 40)
		for kv, limits := range cacheLimits {
			want := feedCache(t, interp.New(interp.Options{}), kv, model, cacheTokens(), 40)
			lost := difference(want, exact)
			if !(lost >= limits[0] && lost <= limits[1]) {
				t.Errorf("%s: %s loses NMSE %.3g, want %g to %g", name, kv, lost, limits[0], limits[1])
			}
			for _, c := range []struct {
				how      string
				dev      runtime.Device
				together int
			}{{"one by one", interp.New(interp.Options{}), 1}, {"CPU", cpu, 40}, {"CPU, one by one", cpu, 1}, {"PTX", gpu, 40}} {
				// A sum that differs in its last bit may round to another number.
				if v := difference(feedCache(t, c.dev, kv, model, cacheTokens(), c.together), want); !(v <= lost/10) {
					t.Errorf("%s, %s, %s: NMSE %.3g to the interpreter, and %.3g are lost", name, kv, c.how, v, lost)
				}
			}
		}
	}
}

// nativePart is how much of what llama.cpp's 8-bit kernels lose on a model a type of the cache may lose.
var nativePart = map[llm.CacheType]float64{llm.CacheF16: 0.001, llm.CacheQ8: 0.5}

// Caches of few bytes lose less than llama.cpp's 8-bit kernels do.
func TestCachesOnOracle(t *testing.T) {
	dev := openDevice(t, "cpu")
	for _, name := range presentModels(t, append(smallModels, modeModels...)...) {
		want := loadAnswers(t, name)
		model, err := llm.Open(modelPath(t, name))
		if err != nil {
			t.Fatal(err)
		}
		defer model.Close()
		native := 0.
		for _, e := range want.Native {
			native = max(native, e.Prompt, e.Decode)
		}
		tokens := append(slices.Clone(want.PromptTokens), want.Greedy.Tokens...)
		for kv, limits := range cacheLimits {
			e := errorOf(feedCache(t, dev, kv, model, tokens, len(want.PromptTokens)), want)
			t.Logf("%-32s %-4s full %.2e probes %.2e of %.2e", name, kv, e.full.value(), e.probes.value(), native)
			most := limits[1]
			if native > 0 {
				most = nativePart[kv] * native
			}
			if got := e.probes.value(); !(got <= most) {
				t.Errorf("%s, %s: NMSE %.3g over probes, want at most %.3g", name, kv, got, most)
			}
		}
	}
}

// A cache of a type takes the bytes that the type says.
func TestCacheBytes(t *testing.T) {
	model := synthModel(t, cacheShapes[0])
	bytes := func(kv llm.CacheType) (total int64) {
		g, err := llm.BuildStep(model.Config, model.File, llm.Variant{Batch: 1, Tokens: 1, Context: 64, Cache: kv})
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range g.Buffers() {
			if !strings.HasPrefix(b.Name, "cache.") {
				continue
			}
			n := int64(b.DType.Size())
			for _, dim := range b.Shape {
				extent, _ := dim.Int()
				n *= extent
			}
			total += n
		}
		return total
	}
	numbers := int64(7 * 2 * 2 * 64 * 32) // layers, keys and values, heads, rows, elements
	for kv, want := range map[llm.CacheType]int64{llm.CacheF32: 4 * numbers, llm.CacheF16: 2 * numbers, llm.CacheQ8: numbers + numbers/32*2} {
		if got := bytes(kv); got != want {
			t.Errorf("%s: %d bytes, want %d", kv, got, want)
		}
	}
}

// Names of types are those of the command line, and back.
func TestCacheTypeNames(t *testing.T) {
	for _, name := range llm.CacheTypes() {
		if kv, err := llm.ParseCacheType(name); err != nil || kv.String() != name {
			t.Errorf("%s is %v, %v", name, kv, err)
		}
	}
	if _, err := llm.ParseCacheType("q4_0"); err == nil {
		t.Error("q4_0 is a type")
	}
}

// Numbers of few bytes are read as they lie in the cache by the kernel that attends, a few at a time, where what it reads is
// read again for few queries: no kernel converts them before. Integers take one launch more a layer, which rounds the
// new rows: attention waits for it, and rounds none of them itself.
func TestCachesAreReadAsTheyLie(t *testing.T) {
	m := shortOutline(t, "llama3.2:1b-q6_k")
	for _, c := range []struct {
		target string
		rows   int
	}{{"ptx:sm_90", 8192}, {"ptx:sm_90", 256}, {"ptx:sm_87", 1024}, {"llvm:x86-64-v4", 2048}} {
		whole := 4 * int64(c.rows*m.Config.KVHeads*m.Config.HeadSize)
		launches := make(map[llm.CacheType]int)
		for _, kv := range []llm.CacheType{llm.CacheF32, llm.CacheF16, llm.CacheQ8} {
			step, err := llm.CompileStep(t.Context(), m, llm.Variant{Batch: 1, Tokens: 1, Context: c.rows, Cache: kv}, 64, mustTarget(t, c.target), engine.Config{})
			if err != nil {
				t.Fatal(err)
			}
			launches[kv] = len(step.Compiled.Launches)
			if bytes := step.Compiled.Schedule.ArenaBytes; bytes >= whole {
				t.Errorf("%s, %d rows of %s: %d bytes of temporaries, keys of a layer as f32 are %d", c.target, c.rows, kv, bytes, whole)
			}
			attending := 0
			for _, k := range step.Compiled.Kernels {
				parts := k.Parts
				if len(parts) == 0 {
					parts = []*engine.Kernel{k}
				}
				for _, part := range parts {
					if !readsNarrow(part, kv) || !strings.Contains(part.Why, "threads a point") {
						continue
					}
					if attending++; !strings.Contains(part.Plan.String(), "VECTOR r1 8") {
						t.Errorf("%s, %d rows of %s: %s has no lanes along a row: %s", c.target, c.rows, kv, part.Name, part.Plan)
					}
				}
			}
			if onGPU := strings.HasPrefix(c.target, "ptx:"); onGPU && kv != llm.CacheF32 && attending == 0 {
				t.Errorf("%s, %d rows of %s: no kernel attends to the cache", c.target, c.rows, kv)
			}
		}
		if launches[llm.CacheF16] != launches[llm.CacheF32] || launches[llm.CacheQ8] > launches[llm.CacheF32]+m.Config.Layers {
			t.Errorf("%s, %d rows: launches %v, want as many for f16 as for f32, and at most %d more for q8_0", c.target, c.rows, launches, m.Config.Layers)
		}
	}
}

// A CPU, whose lanes are the queries of a prompt, converts each number once for all of them; threads of a
// GPU convert for themselves.
func TestCachesOfPromptsAreConvertedOnce(t *testing.T) {
	m := shortOutline(t, "llama3.2:1b-q6_k")
	const rows = 2048
	whole := 4 * int64(rows*m.Config.KVHeads*m.Config.HeadSize)
	for target, once := range map[string]bool{"llvm:x86-64-v4": true, "ptx:sm_90": false} {
		for _, kv := range []llm.CacheType{llm.CacheF16, llm.CacheQ8} {
			v := llm.Variant{Batch: 1, Tokens: 32, Context: rows, Cache: kv, Numeric: nn.Int8}
			step, err := llm.CompileStep(t.Context(), m, v, 64, mustTarget(t, target), engine.Config{})
			if err != nil {
				t.Fatal(err)
			}
			if bytes := step.Compiled.Schedule.ArenaBytes; (bytes >= 2*whole) != once {
				t.Errorf("%s, %s: %d bytes of temporaries, keys and values of a layer as f32 are %d", target, kv, bytes, 2*whole)
			}
		}
	}
}

// readsNarrow reports a kernel that reads elements of the type that a cache has.
func readsNarrow(k *engine.Kernel, kv llm.CacheType) bool {
	element := map[llm.CacheType]ir.DType{llm.CacheF16: ir.F16, llm.CacheQ8: ir.I8}[kv]
	return slices.ContainsFunc(ir.Toposort(k.AST), func(u *ir.UOp) bool { return u.Op == ir.OpLoad && u.DType == element })
}
