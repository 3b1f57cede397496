package huggingface

import (
	"errors"
	"fmt"
	"math"

	"tgc/gguf"
	"tgc/internal/lists"
)

// turning is what newer files say of rotary embeddings in one place, of all layers or apart
// of those with a window and those without.
type turning struct {
	one
	Full  *one `json:"full_attention"`
	Local *one `json:"sliding_attention"`
}

// one is what turning says of some layers.
type one struct {
	scaling
	Base    float64  `json:"rope_theta"`
	Rotated *float64 `json:"partial_rotary_factor"`
}

// newer reads rope_parameters in place of what older files have.
func (c *config) newer() error {
	t := c.raw.RopeParameters
	if t == nil {
		return nil
	}
	all := &t.one
	if t.Full != nil {
		all = t.Full
	}
	if t.Local != nil {
		if kind := t.Local.kind(); kind != "" && kind != "default" {
			return fmt.Errorf("rope_parameters: sliding_attention is scaled (%s), which is not known", gguf.Quote(kind))
		}
		if t.Full == nil || t.Local.Rotated != nil {
			return errors.New("rope_parameters: sliding_attention stands without full_attention, or rotates a part")
		}
		c.raw.RopeLocalBase = t.Local.Base
	}
	if all.Base > 0 {
		c.raw.RopeBase = all.Base
	}
	if all.Rotated != nil {
		c.raw.RotatedPart = all.Rotated
	}
	if all.kind() != "" {
		c.raw.Scaling = &all.scaling
	}
	return nil
}

// kind is the name of a scaling.
func (s *scaling) kind() string {
	if s.Type == "" {
		return s.TypeToo
	}
	return s.Type
}

// rotary reads the base and the scaling of rotary embeddings.
func (c *config) rotary() error {
	r := &c.raw
	base := r.RopeBase
	if base == 0 {
		base = 10000
	}
	rotated := r.Head
	if r.RotatedPart != nil {
		rotated = int(float64(r.Head) * *r.RotatedPart)
	}
	if !(base > 0 && base < math.MaxFloat32) || rotated < 2 || rotated > r.Head || rotated%2 != 0 {
		return fmt.Errorf("rope_theta is %v and %d of %d elements are rotated, want a base above 0 and an even number", base, rotated, r.Head)
	}
	c.put("rope.freq_base", float32(base))
	c.put("rope.dimension_count", uint32(rotated))
	if r.RopeLocalBase > 0 && c.family.window != noWindows {
		c.put("rope.freq_base_swa", float32(r.RopeLocalBase))
	}
	if r.Scaling == nil {
		return nil
	}
	return c.scaled(r.Scaling, base, rotated/2)
}

// scaled translates rope_scaling. half is the number of frequencies.
func (c *config) scaled(s *scaling, base float64, half int) error {
	kind := s.kind()
	if s.ShortScale != nil || s.LongScale != nil {
		return errors.New("rope_scaling: short_mscale and long_mscale are not known")
	}
	original := max(s.Original, c.raw.Original)
	if original == 0 {
		original = c.raw.Context
	}
	if needs := kind == "linear" || kind == "yarn" || kind == "llama3"; needs && !(s.Factor >= 1 && s.Factor < 1<<20) || original < 1 || original > maxSize {
		return fmt.Errorf("rope_scaling: factor %v of %d positions, want a factor of at least 1", s.Factor, original)
	}
	switch kind {
	case "default":
	case "linear":
		c.put("rope.scaling.type", "linear")
		c.put("rope.scaling.factor", float32(s.Factor))
	case "yarn":
		return c.yarn(s, original)
	case "llama3":
		return c.llama3(s, base, half, original)
	case "longrope", "su":
		return c.longRope(s, half, original)
	default:
		return fmt.Errorf("rope_scaling: type is %s, want linear, llama3, longrope or yarn", gguf.Quote(kind))
	}
	return nil
}

func (c *config) yarn(s *scaling, original int) error {
	if s.Multiplier != nil || s.AllMultiply != nil {
		return fmt.Errorf("rope_scaling: mscale is not known for %s", c.raw.ModelType)
	}
	c.put("rope.scaling.type", "yarn")
	c.put("rope.scaling.factor", float32(s.Factor))
	c.put("rope.scaling.original_context_length", uint32(original))
	if s.BetaFast > 0 {
		c.put("rope.scaling.yarn_beta_fast", float32(s.BetaFast))
	}
	if s.BetaSlow > 0 {
		c.put("rope.scaling.yarn_beta_slow", float32(s.BetaSlow))
	}
	if s.Attention != nil { // in place of what follows from the factor
		c.put("rope.scaling.attn_factor", float32(*s.Attention/(0.1*math.Log(s.Factor)+1)))
	}
	return nil
}

// llama3 stretches slow frequencies: a tensor says by how much each.
func (c *config) llama3(s *scaling, base float64, half, original int) error {
	if !(s.Low > 0 && s.High > s.Low) {
		return fmt.Errorf("rope_scaling: frequency factors %v and %v, want two that rise", s.Low, s.High)
	}
	c.factors = append(c.factors, extra{"rope_freqs.weight", lists.Make(half, func(i int) float32 {
		turns := float64(original) / (2 * math.Pi * math.Pow(base, float64(i)/float64(half))) // within the original length
		part := min(max((turns-s.Low)/(s.High-s.Low), 0), 1)
		return float32(1 / ((1-part)/s.Factor + part))
	})})
	return nil
}

func (c *config) longRope(s *scaling, half, original int) error {
	if len(s.Short) != half || len(s.Long) != half {
		return fmt.Errorf("rope_scaling: %d short and %d long factors, want %d of each", len(s.Short), len(s.Long), half)
	}
	floats := func(list []float64) []float32 { return lists.Map(list, func(v float64) float32 { return float32(v) }) }
	c.factors = append(c.factors, extra{"rope_factors_long.weight", floats(s.Long)}, extra{"rope_factors_short.weight", floats(s.Short)})
	c.put("rope.scaling.original_context_length", uint32(original))
	magnitude := 1.0
	if stretch := float64(c.raw.Context) / float64(original); stretch > 1 && original > 1 {
		magnitude = math.Sqrt(1 + math.Log(stretch)/math.Log(float64(original)))
	}
	if s.Attention != nil {
		magnitude = *s.Attention
	}
	c.put("rope.scaling.attn_factor", float32(magnitude))
	return nil
}
