package huggingface

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"tgc/gguf"
	"tgc/internal/lists"
)

// config is what config.json says, translated.
type config struct {
	raw          raw
	family       *family
	keys         []entry // without the architecture's prefix
	architecture string

	layers, width, heads, kvHeads, head, feed, vocabulary int
	experts, used                                         int
	tied                                                  bool
	factors                                               []extra // tensors of rotary factors
}

// extra is a tensor that comes from the configuration.
type extra struct {
	name   string
	values []float32
}

// raw are the fields of config.json that are read. Absent ones are nil or zero.
type raw struct {
	ModelType    string          `json:"-"`
	Quantisation json.RawMessage `json:"-"`

	Width          int      `json:"hidden_size"`
	Layers         int      `json:"num_hidden_layers"`
	Heads          int      `json:"num_attention_heads"`
	KVHeads        int      `json:"num_key_value_heads"`
	Head           int      `json:"head_dim"`
	Feed           int      `json:"intermediate_size"`
	Vocabulary     int      `json:"vocab_size"`
	Context        int      `json:"max_position_embeddings"`
	Epsilon        float64  `json:"rms_norm_eps"`
	Activation     string   `json:"hidden_act"`
	ActivationToo  string   `json:"hidden_activation"`
	Tied           *bool    `json:"tie_word_embeddings"`
	RopeBase       float64  `json:"rope_theta"`
	RopeLocalBase  float64  `json:"rope_local_base_freq"`
	Scaling        *scaling `json:"rope_scaling"`
	RopeParameters *turning `json:"rope_parameters"` // newer: base and scaling together
	Original       int      `json:"original_max_position_embeddings"`
	RotatedPart    *float64 `json:"partial_rotary_factor"`
	Window         *int     `json:"sliding_window"`
	UseWindow      *bool    `json:"use_sliding_window"`
	WindowPattern  int      `json:"sliding_window_pattern"`
	LayerTypes     []string `json:"layer_types"`
	WithRotary     []int    `json:"no_rope_layers"` // 1 where there is rotation
	Experts        int      `json:"num_experts"`
	LocalExperts   int      `json:"num_local_experts"`
	Used           int      `json:"num_experts_per_tok"`
	ExpertFeed     int      `json:"moe_intermediate_size"`
	Renormalise    *bool    `json:"norm_topk_prob"`
	SparseStep     *int     `json:"decoder_sparse_step"`
	DenseLayers    []int    `json:"mlp_only_layers"`
	ClampQKV       *float64 `json:"clip_qkv"`
	EmbeddingScale *float64 `json:"embedding_multiplier"`
	ResidualScale  *float64 `json:"residual_multiplier"`
	LogitScale     *float64 `json:"logits_scaling"`
	AttentionScale *float64 `json:"attention_multiplier"`
	ScoreCap       *float64 `json:"attn_logit_softcapping"`
	LogitCap       *float64 `json:"final_logit_softcapping"`
	QueryScalar    *float64 `json:"query_pre_attn_scalar"`

	BOS json.RawMessage `json:"bos_token_id"`
	EOS json.RawMessage `json:"eos_token_id"`
	PAD json.RawMessage `json:"pad_token_id"`
}

// scaling is rope_scaling.
type scaling struct {
	Type        string    `json:"rope_type"`
	TypeToo     string    `json:"type"` // of older files
	Factor      float64   `json:"factor"`
	Low         float64   `json:"low_freq_factor"`
	High        float64   `json:"high_freq_factor"`
	Original    int       `json:"original_max_position_embeddings"`
	Short       []float64 `json:"short_factor"`
	Long        []float64 `json:"long_factor"`
	BetaFast    float64   `json:"beta_fast"`
	BetaSlow    float64   `json:"beta_slow"`
	Attention   *float64  `json:"attention_factor"`
	Multiplier  *float64  `json:"mscale"`
	AllMultiply *float64  `json:"mscale_all_dim"`
	ShortScale  *float64  `json:"short_mscale"`
	LongScale   *float64  `json:"long_mscale"`
}

// Bounds of what a file may ask for; llm checks them against its own.
const (
	maxSize       = 1 << 24
	maxVocabulary = 1 << 22
	maxLayers     = 1 << 10
	maxExperts    = 1 << 12
)

// parseConfig reads config.json.
func parseConfig(text []byte) (*config, error) {
	var outer struct {
		ModelType    string          `json:"model_type"`
		Text         json.RawMessage `json:"text_config"`
		Quantisation json.RawMessage `json:"quantization_config"`
	}
	if err := json.Unmarshal(text, &outer); err != nil {
		return nil, err
	}
	c := &config{family: families[outer.ModelType]}
	if c.family == nil {
		return nil, fmt.Errorf("model_type is %s, want one of %s", gguf.Quote(outer.ModelType), familyNames())
	}
	c.raw, c.architecture = c.family.defaults, c.family.architecture
	for _, part := range []json.RawMessage{text, outer.Text} { // the second is of models that see, too
		if len(part) == 0 {
			continue
		}
		if err := json.Unmarshal(part, &c.raw); err != nil {
			return nil, err
		}
	}
	c.raw.ModelType, c.raw.Quantisation = outer.ModelType, outer.Quantisation
	for _, part := range []json.RawMessage{text, outer.Text} {
		if err := refuse(part); err != nil {
			return nil, err
		}
	}
	if q := string(c.raw.Quantisation); q != "" && q != "null" && !c.family.packedExperts {
		return nil, errors.New("quantization_config: weights that are quantised already are not read; take the original ones")
	}
	for _, step := range []func() error{c.sizes, c.check, c.newer, c.windows, c.scales, c.rotary} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *config) put(key string, value any) { c.keys = append(c.keys, entry{key, value}) }

// sizes reads what every model has.
func (c *config) sizes() error {
	r := &c.raw
	if r.KVHeads == 0 {
		r.KVHeads = r.Heads
	}
	if r.Head == 0 && r.Heads > 0 {
		r.Head = r.Width / r.Heads
	}
	r.Experts = max(r.Experts, r.LocalExperts)
	if !c.family.experts {
		r.Experts = 0
	}
	for _, n := range []struct {
		key         string
		value, most int
	}{
		{"hidden_size", r.Width, maxSize}, {"num_hidden_layers", r.Layers, maxLayers}, {"num_attention_heads", r.Heads, maxSize},
		{"num_key_value_heads", r.KVHeads, maxSize}, {"head_dim", r.Head, maxSize}, {"intermediate_size", r.Feed, maxSize},
		{"vocab_size", r.Vocabulary, maxVocabulary}, {"max_position_embeddings", r.Context, maxSize},
	} {
		if n.value < 1 || n.value > n.most {
			return fmt.Errorf("%s is %d, want 1 to %d", n.key, n.value, n.most)
		}
	}
	if r.Experts < 0 || r.Experts > maxExperts || r.Used < 0 || r.Used > max(r.Experts, maxExperts) {
		return fmt.Errorf("%d experts of which %d are used, want at most %d", r.Experts, r.Used, maxExperts)
	}
	if !(r.Epsilon > 0 && r.Epsilon < 1) {
		return fmt.Errorf("rms_norm_eps is %v, want a number between 0 and 1", r.Epsilon)
	}
	c.layers, c.width, c.heads, c.kvHeads, c.head, c.feed, c.vocabulary = r.Layers, r.Width, r.Heads, r.KVHeads, r.Head, r.Feed, r.Vocabulary
	c.experts, c.used = r.Experts, r.Used
	c.tied = c.family.tied
	if r.Tied != nil {
		c.tied = *r.Tied
	}
	c.put("block_count", uint32(r.Layers))
	c.put("context_length", uint32(r.Context))
	c.put("embedding_length", uint32(r.Width))
	c.put("feed_forward_length", uint32(r.Feed))
	c.put("attention.head_count", uint32(r.Heads))
	c.put("attention.head_count_kv", uint32(r.KVHeads))
	c.put("attention.key_length", uint32(r.Head))
	c.put("attention.value_length", uint32(r.Head))
	c.put("attention.layer_norm_rms_epsilon", float32(r.Epsilon))
	if r.Experts > 0 {
		c.put("expert_count", uint32(r.Experts))
		c.put("expert_used_count", uint32(r.Used))
	}
	if r.ExpertFeed > 0 && r.Experts > 0 {
		c.put("expert_feed_forward_length", uint32(r.ExpertFeed))
		c.feed = r.ExpertFeed
	} else if c.family.packedExperts {
		c.put("expert_feed_forward_length", uint32(r.Feed))
	}
	return nil
}

// check refuses what the architecture's definition does not have.
func (c *config) check() error {
	r := &c.raw
	activation := r.ActivationToo
	if activation == "" {
		activation = r.Activation
	}
	switch {
	case activation != "" && !slices.Contains(c.family.activations, activation):
		return fmt.Errorf("hidden_act is %s, want %v for %s", gguf.Quote(activation), c.family.activations, r.ModelType)
	case r.Renormalise != nil && r.Experts > 0 && *r.Renormalise != c.family.renormalised:
		return fmt.Errorf("norm_topk_prob is %v, want %v for %s", *r.Renormalise, c.family.renormalised, r.ModelType)
	case r.SparseStep != nil && *r.SparseStep != 1 && r.Experts > 0:
		return fmt.Errorf("decoder_sparse_step is %d, want 1", *r.SparseStep)
	case len(r.DenseLayers) > 0 && r.Experts > 0:
		return fmt.Errorf("mlp_only_layers lists %d layers, want none", len(r.DenseLayers))
	case r.ClampQKV != nil:
		return fmt.Errorf("clip_qkv is %v, want null", *r.ClampQKV)
	}
	for i, turned := range r.WithRotary {
		if len(r.WithRotary) != r.Layers || (turned == 1) != ((i+1)%4 != 0) {
			return errors.New("no_rope_layers is not every fourth layer, which is what smollm3 has")
		}
	}
	if q := r.QueryScalar; q != nil {
		want := float64(r.Head)
		if c.family.wideLayers == r.Layers {
			want = float64(r.Width / r.Heads)
		}
		if *q != want {
			return fmt.Errorf("query_pre_attn_scalar is %v, want %v for %d layers", *q, want, r.Layers)
		}
	}
	return nil
}

// windows reads sliding windows.
func (c *config) windows() error {
	r := &c.raw
	for _, kind := range r.LayerTypes {
		if kind != "sliding_attention" && kind != "full_attention" {
			return fmt.Errorf("layer_types has %s, want sliding_attention or full_attention", gguf.Quote(kind))
		}
	}
	if r.Window == nil || *r.Window <= 0 || r.UseWindow != nil && !*r.UseWindow {
		if c.family.window != noWindows {
			c.put("attention.sliding_window", uint32(0))
		}
		return nil
	}
	if c.family.window == noWindows {
		if *r.Window >= r.Context {
			return nil // never reached
		}
		if c.family.windowed == "" {
			return fmt.Errorf("sliding_window is %d: windows are not known for %s", *r.Window, r.ModelType)
		}
		c.architecture = c.family.windowed
	}
	if *r.Window > math.MaxInt32 {
		return fmt.Errorf("sliding_window is %d, want at most %d", *r.Window, math.MaxInt32)
	}
	c.put("attention.sliding_window", uint32(*r.Window))
	switch {
	case len(r.LayerTypes) > 0:
		if len(r.LayerTypes) != r.Layers {
			return fmt.Errorf("layer_types lists %d layers, want %d", len(r.LayerTypes), r.Layers)
		}
		local := lists.Map(r.LayerTypes, func(kind string) bool { return kind == "sliding_attention" })
		c.put("attention.sliding_window_pattern", local)
	case r.WindowPattern > 0 && r.WindowPattern <= maxLayers:
		c.put("attention.sliding_window_pattern", uint32(r.WindowPattern))
	}
	return nil
}

// scales reads multipliers and bounds.
func (c *config) scales() error {
	for _, s := range []struct {
		name  string
		value *float64
		key   string
	}{
		{"embedding_multiplier", c.raw.EmbeddingScale, "embedding_scale"}, {"residual_multiplier", c.raw.ResidualScale, "residual_scale"},
		{"logits_scaling", c.raw.LogitScale, "logit_scale"}, {"attention_multiplier", c.raw.AttentionScale, "attention.scale"},
		{"attn_logit_softcapping", c.raw.ScoreCap, "attn_logit_softcapping"}, {"final_logit_softcapping", c.raw.LogitCap, "final_logit_softcapping"},
	} {
		if s.value == nil {
			continue
		}
		if !(*s.value > 0 && *s.value < 1<<20) {
			return fmt.Errorf("%s is %v, want a number above 0", s.name, *s.value)
		}
		c.put(s.key, float32(*s.value)) // llm refuses keys that an architecture does not have
	}
	return nil
}
