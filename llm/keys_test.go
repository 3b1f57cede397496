package llm_test

import (
	"strings"
	"testing"

	"tgc/gguf"
	"tgc/llm"
	"tgc/llm/synth"
)

// edited is a small model with metadata set and tensors added.
func edited(t *testing.T, description string, metadata map[string]any, tensors ...string) *gguf.File {
	t.Helper()
	shape, err := synth.Lookup(description)
	if err != nil {
		t.Fatal(err)
	}
	f, err := synth.Outline(t.Context(), shape)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := gguf.NewWriter()
	for key, value := range f.Metadata() {
		if _, ok := metadata[key]; !ok && !strings.HasPrefix(key, "tokenizer.") {
			w.Put(key, plainValue(t, value))
		}
	}
	for key, value := range metadata {
		if value != nil {
			w.Put(key, value)
		}
	}
	for _, x := range f.Tensors() {
		w.Add(x.Name, x.Type, x.Dims, gguf.FromBytes(append([]byte(nil), x.Data()...)))
	}
	for _, name := range tensors {
		w.Add(name, gguf.F32, []int{32}, gguf.FromBytes(make([]byte, 128)))
	}
	out, err := w.Memory(t.Context(), description, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	return out
}

// plainValue is a scalar as a writer takes it.
func plainValue(t *testing.T, v gguf.Value) any {
	t.Helper()
	if s, err := v.Str(); err == nil {
		return s
	}
	if b, err := v.Bool(); err == nil {
		return b
	}
	if n, err := v.Uint(); err == nil {
		return uint32(n)
	}
	x, err := v.Float()
	if err != nil {
		t.Fatal(err)
	}
	return float32(x)
}

// A file that says something about its computation that tgc does not know is refused, by
// the name of the key or tensor; the same key with a value that changes nothing is not.
func TestUnknownMetadata(t *testing.T) {
	const sizes = ":d=32,layers=2,heads=2,ff=32,vocab=300"
	for _, c := range []struct {
		arch   string
		key    string
		value  any
		refuse bool
	}{
		{"llama", "attention.sliding_window", uint32(64), true},
		{"llama", "attention.sliding_window", uint32(0), false},
		{"llama", "attention.scale", float32(0.5), true},
		{"llama", "attn_logit_softcapping", float32(50), true},
		{"llama", "final_logit_softcapping", float32(0), false},
		{"llama", "attention.clamp_kqv", float32(8), true},
		{"llama", "attention.causal", false, true},
		{"llama", "attention.causal", true, false},
		{"llama", "attention.something_new", uint32(1), true},
		{"llama", "rope.dimension_sections", []int32{8, 8}, true},
		{"llama", "rope.scaling.type", "su", true},
		{"llama", "rope.scaling.yarn_ext_factor", float32(0.5), true},
		{"llama", "logit_scale", float32(2), true},
		{"llama", "logit_scale", float32(1), false},
		{"llama", "expert_count", uint32(0), false},
		{"llama", "tensor_data_layout", "Meta AI original pth", false},
		{"llama", "mine.note", "nothing", false},
		{"qwen2", "expert_count", uint32(4), true},
		{"qwen3", "attention.key_length_swa", uint32(8), true},
		{"gemma3", "attention.key_length_swa", uint32(16), false},
		{"gemma3", "rope.dimension_count_swa", uint32(8), true},
		{"qwen3", "leading_dense_block_count", uint32(1), true},
		{"qwen3", "rope.scaling.original_context_length", uint32(32), false},
		{"granite", "logit_scale", nil, true},
		{"granite", "logit_scale", float32(0), true},
		{"granite", "residual_scale", float32(0), false},
		{"granite", "expert_shared_feed_forward_length", uint32(32), true},
		{"gemma3", "attention.sliding_window_pattern", []bool{true}, true},
		{"gemma3", "attention.sliding_window_pattern", []bool{true, false}, false},
		{"gemma2", "router_logit_softcapping", float32(30), true},
	} {
		key := c.arch + "." + c.key
		_, err := llm.NewModel(edited(t, c.arch+sizes, map[string]any{key: c.value}))
		if (err != nil) != c.refuse || err != nil && !strings.Contains(err.Error(), key) {
			t.Errorf("%s = %v: error %v, want one that names it: %v", key, c.value, err, c.refuse)
		}
	}
	for _, tensor := range []string{"blk.0.attn_sinks.weight", "blk.1.attn_q.scale", "blk.0.exp_probs_b.bias", "blk.2.attn_norm.weight"} {
		if _, err := llm.NewModel(edited(t, "llama"+sizes, nil, tensor)); err == nil || !strings.Contains(err.Error(), tensor) {
			t.Errorf("with a tensor %s: error %v, want one that names it", tensor, err)
		}
	}
	// Biases are read from any file that has them.
	if _, err := llm.NewModel(edited(t, "llama"+sizes, nil, "blk.1.attn_q.bias")); err != nil {
		t.Error(err)
	}
}
