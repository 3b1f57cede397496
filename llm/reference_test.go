package llm_test

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"

	"tgc/engine"
	"tgc/gguf"
	"tgc/internal/refmodel"
	"tgc/llm"
	"tgc/llm/synth"
	"tgc/runtime"
	"tgc/runtime/devices"
)

// gpt2File makes a small GPT-2 with random weights of a type.
func gpt2File(t *testing.T, typ gguf.Type, seed uint64) *gguf.File {
	t.Helper()
	const width, layers, heads, vocab, positions = 128, 3, 4, 300, 48
	w := gguf.NewWriter()
	for key, v := range map[string]any{
		"general.architecture": "gpt2", "gpt2.block_count": uint32(layers), "gpt2.embedding_length": uint32(width),
		"gpt2.feed_forward_length": uint32(4 * width), "gpt2.attention.head_count": uint32(heads),
		"gpt2.context_length": uint32(positions), "gpt2.attention.layer_norm_epsilon": float32(1e-5),
	} {
		w.Put(key, v)
	}
	add := func(name string, typ gguf.Type, std float64, dims ...int) {
		fill, err := synth.Fill(typ, std, seed, name)
		if err != nil {
			t.Fatal(err)
		}
		w.Add(name, typ, dims, fill)
	}
	norm := func(name string) {
		add(name+".weight", gguf.F32, 1, width)
		add(name+".bias", gguf.F32, 0.3, width)
	}
	linear := func(name string, columns, rows int) {
		add(name+".weight", typ, 1/math.Sqrt(float64(columns)), columns, rows)
		add(name+".bias", gguf.F32, 0.3, rows)
	}
	add("token_embd.weight", typ, 1, width, vocab)
	add("position_embd.weight", gguf.F32, 0.3, width, positions)
	for n := range layers {
		block := fmt.Sprintf("blk.%d.", n)
		norm(block + "attn_norm")
		linear(block+"attn_qkv", width, 3*width)
		linear(block+"attn_output", width, width)
		norm(block + "ffn_norm")
		linear(block+"ffn_up", width, 4*width)
		linear(block+"ffn_down", 4*width, width)
	}
	norm("output_norm")
	f, err := w.Memory(t.Context(), "gpt2-test", nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// GPT-2 has no recorded answers: the compiled model equals the independent
// float64 forward pass, fed whole and in parts.
func TestGPT2AgainstReference(t *testing.T) {
	for _, device := range []string{"cpu", "interp"} {
		t.Run(device, func(t *testing.T) {
			dev := openDevice(t, device)
			for i, typ := range []gguf.Type{gguf.F16, gguf.Q8_0, gguf.Q4_0} {
				f := gpt2File(t, typ, uint64(i))
				for _, split := range []int{0, 5} {
					compareWithReference(t, dev, f, generation{prompt: 11, split: split, tokens: 8, nmse: maxNMSE})
				}
				f.Close()
			}
		})
	}
}

// generation says what to compare: so many tokens fed, at once or in two parts,
// and generated.
type generation struct {
	prompt, split, tokens int
	context               int // 0: 40
	nmse                  float64
}

// compareWithReference checks every row of logits and every token against
// refmodel.
func compareWithReference(t *testing.T, dev runtime.Device, f *gguf.File, run generation) {
	t.Helper()
	reference, err := refmodel.Load(f)
	if err != nil {
		t.Fatal(err)
	}
	model, err := llm.NewModel(f)
	if err != nil {
		t.Fatal(err)
	}
	prompt := make([]int32, run.prompt)
	for i := range prompt {
		prompt[i] = int32((i*i*37 + 11) % model.Config.Vocabulary)
	}
	context := cmp.Or(run.context, 40)
	session, err := llm.NewSession(t.Context(), model, dev, llm.SessionOptions{Context: context, All: true})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	var rows [][]float32
	result, err := session.Generate(t.Context(), llm.Request{
		Prompt: prompt, Tokens: run.tokens, IgnoreEOS: true, SplitAt: run.split, Sampling: llm.Sampling{TopP: 1},
		Logits: func(logits []float32) error {
			rows = append(rows, slices.Collect(slices.Chunk(logits, model.Config.Vocabulary))...)
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	state := reference.NewState(context)
	fed := append(slices.Clone(prompt), result.Tokens...)
	for p, row := range rows {
		want := reference.Step(state, int(fed[p]))
		var sum nmse
		for i := range want {
			sum.point(float64(row[i]), want[i])
		}
		if !(sum.value() <= run.nmse) {
			t.Errorf("%s split at %d: NMSE %.3g at position %d, want at most %g", f.Name(), run.split, sum.value(), p, run.nmse)
		}
		if p+1 >= len(prompt) && p+1 < len(fed) {
			if best := argmax(want); best != int(fed[p+1]) {
				t.Errorf("%s split at %d: token %d is %d, the reference picks %d", f.Name(), run.split, p+1, fed[p+1], best)
			}
		}
	}
}

func argmax(row []float64) int {
	best := 0
	for i, v := range row {
		if v > row[best] {
			best = i
		}
	}
	return best
}

// tinyModel is the built-in model.
func tinyModel(t *testing.T) *llm.Model { return syntheticModel(t, synth.Tiny) }

// loopModel has the types and kernels of the built-in model and a step that takes an emulated
// machine a quarter of the time: for what is about steps and loops.
func loopModel(t *testing.T) *llm.Model {
	return syntheticModel(t, "llama:d=256,layers=2,heads=8,kv=4,head=32,ff=256,vocab=1024,quant=q4_k_m")
}

// syntheticModel is a model of random weights.
func syntheticModel(t *testing.T, shape string) *llm.Model {
	t.Helper()
	model, err := llm.NewModel(synthetic(t, shape))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { model.Close() })
	return model
}

// Logits are the same bits for 1 and 2 threads.
func TestLogitsIndependentOfThreads(t *testing.T) {
	model := tinyModel(t)
	var first []float32
	for _, threads := range []int{1, 2} {
		dev, _, err := devices.Open(t.Context(), "cpu", devices.Options{Threads: threads})
		if err != nil {
			t.Skip(err)
		}
		session, err := llm.NewSession(t.Context(), model, dev, llm.SessionOptions{Context: 64, All: true})
		if err != nil {
			t.Fatal(err)
		}
		var all []float32
		_, err = session.Generate(t.Context(), llm.Request{
			Prompt: []int32{5, 300, 7, 900, 12, 13, 14, 15, 16, 1}, Tokens: 6, IgnoreEOS: true, Sampling: llm.Sampling{TopP: 1},
			Logits: func(rows []float32) error { all = append(all, rows...); return nil },
		})
		session.Close()
		dev.Close()
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = all
		} else if !slices.Equal(first, all) {
			t.Errorf("logits with %d threads differ from those with 1", threads)
		}
	}
}

// Two sequences at different positions in one batched step give the logits of
// each alone.
func TestBatchOfTwoPositions(t *testing.T) {
	ctx := t.Context()
	dev := openDevice(t, "cpu")
	model := tinyModel(t)
	const rows = 16
	sequences := [][]int32{{5, 300, 7, 900, 12}, {44, 45, 46, 47, 48}}
	lead := 3 // the second sequence joins this much later
	vocab := model.Config.Vocabulary

	alone := make([][][]float32, 2)
	for i, tokens := range sequences {
		session, err := llm.NewSession(ctx, model, dev, llm.SessionOptions{Context: rows})
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range tokens {
			if err := session.Feed(ctx, []int32{id}, func(l []float32) error { alone[i] = append(alone[i], l); return nil }); err != nil {
				t.Fatal(err)
			}
		}
		session.Close()
	}

	g, err := llm.BuildStep(model.Config, model.File, llm.Variant{Batch: 2, Tokens: 1, Context: rows})
	if err != nil {
		t.Fatal(err)
	}
	sink, err := g.Sink()
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := engine.Compile(ctx, sink, dev.Target(), engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	memory := make(map[string]runtime.Memory)
	buffers := make(map[int64]runtime.Memory)
	for _, b := range g.Buffers() {
		if info, ok := model.File.Tensor(b.Name); ok {
			memory[b.Name], err = dev.Import(ctx, info.Data())
		} else {
			bytes := int64(b.DType.Size())
			for _, dim := range b.Shape {
				n, _ := dim.Int()
				bytes *= n
			}
			memory[b.Name], err = dev.Alloc(ctx, bytes)
		}
		if err != nil {
			t.Fatal(err)
		}
		buffers[b.ID] = memory[b.Name]
	}
	step, err := engine.Capture(ctx, dev, compiled, buffers)
	if err != nil {
		t.Fatal(err)
	}
	defer step.Free()
	// Sequence 0 runs ahead; the slot of sequence 1 idles on row 0 until then.
	for n := range len(sequences[0]) + lead {
		a, b := min(n, len(sequences[0])-1), max(n-lead, 0)
		writeInts(t, ctx, memory[llm.BufferTokens], sequences[0][a], sequences[1][b])
		writeInts(t, ctx, memory[llm.BufferPositions], int32(a), int32(b))
		if err := step.Run(ctx, map[string]int64{llm.VarLength: int64(max(a, b) + 1)}); err != nil {
			t.Fatal(err)
		}
		logits := readFloats(t, ctx, memory[llm.BufferLogits], 2*vocab)
		checkClose(t, fmt.Sprintf("sequence 0 at %d", a), logits[:vocab], alone[0][a])
		checkClose(t, fmt.Sprintf("sequence 1 at %d", b), logits[vocab:], alone[1][b])
	}
}

func writeInts(t *testing.T, ctx context.Context, m runtime.Memory, values ...int32) {
	t.Helper()
	raw, err := binary.Append(nil, binary.LittleEndian, values)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Write(ctx, 0, raw); err != nil {
		t.Fatal(err)
	}
}

func readFloats(t *testing.T, ctx context.Context, m runtime.Memory, n int) []float32 {
	t.Helper()
	raw := make([]byte, 4*n)
	if err := m.Read(ctx, 0, raw); err != nil {
		t.Fatal(err)
	}
	out := make([]float32, n)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return out
}

func checkClose(t *testing.T, what string, got, want []float32) {
	t.Helper()
	var sum nmse
	for i := range want {
		sum.point(float64(got[i]), float64(want[i]))
	}
	if !(sum.value() <= 1e-11) {
		t.Errorf("%s: NMSE %.3g against the sequence alone, want at most 1e-11", what, sum.value())
	}
}
