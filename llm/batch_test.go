package llm_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"tgc/gguf"
	"tgc/llm"
	"tgc/llm/synth"
	"tgc/nn"
	"tgc/runtime"
)

// batchRequests have prompts and lengths of their own; the last one goes on until
// its cache is full.
func batchRequests(sampling llm.Sampling) []llm.Request {
	list := []llm.Request{
		{Prompt: []int32{5, 300, 7}, Tokens: 6},
		{Prompt: []int32{44}, Tokens: 1},
		{Prompt: []int32{9, 10, 11, 12, 13, 14, 15}, Tokens: 3},
		{Prompt: []int32{900, 8}, Tokens: -1},
	}
	for i := range list {
		list[i].IgnoreEOS, list[i].Sampling = true, sampling
		list[i].Sampling.Seed += uint32(i)
	}
	return list
}

func newBatch(t *testing.T, m *llm.Model, dev runtime.Device, opt llm.BatchOptions) *llm.Batch {
	t.Helper()
	b, err := llm.NewBatch(t.Context(), m, dev, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

const batchContext = 14

// A batch draws the tokens that each sequence draws alone, in two generations one
// after the other, and ends each where it ends alone.
func TestBatchEqualsSingles(t *testing.T) {
	for name, sampling := range loopSampling {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dev, m, requests := openDevice(t, "cpu"), tinyModel(t), batchRequests(sampling)
			batch := newBatch(t, m, dev, llm.BatchOptions{Sequences: len(requests), Context: batchContext, Ahead: 4})
			batchEqualsSingles(t, batch, m, dev, requests, 2)
		})
	}
}

// On the emulated GPU a batch of two draws the tokens of the CPU.
func TestBatchEmulated(t *testing.T) {
	for name, sampling := range loopSampling {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, requests := loopModel(t), batchRequests(sampling)[:2]
			requests[0].Prompt, requests[0].Tokens, requests[1].Tokens = []int32{300}, 4, 2
			batch := newBatch(t, m, openDevice(t, "cuda:emu"), llm.BatchOptions{Sequences: 2, Context: batchContext, Ahead: 2})
			batchEqualsSingles(t, batch, m, openDevice(t, "cpu"), requests, 1)
		})
	}
}

// batchShapes are models whose weights a GPU streams or multiplies in tiles: rows of
// whole blocks, of three blocks that no warp divides, of types with minima, and of experts.
var batchShapes = []string{
	"llama:d=256,layers=1,heads=4,kv=2,head=64,ff=768,vocab=907,quant=q6_k",
	"qwen2:d=768,layers=1,heads=12,kv=2,head=64,ff=1280,vocab=907,quant=q5_k",
	"llama:d=512,layers=1,heads=8,kv=4,head=64,ff=1792,vocab=1031,quant=q4_k",
	"qwen3moe:d=256,layers=1,heads=4,kv=2,head=64,ff=256,experts=8,used=3,vocab=907,quant=q3_k",
}

// batchLimits are for sums in another order, which in int8 round some activations the
// other way.
var batchLimits = map[nn.Numeric]float64{nn.Exact: gpuLimits.nmse, nn.Int8: 1e-3}

// Numbers of sequences for which a GPU has kernels of its own, those that fill no tile of
// matrix instructions among them, give the CPU's logits on the emulated one.
func TestBatchSizesEmulated(t *testing.T) {
	sameBatchLogits(t, "cuda:emu", batchShapes[:1], []nn.Numeric{nn.Exact, nn.Int8}, 2, 3, 5, 8)
	sameBatchLogits(t, "cuda:emu", batchShapes[1:2], []nn.Numeric{nn.Exact}, 3, 8)
	sameBatchLogits(t, "cuda:emu", batchShapes[1:2], []nn.Numeric{nn.Int8}, 2, 5)
	sameBatchLogits(t, "cuda:emu", batchShapes[3:], []nn.Numeric{nn.Exact}, 2)
	// Few multiprocessors: the keys of a head are one block's tile, and the values its rows beside it.
	sameBatchLogits(t, "cuda:emu:sm_87", []string{"qwen3:d=256,layers=1,heads=8,kv=8,head=128,ff=512,vocab=907,quant=q4_k_s,pure=1"}, []nn.Numeric{nn.Int8}, 2)
}

// The same on a GPU, where there is one.
func TestBatchSizesCUDA(t *testing.T) {
	sameBatchLogits(t, "cuda", batchShapes, []nn.Numeric{nn.Exact, nn.Int8}, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16)
}

func sameBatchLogits(t *testing.T, device string, shapes []string, modes []nn.Numeric, sizes ...int) {
	openDevice(t, device) // or skips
	for _, shape := range shapes {
		for _, mode := range modes {
			for _, sequences := range sizes {
				t.Run(fmt.Sprintf("%s %s %d", shape, mode, sequences), func(t *testing.T) {
					t.Parallel()
					m, err := llm.NewModel(synthetic(t, shape))
					if err != nil {
						t.Fatal(err)
					}
					opt := llm.BatchOptions{Sequences: sequences, Context: batchContext, Mode: mode}
					want, got := batchLogits(t, m, "cpu", opt), batchLogits(t, m, device, opt)
					for at := range sequences {
						var sum nmse
						for id, x := range want[at] {
							sum.point(float64(got[at][id]), float64(x))
						}
						if !(sum.value() <= batchLimits[mode]) {
							t.Errorf("sequence %d: NMSE %.3g, want at most %g", at, sum.value(), batchLimits[mode])
						}
					}
				})
			}
		}
	}
}

// batchLogits feeds each sequence of a batch two tokens of its own.
func batchLogits(t *testing.T, m *llm.Model, device string, opt llm.BatchOptions) [][]float32 {
	t.Helper()
	batch := newBatch(t, m, openDevice(t, device), opt)
	for n := range int32(2) {
		tokens := make([][]int32, opt.Sequences)
		for at := range tokens {
			tokens[at] = []int32{100*n + 13*int32(at)}
		}
		if err := batch.Feed(t.Context(), tokens); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := batch.Logits(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func batchEqualsSingles(t *testing.T, batch *llm.Batch, m *llm.Model, dev runtime.Device, requests []llm.Request, rounds int) {
	t.Helper()
	var singles []*llm.Session
	for range requests {
		singles = append(singles, newLoopSession(t, m, dev, batchContext, -1))
	}
	for round := range rounds {
		if round == 1 { // the last one is full
			batch.Reset()
			for i, s := range singles {
				s.Reset()
				requests[i].Prompt = requests[(i+1)%len(requests)].Prompt
			}
		}
		streamed := make([][]int32, len(requests))
		for i := range requests {
			requests[i].Token = func(id int32) error { streamed[i] = append(streamed[i], id); return nil }
		}
		got, err := batch.Generate(t.Context(), requests)
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range singles {
			alone := requests[i]
			alone.Token = nil
			want, err := s.Generate(t.Context(), alone)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got[i].Tokens, want.Tokens) || !slices.Equal(streamed[i], want.Tokens) || got[i].DecodeTokens != want.DecodeTokens || batch.Positions()[i] != s.Position() {
				t.Errorf("round %d, sequence %d: %v (streamed %v) in %d steps, position %d; alone %v in %d steps, position %d",
					round, i, got[i].Tokens, streamed[i], got[i].DecodeTokens, batch.Positions()[i], want.Tokens, want.DecodeTokens, s.Position())
			}
		}
	}
}

// Logits of prompts of different lengths, fed in several parts and continued from
// different positions, are those of each sequence alone.
func TestBatchLogits(t *testing.T) {
	dev, m := openDevice(t, "cpu"), tinyModel(t)
	long := make([]int32, 45)
	for i := range long {
		long[i] = int32(i*31+7) % 1000
	}
	sameLogits(t, dev, m, [][][]int32{{long[:11], long[3:4], long}, {long[:2], long[:9], long[5:6]}, {{1}, {2}, {3}}})
}

// So it is for every architecture.
func TestBatchArchitectures(t *testing.T) {
	dev := openDevice(t, "cpu")
	feeds := [][][]int32{{{1, 2, 3}, {4}, {5, 6, 7, 8, 9}}, {{10}, {11, 12}, {13}}}
	for _, name := range presentModels(t, append(smallModels, "llama-iq4_nl", "qwen2-bias-q5_k_m", "qwen3-tied-q8_0", "olmoe-q8_0")...) {
		m, err := llm.Open(modelPath(t, name))
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		t.Run(name, func(t *testing.T) { sameLogits(t, dev, m, feeds) })
	}
	f := gpt2File(t, gguf.Q8_0, 1)
	defer f.Close()
	m, err := llm.NewModel(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("gpt2", func(t *testing.T) { sameLogits(t, dev, m, feeds) })
}

// sameLogits feeds a batch of three and each sequence alone.
func sameLogits(t *testing.T, dev runtime.Device, m *llm.Model, feeds [][][]int32) {
	t.Helper()
	context := min(64, m.Config.Context)
	batch := newBatch(t, m, dev, llm.BatchOptions{Sequences: 3, Context: context})
	var singles []*llm.Session
	for range 3 {
		singles = append(singles, newLoopSession(t, m, dev, context, -1))
	}
	for n, tokens := range feeds {
		if err := batch.Feed(t.Context(), tokens); err != nil {
			t.Fatal(err)
		}
		got, err := batch.Logits(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range singles {
			var want []float32
			if err := s.Feed(t.Context(), tokens[i], func(l []float32) error { want = l; return nil }); err != nil {
				t.Fatal(err)
			}
			checkClose(t, fmt.Sprintf("feed %d, sequence %d", n, i), got[i], want)
		}
	}
}

// What a batch does not do is refused, and a callback's error ends it.
func TestBatchRefuses(t *testing.T) {
	dev, m := openDevice(t, "cpu"), tinyModel(t)
	if _, err := llm.NewBatch(t.Context(), m, dev, llm.BatchOptions{Context: 8}); err == nil {
		t.Error("a batch of no sequences")
	}
	batch := newBatch(t, m, dev, llm.BatchOptions{Sequences: 2, Context: 8})
	greedy, seeded := loopSampling["greedy"], loopSampling["seeded"]
	one := llm.Request{Prompt: []int32{1}, Tokens: 2, IgnoreEOS: true, Sampling: greedy}
	with := func(change func(*llm.Request)) []llm.Request {
		second := one
		change(&second)
		return []llm.Request{one, second}
	}
	for want, requests := range map[string][]llm.Request{
		"tokens for 1 sequences, want 2":     {one},
		"sequence 1: llm: no tokens to feed": with(func(r *llm.Request) { r.Prompt = nil }),
		"sequence 1: llm: 9 tokens to feed":  with(func(r *llm.Request) { r.Prompt = make([]int32, 9) }),
		"outside the vocabulary":             with(func(r *llm.Request) { r.Prompt = []int32{-1} }),
		"some do not":                        with(func(r *llm.Request) { r.Sampling = seeded }),
		"neither splits":                     with(func(r *llm.Request) { r.SplitAt = 1 }),
		"sequence 1: top-p is 7":             with(func(r *llm.Request) { r.Sampling.TopP = 7 }),
		errEnough.Error():                    with(func(r *llm.Request) { r.Token = func(int32) error { return errEnough } }),
	} {
		batch.Reset()
		if _, err := batch.Generate(t.Context(), requests); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	batch.Reset()
	if _, err := batch.Generate(t.Context(), []llm.Request{one, one}); err != nil {
		t.Errorf("after refusals: %v", err)
	}
}

// A step of a batch reads the weights once, whatever its size: all but the rows of
// the embedding.
func TestBatchReadsWeightsOnce(t *testing.T) {
	for _, target := range []string{"llvm:x86-64-v4", "ptx:sm_90"} {
		for _, shape := range []string{synth.Tiny, "qwen3:0.6b-q8_0"} {
			m := openOutline(t, shape)
			one := weightBytes(t, m, target, 1)
			for _, sequences := range []int{8, 32} {
				if many := weightBytes(t, m, target, sequences); float64(many) > 1.01*float64(one) {
					t.Errorf("%s on %s: %d sequences read %d bytes of weights a step, one reads %d", shape, target, sequences, many, one)
				}
			}
		}
	}
}

func weightBytes(t *testing.T, m *llm.Model, target string, sequences int) int64 {
	t.Helper()
	v := llm.Variant{Batch: sequences, Tokens: 1, Context: 64}
	return describeStep(t, m, v, 32, target).WeightBytes
}

// A batch that uses the weights of another one draws the same tokens, and leaves them.
func TestBatchSharesWeights(t *testing.T) {
	dev, m, requests := openDevice(t, "interp"), tinyModel(t), batchRequests(loopSampling["greedy"])[:1]
	requests[0].Tokens = 2
	first := newBatch(t, m, dev, llm.BatchOptions{Sequences: 1, Context: 8})
	var texts []string
	for _, weights := range []*llm.Batch{nil, first, first} {
		batch, err := llm.NewBatch(t.Context(), m, dev, llm.BatchOptions{Sequences: 1, Context: 8, Weights: weights})
		if err != nil {
			t.Fatal(err)
		}
		results, err := batch.Generate(t.Context(), requests)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, fmt.Sprint(results[0].Tokens))
		batch.Close()
	}
	if texts[1] != texts[0] || texts[2] != texts[0] {
		t.Errorf("tokens %q, want all alike", texts)
	}
	if _, err := llm.NewBatch(t.Context(), m, openDevice(t, "interp"), llm.BatchOptions{Sequences: 1, Context: 8, Weights: first}); err == nil {
		t.Error("weights on another device are used")
	}
}

// Caches of zeros are not what was fed: the next token's logits are others, and those of a batch
// whose caches were never fed.
func TestClearCaches(t *testing.T) {
	dev, m := openDevice(t, "cpu"), tinyModel(t)
	var logits [2][][]float32
	for i, fed := range []bool{false, true} {
		b := newBatch(t, m, dev, llm.BatchOptions{Sequences: 1, Context: 16})
		if fed {
			if err := b.Feed(t.Context(), [][]int32{{5, 6, 7, 8}}); err != nil {
				t.Fatal(err)
			}
			if err := b.ClearCaches(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.Seek(4); err != nil {
			t.Fatal(err)
		}
		if err := b.Feed(t.Context(), [][]int32{{9}}); err != nil {
			t.Fatal(err)
		}
		var err error
		if logits[i], err = b.Logits(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(logits[0][0], logits[1][0]) {
		t.Error("cleared caches give other logits than those that were never fed")
	}
}
