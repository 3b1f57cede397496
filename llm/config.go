package llm

import (
	"fmt"
	"math"

	"tgc/gguf"
	"tgc/internal/lists"
	"tgc/nn"
)

// Config holds the hyperparameters of a model, read from GGUF metadata and
// checked: every number is positive, bounded and consistent with the others.
type Config struct {
	Arch        string // general.architecture
	Layers      int
	Width       int // embedding length, D
	Heads       int
	KVHeads     int
	HeadSize    int
	FeedForward int // per expert
	Vocabulary  int
	Context     int // trained context length
	Epsilon     float64
	Experts     int // 0 for a dense model
	ExpertsUsed int
	Frequencies []float64 // rotary angular frequencies, radians per position; nil without rotary embedding
	traits      traits
}

// traits is what distinguishes the architectures: one row each.
type traits struct {
	norm     normKind
	pairing  nn.Pairing
	rotary   bool
	headNorm headNorm
	fusedQKV bool // one attn_qkv matrix
	biases   bool // every linear layer has a bias
	qkvBias  bool
	gated    bool // SwiGLU; else two layers with GELU
	experts  bool
	epsilon  string // metadata key
}

type normKind uint8

const (
	rmsNorm normKind = iota
	layerNorm
)

// headNorm says over what queries and keys are normalised before rotation.
type headNorm uint8

const (
	headNormNone headNorm = iota
	headNormEach          // each head by itself (Qwen3)
	headNormAll           // the whole projection (OLMoE)
)

const rmsEpsilon = "attention.layer_norm_rms_epsilon"

var architectures = map[string]traits{
	"llama": {rotary: true, pairing: nn.PairNeighbours, gated: true, epsilon: rmsEpsilon},
	"qwen2": {rotary: true, pairing: nn.PairHalves, gated: true, qkvBias: true, epsilon: rmsEpsilon},
	"qwen3": {rotary: true, pairing: nn.PairHalves, gated: true, headNorm: headNormEach, epsilon: rmsEpsilon},
	"olmoe": {rotary: true, pairing: nn.PairHalves, gated: true, headNorm: headNormAll, experts: true, epsilon: rmsEpsilon},
	"gpt2":  {norm: layerNorm, fusedQKV: true, biases: true, epsilon: "attention.layer_norm_epsilon"},
}

// Bounds of what a file may ask for: far above any published model, low enough
// that no product of two overflows.
const (
	maxLayers  = 1 << 10
	maxWidth   = 1 << 20
	maxHeads   = 1 << 12
	maxVocab   = 1 << 24
	maxContext = 1 << 24
	maxExperts = 1 << 12
)

// ReadConfig reads and checks the hyperparameters of a model file.
func ReadConfig(f *gguf.File) (*Config, error) {
	arch, err := f.String("general.architecture")
	if err != nil {
		return nil, err
	}
	t, ok := architectures[arch]
	if !ok {
		return nil, f.KeyErrorf("general.architecture", "is %s, want one of gpt2, llama, olmoe, qwen2, qwen3", gguf.Quote(arch))
	}
	c := &Config{Arch: arch, traits: t}
	r := reader{file: f, prefix: arch + "."}
	c.Layers = r.count("block_count", maxLayers)
	r.layers = c.Layers
	c.Width = r.count("embedding_length", maxWidth)
	c.Heads = r.count("attention.head_count", maxHeads)
	c.KVHeads = r.countOr("attention.head_count_kv", c.Heads, maxHeads)
	c.FeedForward = r.count("feed_forward_length", maxWidth)
	c.Context = r.count("context_length", maxContext)
	c.Epsilon = r.positive(t.epsilon, 1)
	if t.experts {
		c.Experts = r.count("expert_count", maxExperts)
		c.ExpertsUsed = r.count("expert_used_count", maxExperts)
	}
	if r.err != nil {
		return nil, r.err
	}
	if err := c.readHeads(&r); err != nil {
		return nil, err
	}
	if err := c.readVocabulary(f); err != nil {
		return nil, err
	}
	if t.rotary {
		if err := c.readRotary(&r); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *Config) readHeads(r *reader) error {
	c.HeadSize = r.countOr("attention.key_length", max(c.Width/c.Heads, 1), maxWidth)
	value := r.countOr("attention.value_length", c.HeadSize, maxWidth)
	switch {
	case r.err != nil:
		return r.err
	case value != c.HeadSize:
		return r.errorf("attention.value_length", "is %d, want the key length %d", value, c.HeadSize)
	case c.Heads%c.KVHeads != 0:
		return r.errorf("attention.head_count_kv", "is %d, want a divisor of the head count %d", c.KVHeads, c.Heads)
	case !r.file.Has(r.prefix+"attention.key_length") && c.Width%c.Heads != 0:
		return r.errorf("attention.head_count", "is %d, want a divisor of the embedding length %d", c.Heads, c.Width)
	case c.Experts > 0 && c.ExpertsUsed > c.Experts:
		return r.errorf("expert_used_count", "is %d, want at most the expert count %d", c.ExpertsUsed, c.Experts)
	}
	return nil
}

// readVocabulary takes the size of the vocabulary from the embedding matrix,
// the one place that every file has.
func (c *Config) readVocabulary(f *gguf.File) error {
	t, ok := f.Tensor("token_embd.weight")
	if !ok {
		return fmt.Errorf("gguf: %s: tensor \"token_embd.weight\" is missing", f.Name())
	}
	if t.RowLength() != c.Width {
		return f.Errorf(t, "rows hold %d values, want the embedding length %d", t.RowLength(), c.Width)
	}
	c.Vocabulary = t.Rows()
	if c.Vocabulary > maxVocab {
		return f.Errorf(t, "has %d rows, want at most %d", c.Vocabulary, maxVocab)
	}
	return nil
}

// readRotary computes the rotary frequencies: base^(-2i/n), scaled linearly or
// by the file's per-frequency factors (rope_freqs.weight, LLaMA 3).
func (c *Config) readRotary(r *reader) error {
	n := r.countOr("rope.dimension_count", c.HeadSize, maxWidth)
	base := r.positiveOr("rope.freq_base", 10000, math.MaxFloat32)
	scaling, err := r.file.StringOr(r.prefix+"rope.scaling.type", "none")
	if err != nil {
		return err
	}
	factor := r.positiveOr("rope.scaling.factor", 0, math.MaxFloat32)
	if !r.file.Has(r.prefix + "rope.scaling.factor") {
		factor = r.positiveOr("rope.scale_linear", 1, math.MaxFloat32)
		if r.file.Has(r.prefix + "rope.scale_linear") {
			scaling = "linear"
		}
	}
	if r.err != nil {
		return r.err
	}
	if n%2 != 0 || n > c.HeadSize {
		return r.errorf("rope.dimension_count", "is %d, want an even number up to the head size %d", n, c.HeadSize)
	}
	switch scaling {
	case "none", "":
		factor = 1
	case "linear":
	default:
		return r.errorf("rope.scaling.type", "is %s, want none or linear", gguf.Quote(scaling))
	}
	c.Frequencies = lists.Make(n/2, func(i int) float64 { return math.Pow(base, -2*float64(i)/float64(n)) / factor })
	return c.applyFrequencyFactors(r.file)
}

func (c *Config) applyFrequencyFactors(f *gguf.File) error {
	t, ok := f.Tensor("rope_freqs.weight")
	if !ok {
		return nil
	}
	if t.Type != gguf.F32 || t.Elements() != len(c.Frequencies) {
		return f.Errorf(t, "is %s, want F32 of %d values", t, len(c.Frequencies))
	}
	for i, v := range float32s(t.Data()) {
		if !(v > 0) || math.IsInf(float64(v), 0) {
			return f.Errorf(t, "value %d is %v, want a positive number", i, v)
		}
		c.Frequencies[i] /= float64(v)
	}
	return nil
}

// reader reads hyperparameters and keeps the first error.
type reader struct {
	file   *gguf.File
	prefix string
	layers int // how long per-layer lists are; 0 until it is known
	err    error
}

func (r *reader) errorf(key, format string, args ...any) error {
	return r.file.KeyErrorf(r.prefix+key, format, args...)
}

// count reads a number in 1..limit.
func (r *reader) count(key string, limit int) int {
	v, err := r.scalar(key)
	if err == nil && (v < 1 || v > int64(limit)) {
		err = r.errorf(key, "is %d, want 1 to %d", v, limit)
	}
	if err != nil {
		if r.err == nil {
			r.err = err
		}
		return 1
	}
	return int(v)
}

func (r *reader) countOr(key string, missing, limit int) int {
	if !r.file.Has(r.prefix + key) {
		return missing
	}
	return r.count(key, limit)
}

// scalar reads a number, or a per-layer list that holds one number throughout.
func (r *reader) scalar(key string) (int64, error) {
	v, err := r.file.Int(r.prefix + key)
	if err == nil {
		return v, nil
	}
	list, listErr := r.file.Ints(r.prefix + key)
	if listErr != nil || len(list) == 0 {
		return 0, err
	}
	if len(list) != r.layers {
		return 0, r.errorf(key, "holds %d numbers, want one number or one for each of the %d layers", len(list), r.layers)
	}
	for _, item := range list {
		if item != list[0] {
			return 0, r.errorf(key, "differs between layers (%d and %d), want one number", list[0], item)
		}
	}
	return list[0], nil
}

// positive reads a number above 0 and at most limit.
func (r *reader) positive(key string, limit float64) float64 {
	v, err := r.file.Float(r.prefix + key)
	if err == nil && !(v > 0 && v <= limit) {
		err = r.errorf(key, "is %v, want a number above 0 and up to %v", v, limit)
	}
	if err != nil && r.err == nil {
		r.err = err
	}
	return v
}

func (r *reader) positiveOr(key string, missing, limit float64) float64 {
	if !r.file.Has(r.prefix + key) {
		return missing
	}
	return r.positive(key, limit)
}
