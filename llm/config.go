package llm

import (
	"fmt"
	"math"

	"tgc/gguf"
	"tgc/internal/lists"
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
	Window      int // cache rows that queries of windowed layers see; 0: there are no such layers

	arch    architecture
	layers  []layerConfig
	rotary  [rotaries]*rotary // nil where no layer uses it
	factors factors
}

// layerConfig is what a layer does that its neighbours may not.
type layerConfig struct {
	window int // cache rows that a query sees; 0: all
	rotary rotaryKind
}

// factors are the numbers by which values along the way are multiplied or bounded.
type factors struct {
	embedding, residual, logits, attention float64 // attention: of scores; 0: one over the square root of the head size
	scoreCap, logitCap                     float64 // 0: none
	temperature                            float64 // see transformer.temper; 0: none
	temperatureLength                      int
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
	maxFactor  = 1 << 20
)

// ReadConfig reads and checks the hyperparameters of a model file.
func ReadConfig(f *gguf.File) (*Config, error) {
	name, err := f.String("general.architecture")
	if err != nil {
		return nil, err
	}
	arch, ok := architectures[name]
	if !ok {
		return nil, f.KeyErrorf("general.architecture", "is %s, want one of %s", gguf.Quote(name), architectureList())
	}
	c := &Config{Arch: name, arch: arch}
	r := newReader(f, name)
	c.readSizes(r)
	if r.err == nil {
		c.readHeads(r)
	}
	if r.err == nil {
		r.fail(c.readVocabulary(f))
	}
	if r.err == nil {
		c.readWindows(r)
		c.readFactors(r)
	}
	if r.err == nil && !arch.learned {
		c.readRotary(r)
	}
	if r.err == nil {
		r.fail(r.unknown())
	}
	if r.err != nil {
		return nil, r.err
	}
	return c, nil
}

func (c *Config) readSizes(r *reader) {
	c.Layers = r.count("block_count", maxLayers)
	r.layers = c.Layers
	c.Width = r.count("embedding_length", maxWidth)
	c.Heads = r.count("attention.head_count", maxHeads)
	c.KVHeads = r.countOr("attention.head_count_kv", c.Heads, maxHeads)
	c.Context = r.count("context_length", maxContext)
	c.Epsilon = r.positive(c.arch.epsilon, 1)
	if c.arch.experts != expertsNone && (c.arch.experts != expertsMaybe || r.number("expert_count", 0, maxExperts) != 0) {
		c.Experts = r.count("expert_count", maxExperts)
		c.ExpertsUsed = r.count("expert_used_count", maxExperts)
	}
	const expertLength = "expert_feed_forward_length"
	if c.Experts > 0 && r.has(expertLength) {
		c.FeedForward = r.count(expertLength, maxWidth)
	} else {
		c.FeedForward = r.count("feed_forward_length", maxWidth)
	}
}

func (c *Config) readHeads(r *reader) {
	c.HeadSize = r.countOr("attention.key_length", max(c.Width/c.Heads, 1), maxWidth)
	value := r.countOr("attention.value_length", c.HeadSize, maxWidth)
	for _, key := range []string{"attention.key_length_swa", "attention.value_length_swa"} { // of layers with a window
		if n := r.countOr(key, c.HeadSize, maxWidth); n != c.HeadSize {
			r.errorf(key, "is %d, want the key length %d", n, c.HeadSize)
		}
	}
	switch {
	case r.err != nil:
	case value != c.HeadSize:
		r.errorf("attention.value_length", "is %d, want the key length %d", value, c.HeadSize)
	case c.Heads%c.KVHeads != 0:
		r.errorf("attention.head_count_kv", "is %d, want a divisor of the head count %d", c.KVHeads, c.Heads)
	case !r.has("attention.key_length") && c.Width%c.Heads != 0:
		r.errorf("attention.head_count", "is %d, want a divisor of the embedding length %d", c.Heads, c.Width)
	case c.Experts > 0 && c.ExpertsUsed > c.Experts:
		r.errorf("expert_used_count", "is %d, want at most the expert count %d", c.ExpertsUsed, c.Experts)
	}
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

// readWindows finds the layers whose queries see only some cache rows: every
// period-th sees all, or a list says which do not.
func (c *Config) readWindows(r *reader) {
	const size, pattern = "attention.sliding_window", "attention.sliding_window_pattern"
	w := c.arch.windows
	c.layers = make([]layerConfig, c.Layers)
	if !w.known {
		return
	}
	c.Window = w.missing
	if r.has(size) {
		c.Window = int(r.number(size, 0, math.MaxInt32))
	}
	some := lists.Make(c.Layers, func(n int) bool { return w.period == 1 || n%w.period != w.period-1 })
	if list, ok := r.flags(pattern); ok {
		some = list
	} else if r.has(pattern) {
		period := int(r.number(pattern, 0, maxLayers)) // 0: all layers
		some = lists.Make(c.Layers, func(n int) bool { return period == 0 || n%period != period-1 })
	}
	for n := range c.layers {
		if c.Window > 0 && some[n] {
			c.layers[n] = layerConfig{window: c.Window, rotary: rotaryLocal}
		}
	}
}

// readFactors reads what multiplies or bounds values.
func (c *Config) readFactors(r *reader) {
	s := c.arch.scales
	c.factors = factors{embedding: 1, residual: 1, logits: 1}
	if s.embeddingRoot {
		c.factors.embedding = math.Sqrt(float64(c.Width))
	}
	if s.wideScaleLayers != 0 && s.wideScaleLayers == c.Layers {
		c.factors.attention = 1 / math.Sqrt(float64(c.Width/c.Heads))
	}
	if s.granite {
		c.factors.logits = 1 / r.positive("logit_scale", maxFactor)
		c.factors.embedding = r.nonzeroOr("embedding_scale", 1, maxFactor)
		c.factors.residual = r.nonzeroOr("residual_scale", 1, maxFactor)
		c.factors.attention = r.nonzeroOr("attention.scale", 0, maxFactor)
	}
	if s.softCaps {
		c.factors.scoreCap = r.nonzeroOr("attn_logit_softcapping", 0, maxFactor)
		c.factors.logitCap = r.nonzeroOr("final_logit_softcapping", 0, maxFactor)
	}
	if s.temperature {
		c.factors.temperature = r.nonzeroOr("attention.temperature_scale", 0, maxFactor)
		c.factors.temperatureLength = r.countOr("rope.scaling.original_context_length", c.Context, maxContext)
	}
}
