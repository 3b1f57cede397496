package llm

import (
	"cmp"
	"fmt"
	"strings"

	"tgc/gguf"
	"tgc/ir"
	"tgc/nn"
	"tgc/tensor"
)

// Variant is one compiled shape of a step. The list of variants a session uses
// is short and known when the model is loaded.
type Variant struct {
	Batch   int  // sequences
	Tokens  int  // tokens fed per sequence, T
	Context int  // rows of the cache
	Visited int  // those of them that the step may visit, from the first; 0: all
	All     bool // logits of every fed token, not only of one per sequence
	Cache   CacheType
	Numeric nn.Numeric  // of activations, where they meet packed weights
	Codes   WeightCodes // of weights that lie in records
}

// visited is how many rows of the cache the step may visit.
func (v Variant) visited() int { return cmp.Or(v.Visited, v.Context) }

// Names of the buffers and variables of a step that are not weights.
const (
	BufferTokens    = "tokens"    // i32 [B, T]: what is fed
	BufferPositions = "positions" // i32 [B]: position of the first fed token
	BufferLast      = "last"      // i32 [B]: index of the fed token whose logits are wanted
	BufferLogits    = "logits"    // f32 [B, T, V] with All, else [B, V]
	VarLength       = "length"    // cache rows to visit: at least the largest position after this step
)

// CacheName is the name of a layer's key or value cache.
func CacheName(layer int, kind string) string { return fmt.Sprintf("cache.%d.%s", layer, kind) }

// isCache reports the name of a cache.
func isCache(name string) bool { return strings.HasPrefix(name, "cache.") }

// BuildStep makes the tensor graph of one step.
func BuildStep(c *Config, f *gguf.File, v Variant) (*tensor.Graph, error) {
	g := tensor.NewGraph()
	in := stepInputs(g, v)
	logits, err := in.forward(c, f, v)
	if err != nil {
		return nil, err
	}
	g.Output(BufferLogits, logits)
	return g, g.Err()
}

// inputs are the buffers that a step reads besides weights and caches.
type inputs struct {
	tokens *tensor.Tensor // i32 [B, T]
	first  *tensor.Tensor // i32 [B]: positions of the first tokens
}

func stepInputs(g *tensor.Graph, v Variant) inputs {
	return inputs{g.Input(BufferTokens, ir.I32, v.Batch, v.Tokens), g.Input(BufferPositions, ir.I32, v.Batch)}
}

// forward is the model: logits [B, T, V] with All, else [B, V].
func (in inputs) forward(c *Config, f *gguf.File, v Variant) (*tensor.Tensor, error) {
	g := in.tokens.Graph()
	w := newWeights(g, f, v.Codes)
	positions := in.first.Unsqueeze(1).Add(g.Iota(ir.I32, g.Dims(v.Tokens)[0]))
	m := &transformer{
		config:    c,
		weights:   w,
		numeric:   v.Numeric,
		positions: positions,
		length:    g.VarAtLeast(VarLength, 1, int64(v.visited())),
	}
	for n := range c.Layers {
		of := func(kind string) cache {
			return newCache(g, CacheName(n, kind), v.Cache, v.Batch, c.KVHeads, v.Context, c.HeadSize)
		}
		m.caches = append(m.caches, layerCache{keys: of("k"), values: of("v")})
	}
	for kind, r := range c.rotary {
		if r != nil {
			m.rotations[kind] = nn.NewRotation(positions, r.in(v.Context)).Scale(r.magnitude)
		}
	}
	if !v.All && v.Tokens > 1 {
		m.last = g.Input(BufferLast, ir.I32, v.Batch)
	}
	x := m.embed(in.tokens)
	for n := range c.Layers {
		x = m.layer(n, x)
	}
	logits := m.head(x)
	if !v.All {
		logits = logits.Reshape(v.Batch, c.Vocabulary)
	}
	return logits, w.err
}
