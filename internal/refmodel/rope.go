package refmodel

import (
	"math"

	"tgc/gguf"
)

// turns are the angles of a rotary embedding, in radians a position, and what the
// rotated vectors are multiplied by.
type turns struct {
	inverse []float64
	factor  float64
}

// originalContext is the length of texts before positions were stretched.
func originalContext(f *gguf.File, c Config) int {
	r := reader{f: f, prefix: c.Arch + "."}
	return int(r.float("rope.scaling.original_context_length", float64(c.Context)))
}

// readTurns computes the angles of layers that see everything, or of those with a window.
// context is the number of positions that there is room for.
func readTurns(f *gguf.File, c Config, arch architecture, factors map[string][]float32, local bool, context int) turns {
	r := reader{f: f, prefix: c.Arch + "."}
	base := r.float("rope.freq_base", 10000)
	if local && arch.localBase != 0 {
		base = arch.localBase
	}
	if local {
		base = r.float("rope.freq_base_swa", base)
	}
	t := turns{factor: r.float("rope.scaling.attn_factor", 1)}
	for p := range c.Rotated / 2 {
		t.inverse = append(t.inverse, 1/math.Pow(base, 2*float64(p)/float64(c.Rotated)))
	}
	original := float64(originalContext(f, c))
	kind, err := f.StringOr(r.prefix+"rope.scaling.type", "linear")
	switch {
	case err != nil || kind == "none" || local && arch.localUnscaled:
		if local && arch.localUnscaled {
			t.factor = 1
		}
	case kind == "yarn":
		t.yarn(&r, base, original)
	default:
		by := r.float("rope.scaling.factor", r.float("rope.scale_linear", 1))
		for p := range t.inverse {
			t.inverse[p] /= by
		}
	}
	divide := factors["rope_freqs.weight"]
	if divide == nil && float64(context) > original {
		divide = factors["rope_factors_long.weight"]
	} else if divide == nil {
		divide = factors["rope_factors_short.weight"]
	}
	for p := range divide {
		t.inverse[p] /= float64(divide[p])
	}
	return t
}

// yarn follows "YaRN: Efficient Context Window Extension" (Peng et al. 2023), section
// 3.2 and its published code: pairs that turn more than beta_fast times within the
// original context keep their angle, those that turn less than beta_slow times are
// interpolated, the others are in between.
func (t *turns) yarn(r *reader, base, original float64) {
	factor, dim := r.float("rope.scaling.factor", 1), float64(2*len(t.inverse))
	correction := func(rotations float64) float64 {
		return dim * math.Log(original/(rotations*2*math.Pi)) / (2 * math.Log(base))
	}
	low := math.Max(math.Floor(correction(r.float("rope.scaling.yarn_beta_fast", 32))), 0)
	high := math.Min(math.Ceil(correction(r.float("rope.scaling.yarn_beta_slow", 1))), dim-1)
	high = math.Max(high, low+0.001) // where the original context is shorter than a turn, too
	for p, extrapolated := range t.inverse {
		interpolated := extrapolated / factor
		keep := 1 - math.Min(math.Max((float64(p)-low)/(high-low), 0), 1)
		t.inverse[p] = interpolated*(1-keep) + extrapolated*keep
	}
	scale := 0.1*math.Log(factor) + 1
	if all := r.float("rope.scaling.yarn_log_multiplier", 0); all != 0 {
		scale /= 0.1*all*math.Log(factor) + 1
	}
	t.factor *= scale
}
