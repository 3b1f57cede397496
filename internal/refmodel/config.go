package refmodel

import (
	"fmt"

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

// architecture is what sets a family of models apart.
type architecture struct {
	pairs        pairing
	queryKeyNorm normScope
	experts      bool
	gpt2         bool // LayerNorm, learned positions, fused QKV, GELU without a gate
}

var architectures = map[string]architecture{
	"llama": {pairs: neighbours},
	"qwen2": {pairs: firstSecond},
	"qwen3": {pairs: firstSecond, queryKeyNorm: eachHead},
	"olmoe": {pairs: firstSecond, queryKeyNorm: wholeRow, experts: true},
	"gpt2":  {gpt2: true},
}

// Config holds the numbers of a model.
type Config struct {
	Arch          string
	Layers        int
	Width         int // of the residual stream
	Heads         int // of queries
	HeadsKV       int // of keys and values
	KeyLength     int // elements of a query or key head
	ValueLength   int
	Rotated       int // elements of a head that RoPE rotates
	RopeBase      float64
	RopeScale     float64 // positions are multiplied by it
	Epsilon       float64
	Experts, Used int
	Vocabulary    int
	Context       int // positions the model was made for
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
	c.RopeBase = r.float("rope.freq_base", 10000)
	c.Epsilon = r.float("attention.layer_norm_rms_epsilon", 1e-5)
	if arch.gpt2 {
		c.Epsilon = r.float("attention.layer_norm_epsilon", 1e-5)
	}
	if arch.experts {
		c.Experts, c.Used = r.size("expert_count", 0), r.size("expert_used_count", 0)
	} else if f.Has(r.prefix + "expert_count") {
		return c, arch, f.KeyErrorf(r.prefix+"expert_count", "the reference model has no experts for %s", name)
	}
	if r.err != nil {
		return c, arch, r.err
	}
	c.RopeScale, err = ropeScale(f, r.prefix)
	if err == nil && (c.Heads%c.HeadsKV != 0 || c.Rotated%2 != 0 || c.Rotated > c.KeyLength || c.Used > c.Experts) {
		err = fmt.Errorf("refmodel: %s: heads, rotated elements or experts do not fit together: %+v", f.Name(), c)
	}
	return c, arch, err
}

// ropeScale reads linear scaling of positions.
func ropeScale(f *gguf.File, prefix string) (float64, error) {
	kind, err := f.StringOr(prefix+"rope.scaling.type", "")
	if err != nil {
		return 0, err
	}
	missing := 1.0
	if kind == "" { // older files have only the factor, under another name
		if missing, err = f.FloatOr(prefix+"rope.scale_linear", 1); err != nil {
			return 0, err
		}
	}
	factor, err := f.FloatOr(prefix+"rope.scaling.factor", missing)
	switch {
	case err != nil:
		return 0, err
	case kind == "none" || factor == 0:
		return 1, nil
	case kind == "" || kind == "linear":
		return 1 / factor, nil
	}
	return 0, f.KeyErrorf(prefix+"rope.scaling.type", "%s is not known to the reference model", gguf.Quote(kind))
}
