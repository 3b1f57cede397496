package llm

import (
	"math"
	"strings"

	"tgc/gguf"
)

// neutral are the keys of an architecture that change what a model computes, unless
// they hold the value here. They are those that llama.cpp reads (its llama-arch.cpp,
// 2026-08) for any architecture; a file that has one which ReadConfig does not ask for
// is another model than tgc would run.
var neutral = map[string]float64{
	"activation.situ_beta":              0,
	"activation.situ_linear_beta":       0,
	"adapters.count":                    0,
	"adapters.lora_rank":                0,
	"altup.num_inputs":                  0,
	"attn_logit_softcapping":            0,
	"attn_res.block_size":               0,
	"deepstack_mapping":                 never,
	"decoder_block_count":               0,
	"dense_2_feat_out":                  0,
	"dense_3_feat_out":                  0,
	"embedding_length_out":              0,
	"embedding_length_per_layer_input":  0,
	"embedding_scale":                   1,
	"expert_chunk_feed_forward_length":  0,
	"expert_shared_feed_forward_length": 0,
	"experts_per_group":                 0,
	"final_logit_softcapping":           0,
	"full_attention_interval":           0,
	"hash_layer_count":                  0,
	"hidden_activation":                 never,
	"interleave_moe_layer_step":         0,
	"leading_dense_block_count":         0,
	"logit_scale":                       1,
	"moe_every_n_layers":                0,
	"moe_latent_size":                   0,
	"n_deepstack_layers":                0,
	"nextn_predict_layers":              0,
	"norm_before_fc":                    0,
	"norm_before_residual":              0,
	"num_loops":                         0,
	"rescale_every_n_layers":            0,
	"residual_scale":                    1,
	"router_logit_softcapping":          0,
	"skip_loop_final_norm":              0,
	"swiglu_clamp_exp":                  0,
	"swiglu_clamp_shexp":                0,
	"swin_norm":                         0,
	"time_decay_extra_dim":              0,
	"time_mix_extra_dim":                0,
	"token_shift_count":                 0,
	"use_parallel_residual":             0,

	"attention.causal":       1,
	"attention.output_scale": 1,
	"attention.value_scale":  1,
	"expert_weights_norm":    0,
	"expert_weights_scale":   0,
	"expert_gating_func":     0,

	"rope.scaling.yarn_attn_factor": 1,
	"rope.scaling.yarn_ext_factor":  1,
}

// never is no value of any key.
var never = math.NaN()

// families are beginnings of keys that all change what a model computes unless they are
// 0: a new one among them cannot be harmless.
var families = []string{"attention.", "rope.", "expert_", "hyper_connection.", "kda.", "ssm.", "wkv.", "shortconv."}

// harmless are keys of those families that say nothing a model's tensors do not.
var harmless = map[string]bool{
	"attention.layer_norm_epsilon":         true, // of the other kind of norm
	"attention.layer_norm_rms_epsilon":     true,
	"attention.group_norm_epsilon":         true,
	"rope.scaling.original_context_length": true, // counts with a scaling that asks for it
	"rope.scaling.finetuned":               true, // says how a model was made
	"rope.dimension_count":                 true, // of a model with learned positions
	"rope.freq_base":                       true,
}

// changesResult reports whether a key that nobody asked for changes what a model
// computes by the value that it has.
func changesResult(name string, value gguf.Value) bool {
	idle, known := neutral[name]
	for _, family := range families {
		known = known || strings.HasPrefix(name, family)
	}
	return known && !harmless[name] && numberOf(value) != idle
}

// numberOf is the value of a number or a truth value, and NaN for anything else.
func numberOf(v gguf.Value) float64 {
	if x, err := v.Float(); err == nil {
		return x
	}
	switch truth, err := v.Bool(); {
	case err != nil:
		return math.NaN()
	case truth:
		return 1
	}
	return 0
}
