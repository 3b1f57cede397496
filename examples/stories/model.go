package main

import (
	"fmt"

	"tgc/nn"
	"tgc/nn/layer"
	"tgc/tensor"
)

// shape is the size of a model of the LLaMA architecture with tied embeddings.
// Widths are multiples of 32, the block of Q8_0.
type shape struct {
	vocabulary, width, layers int
	heads, shared, hidden     int // query heads, key and value heads, feed-forward width
	context                   int // tokens
}

// small has 2.5 million weights: 2.7 MB as Q8_0.
var small = shape{vocabulary: 1024, width: 192, layers: 6, heads: 6, shared: 2, hidden: 512, context: 256}

const (
	ropeBase = 10000
	epsilon  = 1e-5
)

// transformer is the model. Its parameters have the names that GGUF files of the
// architecture have.
type transformer struct {
	shape
	embedding *layer.Embedding
	blocks    []block
	norm      *layer.RMSNorm
	rotary    *layer.Rotary
}

type block struct {
	attentionNorm, forwardNorm *layer.RMSNorm
	query, key, value, output  *layer.Linear
	gate, up, down             *layer.Linear
}

func newTransformer(p *nn.Parameters, s shape) *transformer {
	head := s.width / s.heads
	m := &transformer{shape: s, embedding: layer.NewEmbedding(p.In("token_embd"), s.vocabulary, s.width, 0.02)}
	for n := range s.layers {
		in := p.In("blk").In(fmt.Sprint(n))
		matrix := func(name string, from, to int) *layer.Linear { return layer.NewProjection(in.In(name), from, to) }
		m.blocks = append(m.blocks, block{
			attentionNorm: layer.NewRMSNorm(in.In("attn_norm"), s.width),
			query:         matrix("attn_q", s.width, s.heads*head),
			key:           matrix("attn_k", s.width, s.shared*head),
			value:         matrix("attn_v", s.width, s.shared*head),
			output:        matrix("attn_output", s.heads*head, s.width),
			forwardNorm:   layer.NewRMSNorm(in.In("ffn_norm"), s.width),
			gate:          matrix("ffn_gate", s.width, s.hidden),
			up:            matrix("ffn_up", s.width, s.hidden),
			down:          matrix("ffn_down", s.hidden, s.width),
		})
	}
	m.norm = layer.NewRMSNorm(p.In("output_norm"), s.width)
	m.rotary = layer.NewRotary(head, ropeBase, nn.PairNeighbours)
	return m
}

// forward maps tokens [B, T] to logits [B, T, V].
func (m *transformer) forward(tokens *tensor.Tensor) *tensor.Tensor {
	x := m.embedding.Forward(tokens)
	for _, b := range m.blocks {
		x = x.Add(b.attend(m, b.attentionNorm.Forward(x)))
		y := b.forwardNorm.Forward(x)
		x = x.Add(b.down.Forward(b.gate.Forward(y).Silu().Mul(b.up.Forward(y))))
	}
	return m.embedding.Logits(m.norm.Forward(x))
}

func (b block) attend(m *transformer, x *tensor.Tensor) *tensor.Tensor {
	heads := func(y *tensor.Tensor, n int) *tensor.Tensor { return y.Unflatten(2, n, y.Extent(2)/n) }
	q := m.rotary.Forward(heads(b.query.Forward(x), m.heads))
	k := m.rotary.Forward(heads(b.key.Forward(x), m.shared))
	return b.output.Forward(layer.Attend(q, k, heads(b.value.Forward(x), m.shared), nil, true))
}

// loss is the mean cross entropy, in nats a token, of predicting each of the
// tokens 1..T of text [B, T+1] from those before it.
func (m *transformer) loss(text *tensor.Tensor) *tensor.Tensor {
	length := text.Extent(1) - 1
	logits := m.forward(text.SliceInts(1, 0, length))
	next := text.SliceInts(1, 1, length)
	return logits.Flatten(0, 1).Contiguous().CrossEntropy(next.Flatten(0, 1), tensor.CrossEntropyOptions{})
}
