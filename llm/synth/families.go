package synth

// family is what the models of an architecture have besides their sizes: one row each.
type family struct {
	tokenizer *tokenizer
	experts   expertsOf

	learned                 bool     // positions are a matrix, norms have biases: GPT-2
	biases                  []string // matrices with a bias, by their names in a block
	headNorm                headNorm
	fused                   bool // queries, keys and values in one matrix; gate and up likewise
	noNormBefore, normAfter bool
	normBeforeFeed          string // its name, where it is not ffn_norm
	sinks                   bool
	window                  int // attention.sliding_window of a description without it; 0: none
	ropeBase                float64
	longFactors             bool                   // factors of frequencies for short and for long contexts
	metadata                func(s *Shape) []entry // hyperparameters of its own
}

// expertsOf says whether the models of a family have experts.
type expertsOf uint8

const (
	denseOnly expertsOf = iota
	someExperts
	alwaysExperts
)

type headNorm uint8

const (
	noHeadNorm headNorm = iota
	eachHead
	allHeads
)

var families = map[string]*family{
	"llama":    {tokenizer: &tinyTokenizer, experts: someExperts, metadata: vocabularyAndRotation},
	"mistral":  {tokenizer: &tinyTokenizer, experts: someExperts, metadata: vocabularyAndRotation},
	"mistral3": {tokenizer: &tinyTokenizer, ropeBase: 1e6, metadata: ministral},
	"qwen2":    {tokenizer: &qwenTokenizer, biases: []string{"attn_q", "attn_k", "attn_v"}},
	"qwen3":    {tokenizer: &qwenTokenizer, headNorm: eachHead},
	"qwen3moe": {tokenizer: &qwenTokenizer, headNorm: eachHead, experts: alwaysExperts, ropeBase: 1e6, metadata: expertLength},
	"olmoe":    {tokenizer: &olmoTokenizer, headNorm: allHeads, experts: alwaysExperts},
	"olmo2":    {tokenizer: &olmoTokenizer, headNorm: allHeads, noNormBefore: true, normAfter: true, ropeBase: 500000},
	"gpt2":     {tokenizer: &gpt2Tokenizer, learned: true},
	"gemma2": {
		tokenizer: &tinyTokenizer, normAfter: true, window: 4096, metadata: func(*Shape) []entry {
			return []entry{{"attn_logit_softcapping", float32(50)}, {"final_logit_softcapping", float32(30)}}
		},
	},
	"gemma3": {
		tokenizer: &tinyTokenizer, headNorm: eachHead, normAfter: true, window: 512, ropeBase: 1e6, metadata: func(*Shape) []entry {
			return []entry{{"rope.scaling.type", "linear"}, {"rope.scaling.factor", float32(8)}}
		},
	},
	"phi3": {
		tokenizer: &tinyTokenizer, fused: true, longFactors: true, metadata: func(s *Shape) []entry {
			return []entry{
				{"rope.dimension_count", uint32(s.HeadSize)}, {"rope.scaling.original_context_length", uint32(s.original())},
				{"rope.scaling.attn_factor", float32(1.19)},
			}
		},
	},
	"granite": {tokenizer: &tinyTokenizer, metadata: func(s *Shape) []entry {
		return append(vocabularyAndRotation(s), entry{"attention.scale", float32(0.015625)}, entry{"embedding_scale", float32(12)},
			entry{"residual_scale", float32(0.22)}, entry{"logit_scale", float32(8)})
	}},
	"smollm3": {tokenizer: &tinyTokenizer, ropeBase: 5e6, metadata: vocabularyAndRotation},
	"gpt-oss": {
		tokenizer: &tinyTokenizer, experts: alwaysExperts, sinks: true, normBeforeFeed: "post_attention_norm", window: 128, ropeBase: 150000,
		biases: []string{"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate_inp", "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"},
		metadata: func(s *Shape) []entry {
			return append(expertLength(s), entry{"rope.scaling.type", "yarn"}, entry{"rope.scaling.factor", float32(32)},
				entry{"rope.scaling.original_context_length", uint32(s.original())})
		},
	},
}

func vocabularyAndRotation(s *Shape) []entry {
	return []entry{{"vocab_size", uint32(s.Vocabulary)}, {"rope.dimension_count", uint32(s.HeadSize)}}
}

func expertLength(s *Shape) []entry {
	return []entry{{"expert_feed_forward_length", uint32(s.FeedForward)}}
}

func ministral(s *Shape) []entry {
	return append(vocabularyAndRotation(s), entry{"attention.temperature_scale", float32(0.1)}, entry{"rope.scaling.type", "yarn"},
		entry{"rope.scaling.factor", float32(16)}, entry{"rope.scaling.original_context_length", uint32(s.original())},
		entry{"rope.scaling.yarn_log_multiplier", float32(1)})
}
