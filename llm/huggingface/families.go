package huggingface

import (
	"maps"
	"slices"
	"strings"
)

// family is how the models of a model_type are stored: one row each.
type family struct {
	architecture string // general.architecture
	activations  []string
	interleaved  bool // GGUF has the rows of queries and keys in another order: pairs side by side
	normPlusOne  bool // norms are stored as their difference from 1
	tied         bool // where the file does not say

	experts       bool
	renormalised  bool // norm_topk_prob that the architecture has
	packedExperts bool // gpt-oss: MXFP4, gate and up in turn

	window     windowKind
	windowed   string // architecture of models with a window shorter than their context, if that is another
	wideLayers int    // see llm: query_pre_attn_scalar is the width over the heads
	defaults   raw    // what a file may leave out

	norms map[string]string // names of norms that differ between families
}

type windowKind uint8

const (
	noWindows windowKind = iota
	someWindows
)

var (
	silu = []string{"silu", "swish"}
	gelu = []string{"gelu_pytorch_tanh"}

	// Norms before the two parts, or before and after, or after.
	normsBefore = map[string]string{"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm"}
	normsBoth   = map[string]string{
		"input_layernorm": "attn_norm", "post_attention_layernorm": "post_attention_norm",
		"pre_feedforward_layernorm": "ffn_norm", "post_feedforward_layernorm": "post_ffw_norm",
	}
	normsAfter = map[string]string{"post_attention_layernorm": "post_attention_norm", "post_feedforward_layernorm": "post_ffw_norm"}
	normsOSS   = map[string]string{"input_layernorm": "attn_norm", "post_attention_layernorm": "post_attention_norm"}
)

// What Gemma's files leave out where it is the default of their definition.
var (
	gemma2Defaults = raw{Heads: 8, KVHeads: 4, Head: 256, Vocabulary: 256000, Context: 8192, Epsilon: 1e-6}
	gemma3Defaults = raw{Heads: 8, KVHeads: 4, Head: 256, Vocabulary: 262208, Context: 131072, Epsilon: 1e-6, RopeBase: 1e6, RopeLocalBase: 10000}
)

var families = map[string]*family{
	"llama":       {architecture: "llama", activations: silu, interleaved: true, norms: normsBefore},
	"mistral":     {architecture: "llama", windowed: "mistral", activations: silu, interleaved: true, norms: normsBefore},
	"mixtral":     {architecture: "llama", activations: silu, interleaved: true, norms: normsBefore, experts: true, renormalised: true},
	"qwen2":       {architecture: "qwen2", activations: silu, norms: normsBefore},
	"qwen3":       {architecture: "qwen3", activations: silu, norms: normsBefore},
	"qwen3_moe":   {architecture: "qwen3moe", activations: silu, norms: normsBefore, experts: true, renormalised: true},
	"olmoe":       {architecture: "olmoe", activations: silu, norms: normsBefore, experts: true},
	"olmo2":       {architecture: "olmo2", activations: silu, norms: normsAfter},
	"gemma2":      {architecture: "gemma2", activations: gelu, normPlusOne: true, tied: true, window: someWindows, wideLayers: 46, defaults: gemma2Defaults, norms: normsBoth},
	"gemma3":      {architecture: "gemma3", activations: gelu, normPlusOne: true, tied: true, window: someWindows, wideLayers: 62, defaults: gemma3Defaults, norms: normsBoth},
	"gemma3_text": {architecture: "gemma3", activations: gelu, normPlusOne: true, tied: true, window: someWindows, wideLayers: 62, defaults: gemma3Defaults, norms: normsBoth},
	"phi3":        {architecture: "phi3", activations: silu, window: someWindows, norms: normsBefore},
	"granite":     {architecture: "granite", activations: silu, interleaved: true, norms: normsBefore},
	"smollm3":     {architecture: "smollm3", activations: silu, interleaved: true, tied: true, norms: normsBefore},
	"gpt_oss":     {architecture: "gpt-oss", activations: silu, experts: true, renormalised: true, packedExperts: true, window: someWindows, norms: normsOSS},
}

func familyNames() string { return strings.Join(slices.Sorted(maps.Keys(families)), ", ") }
