package refmodel

import (
	"fmt"
	"math"

	"tgc/gguf"
)

// pairing says which elements of a head RoPE rotates together.
type pairing uint8

const (
	noPairs     pairing = iota // no RoPE
	neighbours                 // 2i with 2i+1
	firstSecond                // i with i + rotated/2
)

// normScope says what the RMS norm of queries and keys runs over.
type normScope uint8

const (
	noNorm   normScope = iota
	eachHead           // every head alone
	wholeRow           // all heads together
)

// mixing says how a mixture of experts weighs those it picks.
type mixing uint8

const (
	noExperts      mixing = iota
	plainShares           // probabilities among all experts, as they are
	sharesOfPicked        // those probabilities, divided by their sum
	softmaxPicked         // a softmax of the picked experts' scores
)

// unit is the form of the feed-forward part.
type unit uint8

const (
	swiglu    unit = iota
	geglu          // GELU in place of SiLU
	halvedUp       // SwiGLU; gate and up are the halves of one matrix
	ossGLU         // gpt-oss
	twoLayers      // GPT-2
)

// architecture is what sets a family of models apart.
type architecture struct {
	pairs          pairing
	queryKeyNorm   normScope
	experts        mixing
	expertsInSome  bool // only where expert_count is not 0
	gpt2           bool // LayerNorm, learned positions, fused QKV, biases
	unit           unit
	residualNorms  bool // attention and feed-forward are normalised before they are added
	noInputNorms   bool // and not before they read
	sinks          bool
	windowMissing  int // attention.sliding_window where the file has none
	globalEvery    int // of so many layers the last sees everything; 1: none does
	localBase      float64
	localUnscaled  bool
	rotaryFreeEach int // of so many layers the last has no rotary embedding
	scaleByRoot    bool
	wideLayers     int // with this many layers, scores are divided by sqrt(width/heads)
	ffnNorm        string
}

var architectures = map[string]architecture{
	"llama":    {pairs: neighbours, experts: sharesOfPicked, expertsInSome: true},
	"mistral":  {pairs: neighbours, experts: sharesOfPicked, expertsInSome: true, globalEvery: 1},
	"mistral3": {pairs: neighbours, experts: sharesOfPicked, expertsInSome: true},
	"qwen2":    {pairs: firstSecond},
	"qwen3":    {pairs: firstSecond, queryKeyNorm: eachHead},
	"qwen3moe": {pairs: firstSecond, queryKeyNorm: eachHead, experts: sharesOfPicked},
	"olmoe":    {pairs: firstSecond, queryKeyNorm: wholeRow, experts: plainShares},
	"olmo2":    {pairs: firstSecond, queryKeyNorm: wholeRow, residualNorms: true, noInputNorms: true, globalEvery: 4, localUnscaled: true},
	"gemma2":   {pairs: firstSecond, unit: geglu, residualNorms: true, windowMissing: 4096, globalEvery: 2, scaleByRoot: true, wideLayers: 46},
	"gemma3": {
		pairs: firstSecond, queryKeyNorm: eachHead, unit: geglu, residualNorms: true,
		globalEvery: 6, localBase: 10000, localUnscaled: true, scaleByRoot: true, wideLayers: 62,
	},
	"phi3":    {pairs: firstSecond, unit: halvedUp, globalEvery: 1},
	"granite": {pairs: neighbours},
	"smollm3": {pairs: neighbours, rotaryFreeEach: 4},
	"gpt-oss": {pairs: firstSecond, unit: ossGLU, experts: softmaxPicked, sinks: true, globalEvery: 2, ffnNorm: "post_attention_norm"},
	"gpt2":    {gpt2: true, unit: twoLayers},
}

// Config holds the numbers of a model.
type Config struct {
	Arch        string
	Layers      int
	Width       int // of the residual stream
	Heads       int // of queries
	HeadsKV     int // of keys and values
	KeyLength   int // elements of a query or key head
	ValueLength int
	Rotated     int // elements of a head that RoPE rotates
	Epsilon     float64
	Window      int // positions that layers with a window see; 0: no layer has one

	EmbeddingScale, ResidualScale, LogitScale float64
	ScoreScale                                float64
	ScoreCap, LogitCap                        float64 // 0: none
	Temperature, TemperatureLength            float64
	Experts, Used                             int
	Vocabulary                                int
	Context                                   int // positions the model was made for
}

// reader collects numbers of a file and keeps the first error.
type reader struct {
	f      *gguf.File
	prefix string
	err    error
}

// size reads a count of at least 1; missing is the value of an absent key, or 0
// makes the key mandatory.
func (r *reader) size(key string, missing int) int {
	key = r.prefix + key
	v, err := r.f.UintOr(key, uint64(missing))
	if err == nil && (v == 0 || v > 1<<30) {
		err = r.f.KeyErrorf(key, "value is %d, want 1 to 2^30", v)
	}
	if r.err == nil {
		r.err = err
	}
	return int(v)
}

func (r *reader) float(key string, missing float64) float64 {
	v, err := r.f.FloatOr(r.prefix+key, missing)
	if r.err == nil {
		r.err = err
	}
	return v
}

// readConfig reads the metadata of a model.
func readConfig(f *gguf.File) (Config, architecture, error) {
	name, err := f.String("general.architecture")
	if err != nil {
		return Config{}, architecture{}, err
	}
	arch, ok := architectures[name]
	if !ok {
		return Config{}, architecture{}, f.KeyErrorf("general.architecture", "%s is no architecture of the reference model", gguf.Quote(name))
	}
	r := reader{f: f, prefix: name + "."}
	c := Config{Arch: name}
	c.Layers = r.size("block_count", 0)
	c.Width = r.size("embedding_length", 0)
	c.Heads = r.size("attention.head_count", 0)
	c.HeadsKV = r.size("attention.head_count_kv", c.Heads)
	c.Context = r.size("context_length", 0)
	c.KeyLength = r.size("attention.key_length", c.Width/max(c.Heads, 1))
	c.ValueLength = r.size("attention.value_length", c.KeyLength)
	c.Rotated = r.size("rope.dimension_count", c.KeyLength)
	c.Epsilon = r.float("attention.layer_norm_rms_epsilon", 1e-5)
	if arch.gpt2 {
		c.Epsilon = r.float("attention.layer_norm_epsilon", 1e-5)
	}
	if arch.experts != noExperts && !(arch.expertsInSome && r.float("expert_count", 0) == 0) {
		c.Experts, c.Used = r.size("expert_count", 0), r.size("expert_used_count", 0)
	}
	if arch.globalEvery != 0 {
		c.Window = int(r.float("attention.sliding_window", float64(arch.windowMissing)))
	}
	c.readScales(&r, arch)
	if r.err != nil {
		return c, arch, r.err
	}
	if c.Heads%c.HeadsKV != 0 || c.Rotated%2 != 0 || c.Rotated > c.KeyLength || c.Used > c.Experts {
		err = fmt.Errorf("refmodel: %s: heads, rotated elements or experts do not fit together: %+v", f.Name(), c)
	}
	return c, arch, err
}

// readScales reads what multiplies and bounds values: the multipliers of Granite, the
// soft caps of Gemma 2, the temperature of Ministral 3. Other models' files lack the keys.
func (c *Config) readScales(r *reader, arch architecture) {
	c.EmbeddingScale = r.float("embedding_scale", 1)
	if arch.scaleByRoot {
		c.EmbeddingScale = math.Sqrt(float64(c.Width))
	}
	c.ResidualScale = r.float("residual_scale", 1)
	c.LogitScale = 1 / r.float("logit_scale", 1)
	wide := c.KeyLength
	if arch.wideLayers == c.Layers {
		wide = c.Width / c.Heads
	}
	c.ScoreScale = r.float("attention.scale", 1/math.Sqrt(float64(wide)))
	c.ScoreCap, c.LogitCap = r.float("attn_logit_softcapping", 0), r.float("final_logit_softcapping", 0)
	c.Temperature = r.float("attention.temperature_scale", 0)
	c.TemperatureLength = r.float("rope.scaling.original_context_length", float64(c.Context))
}

// sees is the first position that a query of a layer sees.
func (m *Model) sees(layer, position int) int {
	if !m.local[layer] {
		return 0
	}
	return max(0, position-m.Config.Window+1)
}

// localLayers says which layers have a window: by the family's period, or one of the
// file, or a list in the file.
func localLayers(f *gguf.File, c Config, arch architecture) []bool {
	local := make([]bool, c.Layers)
	if c.Window == 0 {
		return local
	}
	key := c.Arch + ".attention.sliding_window_pattern"
	list, listErr := f.Bools(key)
	period, err := f.Int(key)
	if err != nil {
		period = int64(arch.globalEvery)
	}
	for i := range local {
		switch {
		case listErr == nil:
			local[i] = list[i]
		case period == 1 && err != nil:
			local[i] = true // every layer of Phi-3
		default:
			local[i] = int64(i+1)%period != 0
		}
	}
	return local
}
