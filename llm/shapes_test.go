package llm_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"tgc/gguf"
	"tgc/llm/synth"
)

// randomModel makes a small model of odd shape: any architecture, head sizes,
// groups, feed-forward widths and a mixture of types.
type randomModel struct {
	t    *testing.T
	r    *rand.Rand
	w    *gguf.Writer
	seed uint64
	text string // what was drawn, for messages
}

var (
	types32  = []gguf.Type{gguf.Q4_0, gguf.Q4_1, gguf.Q5_0, gguf.Q5_1, gguf.Q8_0, gguf.IQ4_NL, gguf.F16, gguf.BF16, gguf.F32}
	types256 = []gguf.Type{gguf.Q3_K, gguf.Q4_K, gguf.Q5_K, gguf.Q6_K, gguf.IQ4_XS, gguf.Q2_K}
)

func pickOf[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

func (m *randomModel) add(name string, typ gguf.Type, std float64, dims ...int) {
	fill, err := synth.Fill(typ, std, m.seed, name)
	if err != nil {
		m.t.Fatal(err)
	}
	m.w.Add(name, typ, dims, fill)
}

// matrix adds a matrix of a random type that fits its rows.
func (m *randomModel) matrix(name string, columns, rows int, more ...int) {
	list := types32
	if columns%256 == 0 {
		list = append(append([]gguf.Type{}, types256...), gguf.Q8_0)
	} else if columns%32 != 0 {
		list = []gguf.Type{gguf.F16, gguf.F32, gguf.BF16}
	}
	m.add(name, pickOf(m.r, list...), 1/math.Sqrt(float64(columns)), append([]int{columns, rows}, more...)...)
}

func (m *randomModel) vector(name string, n int) { m.add(name, gguf.F32, 0.7, n) }

func (m *randomModel) file() *gguf.File {
	r := m.r
	arch := pickOf(r, "llama", "qwen2", "qwen3", "olmoe")
	kv := pickOf(r, 1, 2, 3, 4)
	group := pickOf(r, 1, 2, 3, 5, 7)
	head := pickOf(r, 16, 32, 48, 64, 80, 128)
	width := pickOf(r, 64, 96, 128, 256, 288)
	ff := pickOf(r, 64, 96, 160, 256, 512, 200)
	vocab := pickOf(r, 97, 256, 515)
	layers := pickOf(r, 1, 2, 3)
	if arch == "olmoe" || arch == "qwen2" {
		head = pickOf(r, 16, 32, 64)
		width = kv * group * head
	}
	m.text = fmt.Sprintf("%s D=%d H=%d KV=%d hd=%d ff=%d vocab=%d L=%d", arch, width, kv*group, kv, head, ff, vocab, layers)
	put := func(key string, v any) { m.w.Put(arch+"."+key, v) }
	m.w.Put("general.architecture", arch)
	put("block_count", uint32(layers))
	put("context_length", uint32(64))
	put("embedding_length", uint32(width))
	put("feed_forward_length", uint32(ff))
	put("attention.head_count", uint32(kv*group))
	put("attention.head_count_kv", uint32(kv))
	put("attention.key_length", uint32(head))
	put("attention.value_length", uint32(head))
	put("attention.layer_norm_rms_epsilon", pickOf[float32](r, 1e-5, 1e-6))
	put("rope.freq_base", pickOf[float32](r, 10000, 500000, 1e6))
	m.matrix("token_embd.weight", width, vocab)
	m.vector("output_norm.weight", width)
	if r.IntN(2) == 0 {
		m.matrix("output.weight", width, vocab)
	}
	if arch == "llama" && r.IntN(2) == 0 {
		put("rope.scaling.type", "linear")
		put("rope.scaling.factor", float32(2.5))
	}
	if arch == "olmoe" {
		put("expert_count", uint32(6))
		put("expert_used_count", uint32(pickOf(r, 1, 2, 3)))
	}
	for n := range layers {
		m.block(fmt.Sprintf("blk.%d.", n), arch, width, kv*group*head, kv*head, head, ff)
	}
	f, err := m.w.Memory(m.t.Context(), m.text, nil)
	if err != nil {
		m.t.Fatal(err)
	}
	return f
}

func (m *randomModel) block(b, arch string, width, queries, shared, head, ff int) {
	m.vector(b+"attn_norm.weight", width)
	m.vector(b+"ffn_norm.weight", width)
	m.matrix(b+"attn_q.weight", width, queries)
	m.matrix(b+"attn_k.weight", width, shared)
	m.matrix(b+"attn_v.weight", width, shared)
	m.matrix(b+"attn_output.weight", queries, width)
	switch arch {
	case "qwen2":
		m.vector(b+"attn_q.bias", queries)
		m.vector(b+"attn_k.bias", shared)
		m.vector(b+"attn_v.bias", shared)
	case "qwen3":
		m.vector(b+"attn_q_norm.weight", head)
		m.vector(b+"attn_k_norm.weight", head)
	case "olmoe":
		m.vector(b+"attn_q_norm.weight", queries)
		m.vector(b+"attn_k_norm.weight", shared)
		m.add(b+"ffn_gate_inp.weight", gguf.F32, 0.2, width, 6)
		m.matrix(b+"ffn_gate_exps.weight", width, ff, 6)
		m.matrix(b+"ffn_up_exps.weight", width, ff, 6)
		m.matrix(b+"ffn_down_exps.weight", ff, width, 6)
		return
	}
	m.matrix(b+"ffn_gate.weight", width, ff)
	m.matrix(b+"ffn_up.weight", width, ff)
	m.matrix(b+"ffn_down.weight", ff, width)
}

// Models of odd shapes equal the float64 reference. TGC_MODEL_SEEDS asks for
// more of them.
func TestRandomModelsAgainstReference(t *testing.T) {
	dev := openDevice(t, "cpu")
	seeds := 12
	if n, err := strconv.Atoi(os.Getenv("TGC_MODEL_SEEDS")); err == nil {
		seeds = n
	}
	for seed := range uint64(seeds) {
		m := &randomModel{t: t, r: rand.New(rand.NewPCG(seed, 1)), w: gguf.NewWriter(), seed: seed}
		f := m.file()
		t.Run(fmt.Sprintf("%d %s", seed, m.text), func(t *testing.T) {
			compareWithReference(t, dev, f, generation{prompt: 11, split: int(seed%3) * 2, tokens: 8, nmse: maxNMSE})
		})
		f.Close()
	}
}
