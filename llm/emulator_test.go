package llm_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tgc/engine"
	"tgc/gguf"
	"tgc/heuristic"
	"tgc/llm"
	"tgc/llm/synth"
	"tgc/nn"
	"tgc/runtime"
	"tgc/runtime/cuda"
	"tgc/runtime/cuda/emulator"
	"tgc/runtime/interp"
)

// Models on the emulated GPU: generated PTX, graphs and early launches, with the
// emulator's checks. A step of a small model takes it a second.

// emulateAll asks for what takes an hour.
var emulateAll = flag.Bool("emulate.all", false, "run every oracle model on the emulated GPU, some tokens and all tokens")

// emulatedModels are models of each architecture.
var emulatedModels = []string{
	"small-gpt2-f16", "small-llama-q4_k_m", "small-olmoe-q4_0", "small-qwen2-q5_0", "small-qwen3-q8_0",
	"llama-bf16", "llama-iq4_nl", "llama-wide-heads-q5_0",
	"qwen2-bias-tied-q4_0", "qwen2-bias-q5_k_m", "qwen3-tied-q8_0",
	"olmoe-q8_0", "olmoe-q4_k_m",
}

// emulatedPrompts are prompts of other than a few tokens: these are fed as 32, and a
// mixture's are grouped by expert.
var emulatedPrompts = map[string]int{"olmoe-q4_k_m": 9}

// Models of each architecture give the logits and the greedy tokens of the
// float64 model.
func TestModelsEmulated(t *testing.T) {
	models := presentModels(t, emulatedModels...)
	if *emulateAll {
		models = oracleModels(t)
	}
	for _, name := range models {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, err := gguf.Open(modelPath(t, name))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			prompt := max(emulatedPrompts[name], 6)
			compareWithReference(t, openDevice(t, "cuda:emu"), f, generation{prompt: prompt, tokens: 3, nmse: gpuLimits.nmse})
		})
	}
	for i, typ := range []gguf.Type{gguf.F16, gguf.Q8_0, gguf.Q4_0} {
		t.Run("gpt2-"+typ.String(), func(t *testing.T) {
			t.Parallel()
			f := gpt2File(t, typ, uint64(i))
			defer f.Close()
			compareWithReference(t, openDevice(t, "cuda:emu"), f, generation{prompt: 6, split: 2, tokens: 3, nmse: gpuLimits.nmse})
		})
	}
}

// synthetic is a small model of a shape, in memory.
func synthetic(t *testing.T, name string) *gguf.File {
	t.Helper()
	shape, err := synth.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	f, err := synth.Memory(t.Context(), shape, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// Models of sizes that plans of a GPU treat apart: heads of 100, rows that no warp divides, heads
// that are not the width over their number.
func TestOddSizesEmulated(t *testing.T) {
	for _, name := range []string{
		"llama:d=800,layers=1,heads=8,kv=2,head=100,ff=352,vocab=701,quant=q8_0,pure=1",
		"llama:d=736,layers=1,heads=23,kv=1,head=32,ff=240,vocab=701,quant=f16,pure=1",
		"qwen2:d=160,layers=1,heads=4,kv=2,head=96,ff=224,vocab=301,quant=q8_0",
		"olmoe:d=192,layers=1,heads=2,head=64,ff=64,vocab=301,quant=q8_0,experts=3,used=2",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compareWithReference(t, openDevice(t, "cuda:emu"), synthetic(t, name), generation{prompt: 3, tokens: 2, nmse: gpuLimits.nmse})
		})
	}
}

// A prompt whose products are so many for a small GPU that its activations are scaled terms of f16: norms, rotated
// queries and residuals around them are those of the reference.
func TestScaledPromptEmulated(t *testing.T) {
	for _, quant := range []string{"q4_k_m", "f16"} {
		t.Run(quant, func(t *testing.T) {
			t.Parallel()
			scaledPromptEmulated(t, synthetic(t, "qwen2:d=1024,layers=1,heads=8,kv=8,ff=2048,vocab=301,quant="+quant))
		})
	}
}

func scaledPromptEmulated(t *testing.T, f *gguf.File) {
	t.Helper()
	model, err := llm.NewModel(f)
	if err != nil {
		t.Fatal(err)
	}
	v := llm.Variant{Batch: 1, Tokens: 64, Context: 80, All: true}
	step, err := llm.CompileStep(t.Context(), model, v, 0, mustTarget(t, "ptx:sm_87"), engine.Config{Explain: true})
	if err != nil {
		t.Fatal(err)
	}
	var why strings.Builder
	if err := step.Compiled.Explain(&why); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(why.String(), "terms of f16"); n < 6 {
		t.Errorf("%d products of scaled terms, want those of queries, keys, values, gate, up and down", n)
	}
	compareWithReference(t, openDevice(t, "cuda:emu:sm_87"), f, generation{prompt: 64, tokens: 1, context: 80, nmse: gpuLimits.nmse})
}

// Attention over caches so long that blocks share their rows, most of which have none yet.
func TestClustersEmulated(t *testing.T) {
	for _, name := range []string{
		"qwen3:d=128,layers=1,heads=4,kv=2,head=128,ff=96,vocab=301,quant=q8_0,pure=1",
		"llama:d=192,layers=1,heads=3,kv=1,head=64,ff=96,vocab=301,quant=q8_0,pure=1",
		"llama:d=320,layers=1,heads=4,kv=2,head=80,ff=96,vocab=301,quant=q8_0,pure=1",
		"qwen2:d=192,layers=1,heads=2,kv=1,head=96,ff=96,vocab=301,quant=q8_0,pure=1",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compareWithReference(t, openDevice(t, "cuda:emu"), synthetic(t, name), generation{prompt: 69, tokens: 3, context: 587, nmse: gpuLimits.nmse})
		})
	}
}

// Models of types whose indices into a codebook lie two side by side, or the fields of several
// weights in a byte, give the logits of the interpreter.
func TestSideBySideEmulated(t *testing.T) {
	for _, c := range []struct {
		quant string
		mode  nn.Numeric
	}{{"iq3_s", nn.Exact}, {"iq2_s", nn.Exact}, {"q2_0", nn.Exact}, {"q2_0", nn.Int8}, {"q1_0", nn.Exact}, {"q1_0", nn.Int8}} {
		t.Run(c.quant+" "+c.mode.String(), func(t *testing.T) {
			t.Parallel()
			f := synthetic(t, "llama:d=256,layers=1,heads=4,kv=2,head=64,ff=768,vocab=907,pure=1,quant="+c.quant)
			model, err := llm.NewModel(f)
			if err != nil {
				t.Fatal(err)
			}
			gpu := openDevice(t, "cuda:emu")
			var rows [2][][]float32
			for i, dev := range []runtime.Device{interp.New(interp.Options{Target: gpu.Target()}), gpu} {
				session, err := llm.NewSession(t.Context(), model, dev, llm.SessionOptions{Context: 8, Mode: c.mode})
				if err != nil {
					t.Fatal(err)
				}
				defer session.Close()
				rows[i] = feedEach(t, session, 1, 77, 500)
			}
			for p, row := range rows[1] {
				var sum nmse
				for i, x := range rows[0][p] {
					sum.point(float64(row[i]), float64(x))
				}
				if !(sum.value() <= gpuLimits.nmse) {
					t.Errorf("NMSE %.3g at position %d, want at most %g", sum.value(), p, gpuLimits.nmse)
				}
			}
		})
	}
}

// Models of odd shapes, expert mixtures among them. TGC_MODEL_SEEDS asks for more of
// them.
func TestRandomModelsEmulated(t *testing.T) {
	seeds := 8
	if n, err := strconv.Atoi(os.Getenv("TGC_MODEL_SEEDS")); err == nil {
		seeds = n
	}
	for seed := range uint64(seeds) {
		m := &randomModel{t: t, r: rand.New(rand.NewPCG(seed, 1)), w: gguf.NewWriter(), seed: seed}
		f := m.file()
		t.Run(fmt.Sprintf("%d %s", seed, m.text), func(t *testing.T) {
			t.Parallel()
			defer f.Close()
			compareWithReference(t, openDevice(t, "cuda:emu"), f, generation{prompt: 3, tokens: 3, nmse: gpuLimits.nmse})
		})
	}
}

// An oracle model with its recorded answers: the prompt and some tokens; all
// models with all tokens where that is asked for.
func TestOracleModelsEmulated(t *testing.T) {
	models, steps := presentModels(t, "small-qwen3-q8_0", "llama-bf16"), 3
	if *emulateAll {
		models = oracleModels(t)
	}
	for _, name := range models {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dev, want := openDevice(t, "cuda:emu"), loadAnswers(t, name)
			if !*emulateAll {
				checkModelSteps(t, dev, name, want, gpuLimits, steps, 0)
				return
			}
			checkModel(t, dev, name, want, gpuLimits, 0)
			checkModel(t, dev, name, want, gpuLimits, len(want.PromptTokens)/2)
		})
	}
}

// emulated is a GPU of the emulator with its driver.
func emulated(t *testing.T, options emulator.Options, serial bool) (*cuda.Device, *emulator.Driver) {
	t.Helper()
	drv, err := emulator.New(options)
	if err != nil {
		t.Fatal(err)
	}
	dev, err := cuda.New(cuda.Options{Driver: drv, Label: "emulated", NoCache: true, Serial: serial})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	return dev, drv
}

// feedEach feeds tokens one by one and returns the logits after each.
func feedEach(t *testing.T, s *llm.Session, tokens ...int32) [][]float32 {
	t.Helper()
	var rows [][]float32
	for _, id := range tokens {
		err := s.Feed(t.Context(), []int32{id}, func(l []float32) error { rows = append(rows, slices.Clone(l)); return nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	return rows
}

func sameBits(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }

// A captured step gives the bits of its kernels launched one by one, whatever
// order the emulator runs them in.
func TestCapturedEqualsEagerEmulated(t *testing.T) {
	t.Parallel()
	m := loopModel(t)
	tokens := []int32{5, 300, 7}
	var want [][]float32
	for _, c := range []struct {
		seed   uint64
		serial bool
	}{{1, true}, {1, false}, {2, false}} {
		dev, _ := emulated(t, emulator.Options{Seed: c.seed}, c.serial)
		rows := feedEach(t, newLoopSession(t, m, dev, 16, -1), tokens...)
		if want == nil {
			want = rows
		}
		for i := range rows {
			if !slices.EqualFunc(rows[i], want[i], sameBits) {
				t.Errorf("%+v: the logits of token %d differ from those of eager launches", c, i)
			}
		}
	}
}

// The decode loop on the device draws the tokens of the host's loop.
func TestLoopEmulated(t *testing.T) {
	m := loopModel(t)
	for name, sampling := range loopSampling {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dev, _ := emulated(t, emulator.Options{}, false)
			host, ahead := newLoopSession(t, m, dev, 16, -1), newLoopSession(t, m, dev, 16, 3)
			sameGeneration(t, host, ahead, llm.Request{Prompt: []int32{5}, Tokens: 5, IgnoreEOS: true, Sampling: sampling})
		})
	}
}

// Steps that go several to a graph draw the tokens of the host's loop: where the
// rows to visit change in the middle of a look, so that some steps go alone, and
// where a text ends inside a graph.
func TestLoopGraphsEmulated(t *testing.T) {
	t.Parallel()
	m := loopModel(t)
	dev, _ := emulated(t, emulator.Options{}, false)
	host := newLoopSession(t, m, openDevice(t, "cpu"), 80, -1)
	ahead, err := llm.NewSession(t.Context(), m, dev, llm.SessionOptions{Context: 80, Ahead: 8, PerGraph: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ahead.Close)
	r := llm.Request{Prompt: []int32{5}, Tokens: 9, IgnoreEOS: true, Sampling: loopSampling["greedy"]}
	seek := func(position int) {
		for _, s := range []*llm.Session{host, ahead} {
			if err := s.Seek(position); err != nil {
				t.Fatal(err)
			}
		}
	}
	seek(59)
	whole := sameGeneration(t, host, ahead, r)
	endAt(t, m, whole.Tokens[2])
	seek(59)
	r.IgnoreEOS = false
	if got := sameGeneration(t, host, ahead, r); len(got.Tokens) >= r.Tokens {
		t.Fatalf("%d tokens: the end of text was not met", len(got.Tokens))
	}
	r.IgnoreEOS = true
	sameGeneration(t, host, ahead, r)
}

// Two conversations in turn on one device do not touch each other.
func TestTwoSessionsEmulated(t *testing.T) {
	t.Parallel()
	m := loopModel(t)
	dev, _ := emulated(t, emulator.Options{}, false)
	a, b := newLoopSession(t, m, dev, 16, -1), newLoopSession(t, m, dev, 24, -1)
	first, second := []int32{5, 300, 7}, []int32{44, 45, 46}
	var rowsA, rowsB [][]float32
	for i := range first {
		rowsA = append(rowsA, feedEach(t, a, first[i])...)
		rowsB = append(rowsB, feedEach(t, b, second[i])...)
	}
	for name, c := range map[string]struct {
		tokens  []int32
		got     [][]float32
		context int
	}{"a": {first, rowsA, 16}, "b": {second, rowsB, 24}} {
		for i, row := range feedEach(t, newLoopSession(t, m, dev, c.context, -1), c.tokens...) {
			if !slices.EqualFunc(row, c.got[i], sameBits) {
				t.Errorf("session %s: the logits of token %d differ from those of the session alone", name, i)
			}
		}
	}
}

// A model larger than the device's memory is refused with sizes and the buffer
// that did not fit; the device goes on working and nothing leaks.
func TestOutOfMemoryEmulated(t *testing.T) {
	m := tinyModel(t)
	dev, _ := emulated(t, emulator.Options{MemoryBytes: 3 << 20}, false)
	before := dev.Usage()
	for range 2 {
		_, err := llm.NewSession(t.Context(), m, dev, llm.SessionOptions{Context: 16})
		var full *cuda.OutOfMemoryError
		if !errors.As(err, &full) || !errors.Is(err, cuda.ErrOutOfMemory) || full.Total != 3<<20 || full.Asked < 1 || full.Held > full.Total-full.Free {
			t.Fatalf("%v, want the sizes", err)
		}
		if !strings.Contains(err.Error(), "emulated: out of device memory: asked for") || !strings.Contains(err.Error(), "buffer \"") {
			t.Errorf("%v", err)
		}
		if got := dev.Usage(); got != before {
			t.Errorf("%+v is in use after the refusal, was %+v", got, before)
		}
	}
}

// A cancelled generation ends in the middle of a step; a context that is lost is
// an error of every call, and closing still ends.
func TestStoppedEmulated(t *testing.T) {
	m := tinyModel(t)
	dev, drv := emulated(t, emulator.Options{}, false)
	s := newLoopSession(t, m, dev, 16, -1)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel) // a step takes longer
	if err := s.Feed(ctx, []int32{1}, nil); !errors.Is(err, context.Canceled) || s.Position() != 0 {
		t.Errorf("%v at position %d, want a cancelled context at 0", err, s.Position())
	}
	feedEach(t, s, 1) // goes on
	drv.Kill()
	for range 2 {
		err := s.Feed(t.Context(), []int32{2}, nil)
		if err == nil || !strings.Contains(err.Error(), "was killed") {
			t.Errorf("%v, want a lost context", err)
		}
	}
	if err := s.Feed(t.Context(), []int32{2}, nil); !errors.Is(err, cuda.ErrBroken) {
		t.Errorf("%v, want ErrBroken", err)
	}
	if _, err := llm.NewSession(t.Context(), m, dev, llm.SessionOptions{Context: 16}); !errors.Is(err, cuda.ErrBroken) {
		t.Errorf("a new session: %v, want ErrBroken", err)
	}
}

// The knobs of the matvec heuristic change plans, not results: off, and 8 to 64
// threads a row.
func TestMatvecKnobsEmulated(t *testing.T) {
	for _, name := range presentModels(t, "small-llama-q4_k_m", "llama-untied-q4_k_m") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			matvecKnobsEmulated(t, name)
		})
	}
}

func matvecKnobsEmulated(t *testing.T, name string) {
	t.Helper()
	m, err := llm.Open(modelPath(t, name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	logits := func(knobs heuristic.Knobs) []float32 {
		dev, _ := emulated(t, emulator.Options{}, false)
		s, err := llm.NewSession(t.Context(), m, dev, llm.SessionOptions{Context: 16, Config: engine.Config{Knobs: knobs}})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		return feedEach(t, s, 5)[0]
	}
	want := logits(heuristic.Knobs{})
	for _, knobs := range []heuristic.Knobs{
		{NoMatvec: true}, {ThreadsPerRow: 8}, {ThreadsPerRow: 16}, {ThreadsPerRow: 64}, {RowsPerThread: 1, BlockSize: 2},
	} {
		var difference, total float64
		for i, v := range logits(knobs) {
			difference += float64(v-want[i]) * float64(v-want[i])
			total += float64(want[i]) * float64(want[i])
		}
		if got := difference / total; !(got <= gpuLimits.nmse) {
			t.Errorf("%+v: NMSE %g from the default plan", knobs, got)
		}
	}
}
