package main

import (
	"context"
	"fmt"
	"strings"

	"tgc/gguf"
	"tgc/llm/tokenizer"
	"tgc/nn"
	"tgc/packed"
)

// chatTemplate puts the messages one after the other: the model goes on telling.
const chatTemplate = "{% for message in messages %}{{ message['content'] }}{% if not loop.last %} {% endif %}{% endfor %}"

// export writes a model file: matrices as Q8_0, vectors as F32.
func export(ctx context.Context, path string, s shape, v *tokenizer.Vocabulary, values nn.Values, p *nn.Parameters) error {
	w := gguf.NewWriter()
	for _, e := range metadata(s, v) {
		w.Put(e.key, e.value)
	}
	q8, ok := packed.Lookup("Q8_0")
	if !ok {
		return fmt.Errorf("no format Q8_0")
	}
	for _, parameter := range p.Trained() {
		value, ok := values[parameter.Name]
		if !ok {
			return fmt.Errorf("no value of %s", parameter.Name)
		}
		dims := make([]int, len(value.Shape)) // fastest axis first
		for i, n := range value.Shape {
			dims[len(dims)-1-i] = n
		}
		if len(dims) > 1 {
			w.Add(parameter.Name, gguf.Q8_0, dims, q8.Fill(value.Float32s()))
		} else {
			w.Add(parameter.Name, gguf.F32, dims, gguf.FromBytes(value.Data))
		}
	}
	return w.WriteFile(ctx, path, nil)
}

type entry struct {
	key   string
	value any
}

func metadata(s shape, v *tokenizer.Vocabulary) []entry {
	head := uint32(s.width / s.heads)
	return []entry{
		{"general.architecture", "llama"},
		{"general.type", "model"},
		{"general.name", "Stories"},
		{"general.size_label", fmt.Sprintf("%.1fM", float64(s.weights())/1e6)},
		{"general.file_type", uint32(7)}, // mostly Q8_0
		{"general.quantization_version", uint32(2)},
		{"llama.block_count", uint32(s.layers)},
		{"llama.context_length", uint32(s.context)},
		{"llama.embedding_length", uint32(s.width)},
		{"llama.feed_forward_length", uint32(s.hidden)},
		{"llama.attention.head_count", uint32(s.heads)},
		{"llama.attention.head_count_kv", uint32(s.shared)},
		{"llama.attention.key_length", head},
		{"llama.attention.value_length", head},
		{"llama.attention.layer_norm_rms_epsilon", float32(epsilon)},
		{"llama.rope.freq_base", float32(ropeBase)},
		{"llama.rope.dimension_count", head},
		{"llama.vocab_size", uint32(s.vocabulary)},
		{"tokenizer.ggml.model", v.Model},
		{"tokenizer.ggml.pre", v.Pre},
		{"tokenizer.ggml.tokens", v.Tokens},
		{"tokenizer.ggml.token_type", v.Types},
		{"tokenizer.ggml.merges", v.Merges},
		{"tokenizer.ggml.bos_token_id", uint32(v.BOS)},
		{"tokenizer.ggml.eos_token_id", uint32(v.EOS)},
		{"tokenizer.ggml.add_bos_token", true},
		{"tokenizer.chat_template", strings.TrimSpace(chatTemplate)},
	}
}

// weights is the number of scalars in matrices.
func (s shape) weights() int {
	head := s.width / s.heads
	attention := 2*s.width*s.heads*head + 2*s.width*s.shared*head
	return s.vocabulary*s.width + s.layers*(attention+3*s.width*s.hidden)
}
