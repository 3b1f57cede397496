package huggingface

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"tgc/gguf"
)

// neutral are the settings that change what a model computes and that no family here has,
// with the values of which each changes nothing, as JSON. Null never does. Parts that
// bring tensors of their own are refused by those.
var neutral = map[string][]string{
	"activation_sparsity_pattern":  {},
	"alibi":                        {"false"},
	"altup_num_inputs":             {"0"},
	"attention_chunk_size":         {},
	"attention_sink_size":          {"0"},
	"attn_output_gate":             {"false"},
	"attn_temperature_tuning":      {"false", "0"},
	"depth_scale":                  {"1", "1.0"},
	"dim_model_base":               {},
	"embedding_scale":              {"1", "1.0"},
	"first_k_dense_replace":        {"0"},
	"full_attention_interval":      {"1"},
	"hidden_size_per_layer_input":  {"0"},
	"interleave_moe_layer_step":    {"1"},
	"layerdrop_active":             {"false"},
	"logit_scale":                  {"1", "1.0"},
	"moe_layer_freq":               {"1"},
	"mup_enabled":                  {"false"},
	"n_group":                      {"1"},
	"no_rope_layer_interval":       {"4"}, // smollm3's
	"num_kv_shared_layers":         {"0"},
	"parallel_attn":                {"false"},
	"parallel_residual":            {"false"},
	"qk_layernorm":                 {"false"},
	"rope_interleave":              {"false"},
	"rope_interleaved":             {"false"},
	"rotary_dim":                   {},
	"rotary_pct":                   {"1", "1.0"},
	"routed_scaling_factor":        {"1", "1.0"},
	"scale_depth":                  {},
	"scale_emb":                    {"1", "1.0"},
	"scoring_func":                 {`"softmax"`},
	"shared_intermediate_size":     {"0"},
	"swiglu_limit":                 {"7", "7.0"}, // gpt_oss's
	"topk_group":                   {"1"},
	"use_bidirectional_attention":  {"false"},
	"use_mup":                      {"false"},
	"use_parallel_residual":        {"false"},
	"use_qk_norm":                  {"false"},
	"use_qkv_bias":                 {"false", "true"}, // tensors say so, too
	"use_rope":                     {"true"},
	"vocab_size_per_layer_input":   {"0"},
	"zero_expert_num":              {"0"},
	"attention_value_scale":        {"1", "1.0"},
	"attn_scale":                   {"0.1"}, // llama 4's, of a switch above
	"use_sliding_window_attention": {"false"},
}

// refuse names a setting of config.json that changes what a model computes and is not read.
func refuse(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	var found []string
	for key, value := range all {
		values, known := neutral[key]
		if value = bytes.TrimSpace(value); known && string(value) != "null" && !slices.Contains(values, string(value)) {
			found = append(found, fmt.Sprintf("%s is %.80s, which changes what the model computes and is not known here", key, gguf.Quote(string(value))))
		}
	}
	if len(found) == 0 {
		return nil
	}
	return fmt.Errorf("%s", slices.Min(found))
}
