package llm

import (
	"math"

	"tgc/gguf"
	"tgc/internal/lists"
)

// rotaryKind says which rotary embedding a layer has.
type rotaryKind uint8

const (
	rotaryGlobal rotaryKind = iota // of layers that see the whole cache
	rotaryLocal                    // of layers with a window
	rotaries                       // how many there are
	rotaryNone   = rotaries
)

// rotary is a rotary embedding: angular frequencies in radians per position, and what
// cosines and sines are multiplied by.
type rotary struct {
	frequencies []float64
	magnitude   float64
	far         []float64 // the frequencies where the cache is longer than near positions; nil: the same
	near        int
}

// in returns the frequencies for a cache of some positions.
func (r *rotary) in(context int) []float64 {
	if r.far != nil && context > r.near {
		return r.far
	}
	return r.frequencies
}

// Names of tensors that hold what frequencies are divided by.
const (
	ropeFactors      = "rope_freqs.weight"
	ropeFactorsLong  = "rope_factors_long.weight"
	ropeFactorsShort = "rope_factors_short.weight"
)

// scaling says how frequencies are stretched to longer texts than a model was first
// trained with.
type scaling struct {
	kind                      string // of rope.scaling.type
	factor                    float64
	original                  int // context length of the first training
	attention                 float64
	betaFast, betaSlow        float64 // turns within the original length, of YaRN
	logMultiplier             float64 // of YaRN
	factors                   []float64
	factorsShort, factorsLong []float64
}

// readRotary computes the rotary frequencies: base^(-2i/n), scaled.
func (c *Config) readRotary(r *reader) {
	n := r.countOr("rope.dimension_count", c.HeadSize, maxWidth)
	base := r.positiveOr("rope.freq_base", 10000, math.MaxFloat32)
	if local := r.countOr("rope.dimension_count_swa", n, maxWidth); local != n {
		r.errorf("rope.dimension_count_swa", "is %d, want %d as in the other layers", local, n)
	}
	if r.err == nil && (n%2 != 0 || n > c.HeadSize) {
		r.errorf("rope.dimension_count", "is %d, want an even number up to the head size %d", n, c.HeadSize)
	}
	s := c.readScaling(r, n/2)
	if r.err != nil {
		return
	}
	c.rotary[rotaryGlobal] = s.rotary(base, n)
	w := c.arch.windows
	if c.Window > 0 {
		local := base
		if w.localBase != 0 {
			local = w.localBase
		}
		local = r.positiveOr("rope.freq_base_swa", local, math.MaxFloat32)
		if w.localPlain {
			s = scaling{kind: "none", factor: 1, attention: 1, factors: s.factors}
		}
		c.rotary[rotaryLocal] = s.rotary(local, n)
	}
	switched := c.arch.rotarySwitch != "" && r.has(c.arch.rotarySwitch)
	if switched {
		on, err := r.file.Bool(r.prefix + c.arch.rotarySwitch)
		r.fail(err)
		switched = !on
	}
	for i := range c.layers {
		if switched || c.arch.unturned != 0 && (i+1)%c.arch.unturned == 0 {
			c.layers[i].rotary = rotaryNone
		}
	}
}

// readScaling reads rope.scaling and the tensors of factors, which hold half values.
func (c *Config) readScaling(r *reader, half int) scaling {
	s := scaling{
		kind:          r.text("rope.scaling.type", "linear"),
		factor:        1,
		original:      r.countOr("rope.scaling.original_context_length", c.Context, maxContext),
		attention:     r.nonzeroOr("rope.scaling.attn_factor", 1, maxFactor),
		betaFast:      r.positiveOr("rope.scaling.yarn_beta_fast", 32, maxFactor),
		betaSlow:      r.positiveOr("rope.scaling.yarn_beta_slow", 1, maxFactor),
		logMultiplier: r.nonzeroOr("rope.scaling.yarn_log_multiplier", 0, maxFactor),
	}
	if r.has("rope.scaling.factor") {
		s.factor = r.nonzeroOr("rope.scaling.factor", 1, math.MaxFloat32)
	} else { // of older files
		s.factor = r.nonzeroOr("rope.scale_linear", 1, math.MaxFloat32)
	}
	switch s.kind {
	case "none", "":
		s.kind, s.factor = "none", 1
	case "linear", "yarn", "longrope":
	default:
		r.errorf("rope.scaling.type", "is %s, want none, linear, yarn or longrope", gguf.Quote(s.kind))
	}
	s.factors = readFrequencyFactors(r, ropeFactors, half)
	if s.factors == nil {
		s.factorsShort, s.factorsLong = readFrequencyFactors(r, ropeFactorsShort, half), readFrequencyFactors(r, ropeFactorsLong, half)
	}
	return s
}

// rotary computes n/2 frequencies of a base.
func (s scaling) rotary(base float64, n int) *rotary {
	plain := lists.Make(n/2, func(i int) float64 { return math.Pow(base, -2*float64(i)/float64(n)) })
	scaled := lists.Map(plain, func(f float64) float64 { return f / s.factor })
	magnitude := s.attention
	if s.kind == "yarn" {
		scaled = s.yarn(plain, base)
		magnitude *= s.yarnMagnitude()
	}
	divided := func(by []float64) []float64 {
		return lists.Make(n/2, func(i int) float64 {
			if by == nil {
				return scaled[i]
			}
			return scaled[i] / by[i]
		})
	}
	r := &rotary{frequencies: divided(s.factors), magnitude: magnitude, near: s.original}
	if s.factorsShort != nil || s.factorsLong != nil {
		r.frequencies, r.far = divided(s.factorsShort), divided(s.factorsLong)
	}
	return r
}

// yarn divides slow frequencies by the factor, leaves fast ones, and mixes between
// (Peng et al. 2023). The borders are whole pairs, as llama.cpp and Hugging Face have
// them.
func (s scaling) yarn(plain []float64, base float64) []float64 {
	n := float64(2 * len(plain))
	pair := func(turns float64) float64 { // of the frequency that turns so often within the original length
		return n * math.Log(float64(s.original)/(turns*2*math.Pi)) / (2 * math.Log(base))
	}
	low, high := max(math.Floor(pair(s.betaFast)), 0), min(math.Ceil(pair(s.betaSlow)), n-1)
	return lists.Make(len(plain), func(i int) float64 {
		slow := min(max((float64(i)-low)/max(high-low, 0.001), 0), 1)
		return plain[i]*(1-slow) + plain[i]/s.factor*slow
	})
}

// yarnMagnitude makes up for the softer softmax of longer texts.
func (s scaling) yarnMagnitude() float64 {
	magnitude := func(multiplier float64) float64 {
		if s.factor <= 1 {
			return 1
		}
		return 0.1*multiplier*math.Log(s.factor) + 1
	}
	if s.logMultiplier != 0 {
		return magnitude(1) / magnitude(s.logMultiplier)
	}
	return magnitude(1)
}

// readFrequencyFactors reads a tensor of what frequencies are divided by; nil where
// there is none.
func readFrequencyFactors(r *reader, name string, half int) []float64 {
	t, ok := r.file.Tensor(name)
	if !ok {
		return nil
	}
	if t.Type != gguf.F32 || t.Elements() != half {
		r.fail(r.file.Errorf(t, "is %s, want F32 of %d values", t, half))
		return nil
	}
	var list []float64
	for i, v := range float32s(t.Data()) {
		if !(v > 0) || math.IsInf(float64(v), 0) {
			r.fail(r.file.Errorf(t, "value %d is %v, want a positive number", i, v))
			return nil
		}
		list = append(list, float64(v))
	}
	return list
}
