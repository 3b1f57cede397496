package huggingface

import (
	"fmt"
	"strings"

	"tgc/gguf"
	"tgc/llm/synth"
	"tgc/packed"
)

// mixtureTypes picks types as llama.cpp's quantiser does for a mixture. A type that tgc
// does not pack is replaced by the next larger one that it does.
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
		types[tensor] = packable(t)
	}
	return func(t *tensor) gguf.Type {
		if kind, ok := types[t.name]; ok && t.mx == nil {
			return kind
		}
		return storedTypes(t)
	}, nil
}

// larger are the types to pack in place of those that tgc only reads: their blocks are no
// longer than 32 values.
var larger = map[gguf.Type]gguf.Type{
	gguf.Q4_1: gguf.Q5_0, gguf.Q5_1: gguf.Q8_0, gguf.IQ4_NL: gguf.Q5_0,
	gguf.Q2_K: gguf.Q4_K, gguf.Q3_K: gguf.Q4_K, gguf.IQ3_S: gguf.Q4_K, gguf.IQ4_XS: gguf.Q4_K,
}

func packable(t gguf.Type) gguf.Type {
	if f, ok := packed.ByGGUF(uint32(t)); ok && f.CanEncode() {
		return t
	}
	if to, ok := larger[t]; ok {
		return to
	}
	return gguf.F16
}

// QuantNames lists what Convert takes.
func QuantNames() string {
	var names []string
	for _, name := range synth.MixtureNames() {
		if name != "mxfp4_moe" {
			names = append(names, name)
		}
	}
	return fmt.Sprint(strings.Join(names, ", "))
}
