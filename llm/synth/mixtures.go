package synth

import (
	"fmt"
	"strings"

	"tgc/gguf"
	"tgc/internal/lists"
)

// condition picks the layers of a model in which a rule holds.
type condition func(s *Shape, layer int) bool

func everywhere(*Shape, int) bool { return true }

// firstOf picks that many first layers.
func firstOf(n int) condition { return func(_ *Shape, layer int) bool { return layer < n } }

// firstPart picks one n-th of the layers, from the first on.
func firstPart(n int) condition { return func(s *Shape, layer int) bool { return layer < s.Layers/n } }

// moreBits picks the first and last eighth of the layers and every third between:
// there, quantisation hurts most.
func moreBits(s *Shape, layer int) bool {
	first := s.Layers / 8
	return layer < first || layer >= 7*s.Layers/8 || (layer-first)%3 == 2
}

// shared holds where four queries or more share a key and a value, which makes
// values small and so worth more bits.
func shared(s *Shape, _ int) bool { return s.Heads/s.KVHeads >= 4 }

// eight holds for models of eight experts, beside which attention is small.
func eight(s *Shape, _ int) bool { return s.Experts == 8 }

// seventyB holds for models of 70 billion parameters, where eight queries share a value.
func seventyB(s *Shape, _ int) bool {
	return s.Layers == 80 && (s.Architecture == "qwen2" || s.Architecture == "llama" && s.Heads != s.KVHeads)
}

// both holds where both conditions do.
func both(x, y condition) condition {
	return func(s *Shape, layer int) bool { return x(s, layer) && y(s, layer) }
}

// mixtures are those that llama.cpp's quantiser writes without an importance matrix
// (its llama-quant.cpp of 2026-08), by its names for them.
var mixtures = []mixture{
	{name: "f32", fileType: 0, base: gguf.F32, output: gguf.F32},
	{name: "f16", fileType: 1, base: gguf.F16, output: gguf.F16},
	{name: "bf16", fileType: 32, base: gguf.BF16, output: gguf.BF16},
	{name: "q4_0", fileType: 2, base: gguf.Q4_0, output: gguf.Q6_K, rules: eightExperts()},
	{name: "q4_1", fileType: 3, base: gguf.Q4_1, output: gguf.Q6_K, rules: eightExperts()},
	{name: "q5_0", fileType: 8, base: gguf.Q5_0, output: gguf.Q6_K, rules: eightExperts()},
	{name: "q5_1", fileType: 9, base: gguf.Q5_1, output: gguf.Q6_K, rules: eightExperts()},
	{name: "q8_0", fileType: 7, base: gguf.Q8_0, output: gguf.Q8_0},
	{name: "q2_k", fileType: 10, base: gguf.Q2_K, output: gguf.Q6_K, rules: eightExperts(
		rule{valueRole, seventyB, gguf.Q5_K}, rule{valueRole, shared, gguf.Q4_K}, rule{valueRole, everywhere, gguf.Q3_K},
		rule{joinRole, eight, gguf.Q5_K}, rule{joinRole, everywhere, gguf.Q3_K},
		rule{downRole, everywhere, gguf.Q3_K},
	)},
	{name: "q3_k_s", fileType: 11, base: gguf.Q3_K, output: gguf.Q6_K, rules: eightExperts(
		rule{valueRole, seventyB, gguf.Q5_K}, rule{joinRole, eight, gguf.Q5_K},
	)},
	{name: "q3_k_m", fileType: 12, base: gguf.Q3_K, output: gguf.Q6_K, rules: eightExperts(
		rule{valueRole, firstOf(2), gguf.Q5_K}, rule{valueRole, seventyB, gguf.Q5_K}, rule{valueRole, everywhere, gguf.Q4_K},
		rule{joinRole, eight, gguf.Q5_K}, rule{joinRole, everywhere, gguf.Q4_K},
		rule{downRole, firstPart(16), gguf.Q5_K}, rule{downRole, everywhere, gguf.Q4_K},
	)},
	{name: "q3_k_l", fileType: 13, base: gguf.Q3_K, output: gguf.Q6_K, rules: eightExperts(
		rule{valueRole, everywhere, gguf.Q5_K},
		rule{joinRole, eight, gguf.Q3_K}, rule{joinRole, everywhere, gguf.Q5_K},
		rule{downRole, everywhere, gguf.Q5_K},
	)},
	{name: "q4_k_s", fileType: 14, base: gguf.Q4_K, output: gguf.Q6_K, rules: eightExperts(
		rule{valueRole, firstOf(4), gguf.Q5_K}, rule{valueRole, seventyB, gguf.Q5_K},
		rule{joinRole, eight, gguf.Q5_K}, rule{downRole, firstPart(8), gguf.Q5_K},
	)},
	{name: "q4_k_m", fileType: 15, base: gguf.Q4_K, output: gguf.Q6_K, rules: eightExperts(
		rule{valueRole, moreBits, gguf.Q6_K}, rule{valueRole, seventyB, gguf.Q5_K},
		rule{joinRole, eight, gguf.Q5_K}, rule{downRole, moreBits, gguf.Q6_K},
	)},
	{name: "q5_k_s", fileType: 16, base: gguf.Q5_K, output: gguf.Q6_K, rules: eightExperts()},
	{name: "q5_k_m", fileType: 17, base: gguf.Q5_K, output: gguf.Q6_K, rules: eightExperts(
		rule{valueRole, moreBits, gguf.Q6_K}, rule{downRole, moreBits, gguf.Q6_K},
	)},
	{name: "q6_k", fileType: 18, base: gguf.Q6_K, output: gguf.Q6_K, rules: eightExperts()},
	{name: "iq3_s", fileType: 26, base: gguf.IQ3_S, output: gguf.Q6_K, rules: eightExperts(
		rule{valueRole, seventyB, gguf.Q5_K}, rule{valueRole, shared, gguf.Q4_K}, rule{joinRole, eight, gguf.Q5_K},
	)},
	{name: "iq3_m", fileType: 27, base: gguf.IQ3_S, output: gguf.Q6_K, rules: eightExperts(
		rule{valueRole, seventyB, gguf.Q5_K}, rule{valueRole, everywhere, gguf.Q4_K},
		rule{joinRole, eight, gguf.Q5_K}, rule{joinRole, everywhere, gguf.Q4_K},
		rule{downRole, firstPart(8), gguf.Q4_K}, rule{downRole, both(eight, moreBits), gguf.Q4_K},
	)},
	{name: "tq1_0", fileType: 36, base: gguf.TQ1_0, output: gguf.Q6_K, rules: smallEmbedding},
	{name: "tq2_0", fileType: 37, base: gguf.TQ2_0, output: gguf.Q6_K, rules: smallEmbedding},
	{name: "q1_0", fileType: 40, base: gguf.Q1_0, output: gguf.Q6_K, rules: eightExperts()},
	{name: "q2_0", fileType: 41, base: gguf.Q2_0, output: gguf.Q6_K, rules: smallEmbedding},
	{name: "mxfp4_moe", fileType: 38, base: gguf.Q8_0, output: gguf.Q8_0, experts: gguf.MXFP4},
	{name: "iq4_nl", fileType: 25, base: gguf.IQ4_NL, output: gguf.Q6_K, rules: fourBitLevels},
	{name: "iq4_xs", fileType: 30, base: gguf.IQ4_XS, output: gguf.Q6_K, rules: fourBitLevels},
}

// fourBitLevels are the rules of IQ4_NL and IQ4_XS.
var fourBitLevels = eightExperts(
	rule{valueRole, shared, gguf.Q5_K}, rule{joinRole, eight, gguf.Q5_K}, rule{downRole, firstPart(8), gguf.Q5_K},
)

// smallEmbedding are the rules of types whose embeddings would lose too much.
var smallEmbedding = eightExperts(rule{embedRole, everywhere, gguf.Q4_K})

// eightExperts puts in front of a mixture's rules what holds for all of them.
func eightExperts(rules ...rule) []rule {
	return append([]rule{{keyRole, eight, gguf.Q8_0}, {valueRole, eight, gguf.Q8_0}}, rules...)
}

// mixtureByName finds a mixture by its name in lower case.
func mixtureByName(name string) (*mixture, bool) {
	for i := range mixtures {
		if mixtures[i].name == name {
			return &mixtures[i], true
		}
	}
	return nil, false
}

// published is the mixture of files in the table of models.
func published(name string) *mixture {
	m, ok := mixtureByName(name)
	if !ok {
		panic("synth: no mixture " + name)
	}
	return m
}

// MixtureNames lists the mixtures that a description may name; any type may stand
// in their place.
func MixtureNames() []string {
	return lists.Map(mixtures, func(m mixture) string { return m.name })
}

// MixtureTypes gives the types of the matrices of a model in a mixture, or in one type, by
// their names. The shape needs sizes and an architecture only.
func MixtureTypes(s Shape, name string) (map[string]gguf.Type, error) {
	m, ok := mixtureByName(name)
	if t, isType := gguf.TypeByName(name); !ok && isType {
		m = uniform(t)
	} else if !ok {
		return nil, fmt.Errorf("no mixture or type is called %s, want one of %s", gguf.Quote(name), strings.Join(MixtureNames(), ", "))
	}
	if _, ok := families[s.Architecture]; !ok {
		return nil, fmt.Errorf("synth: no architecture %q", s.Architecture)
	}
	s.mixture = m
	types := make(map[string]gguf.Type)
	for _, t := range s.Tensors() {
		types[t.Name] = t.Type
	}
	return types, nil
}
