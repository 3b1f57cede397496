package huggingface

import (
	"fmt"
	"strings"

	"tgc/gguf"
	"tgc/llm/synth"
	"tgc/packed"
)

// mixtureTypes picks types as llama.cpp's quantiser does for a mixture.
func (d *folder) mixtureTypes(name string) (typesOf, error) {
	if name == "" {
		return storedTypes, nil
	}
	c := d.config
	types, err := synth.MixtureTypes(synth.Shape{
		Architecture: c.architecture, Width: c.width, Layers: c.layers, Heads: c.heads, KVHeads: c.kvHeads, HeadSize: c.head,
		FeedForward: c.feed, Experts: c.experts, ExpertsUsed: c.used, Vocabulary: c.vocabulary, Tied: c.tied,
	}, strings.ToLower(name))
	if err != nil {
		return nil, err
	}
	for tensor, t := range types {
		if f, ok := packed.ByGGUF(uint32(t)); !ok || !f.CanEncode() {
			return nil, fmt.Errorf("huggingface: %s for %s: values cannot be packed in this type", t, tensor)
		}
	}
	return func(t *tensor) gguf.Type {
		if kind, ok := types[t.name]; ok && t.mx == nil {
			return kind
		}
		return storedTypes(t)
	}, nil
}

// QuantNames lists the mixtures that Convert takes; any type that can be packed may stand
// in their place.
func QuantNames() string { return strings.Join(synth.MixtureNames(), ", ") }
