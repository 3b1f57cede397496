package llm

import (
	"fmt"

	"tgc/ir"
	"tgc/nn"
	"tgc/tensor"
)

// transformer builds the layers of a model on a graph. One definition serves
// all architectures; what differs is in Config's traits.
type transformer struct {
	config    *Config
	weights   *weights
	positions *tensor.Tensor // [B, T], i32
	rotation  nn.Rotation
	length    *ir.UOp // cache rows to visit
	numeric   nn.Numeric
	caches    []cache
}

// cache is the key and value cache of a layer: [B, KV, ctx, D].
type cache struct{ keys, values *tensor.Tensor }

// embed looks up the rows of tokens [B, T]: [B, T, D].
func (m *transformer) embed(tokens *tensor.Tensor) *tensor.Tensor {
	c := m.config
	x := m.embedding().Gather(0, tokens)
	if !c.traits.rotary {
		x = x.Add(m.weights.get("position_embd.weight", c.Context, c.Width).Gather(0, m.positions))
	}
	return x
}

func (m *transformer) embedding() *tensor.Tensor {
	return m.weights.get("token_embd.weight", m.config.Vocabulary, m.config.Width)
}

// layer is one block: attention and feed-forward, each after a norm and with a
// residual.
func (m *transformer) layer(n int, x *tensor.Tensor) *tensor.Tensor {
	x = x.Add(m.attention(n, m.norm(n, "attn_norm", x)))
	return x.Add(m.feedForward(n, m.norm(n, "ffn_norm", x)))
}

// head is the final norm and the output matrix: logits [.., V].
func (m *transformer) head(x *tensor.Tensor) *tensor.Tensor {
	c := m.config
	x = m.normalise(x, "output_norm")
	if m.weights.has("output.weight") {
		return m.numeric.Linear(x, m.weights.get("output.weight", c.Vocabulary, c.Width))
	}
	return m.numeric.Linear(x, m.embedding())
}

func (m *transformer) norm(n int, name string, x *tensor.Tensor) *tensor.Tensor {
	return m.normalise(x, fmt.Sprintf("blk.%d.%s", n, name))
}

func (m *transformer) normalise(x *tensor.Tensor, name string) *tensor.Tensor {
	c := m.config
	weight := m.weights.get(name+".weight", c.Width)
	if c.traits.norm == layerNorm {
		return nn.LayerNorm(x, weight, m.weights.get(name+".bias", c.Width), c.Epsilon)
	}
	return nn.RMSNorm(x, weight, c.Epsilon)
}

// linear applies a block's matrix [rows, columns], with its bias if any.
func (m *transformer) linear(n int, name string, x *tensor.Tensor, rows, columns int, bias bool) *tensor.Tensor {
	prefix := fmt.Sprintf("blk.%d.%s", n, name)
	y := m.numeric.Linear(x, m.weights.get(prefix+".weight", rows, columns))
	if bias {
		y = y.Add(m.weights.get(prefix+".bias", rows))
	}
	return y
}

// attention projects x [B, T, D], writes this step's keys and values into the
// caches and attends to them.
func (m *transformer) attention(n int, x *tensor.Tensor) *tensor.Tensor {
	c := m.config
	q, k, v := m.project(n, x)
	q, k = m.headNorm(n, "attn_q_norm", q, c.Heads), m.headNorm(n, "attn_k_norm", k, c.KVHeads)
	if c.traits.rotary {
		q, k = m.rotation.Apply(q, c.traits.pairing), m.rotation.Apply(k, c.traits.pairing)
	}
	keys, values := m.remember(m.caches[n].keys, k), m.remember(m.caches[n].values, v)
	zero := m.weights.graph.Dims(0)[0]
	visible := func(t *tensor.Tensor) *tensor.Tensor { return t.Slice(2, zero, m.length).Cast(ir.F32) }
	out := nn.Attention(q, visible(keys), visible(values), m.positions)
	return m.linear(n, "attn_output", out, c.Width, c.Heads*c.HeadSize, c.traits.biases)
}

// project returns queries [B, T, H, D], keys and values [B, T, KV, D].
func (m *transformer) project(n int, x *tensor.Tensor) (q, k, v *tensor.Tensor) {
	c := m.config
	queries, shared := c.Heads*c.HeadSize, c.KVHeads*c.HeadSize
	if c.traits.fusedQKV {
		all := m.linear(n, "attn_qkv", x, queries+2*shared, c.Width, c.traits.biases)
		q = all.SliceInts(-1, 0, queries)
		k = all.SliceInts(-1, queries, shared)
		v = all.SliceInts(-1, queries+shared, shared)
	} else {
		bias := c.traits.qkvBias || c.traits.biases
		q = m.linear(n, "attn_q", x, queries, c.Width, bias)
		k = m.linear(n, "attn_k", x, shared, c.Width, bias)
		v = m.linear(n, "attn_v", x, shared, c.Width, bias)
	}
	return m.heads(q, c.Heads), m.heads(k, c.KVHeads), m.heads(v, c.KVHeads)
}

// heads splits the last axis: [B, T, n*D] to [B, T, n, D].
func (m *transformer) heads(x *tensor.Tensor, n int) *tensor.Tensor {
	dims := m.weights.graph.Dims(n, m.config.HeadSize)
	return x.ReshapeDims(x.Dim(0), x.Dim(1), dims[0], dims[1])
}

func (m *transformer) headNorm(n int, name string, x *tensor.Tensor, heads int) *tensor.Tensor {
	c := m.config
	full := fmt.Sprintf("blk.%d.%s.weight", n, name)
	switch c.traits.headNorm {
	case headNormEach:
		return nn.RMSNorm(x, m.weights.get(full, c.HeadSize), c.Epsilon)
	case headNormAll:
		width := heads * c.HeadSize
		flat := x.ReshapeDims(x.Dim(0), x.Dim(1), m.weights.graph.Dims(width)[0])
		return m.heads(nn.RMSNorm(flat, m.weights.get(full, width), c.Epsilon), heads)
	}
	return x
}

// remember stores x [B, T, KV, D] in a cache at the rows of its positions.
func (m *transformer) remember(cache, x *tensor.Tensor) *tensor.Tensor {
	g := m.weights.graph
	b, t, heads, d := x.Dim(0), x.Dim(1), x.Dim(2), x.Dim(3)
	one := g.Dims(1)[0]
	along := func(axis int, n *ir.UOp) *tensor.Tensor {
		shape := []*ir.UOp{one, one, one, one}
		shape[axis] = n
		return g.Iota(ir.I32, n).ReshapeDims(shape...)
	}
	row := m.positions.ReshapeDims(b, t, one, one)
	next := cache.AssignAt(x.Cast(cache.DType()), along(0, b), along(2, heads), row, along(3, d))
	g.Keep(next)
	return next
}

// feedForward is SwiGLU, a mixture of such experts, or two layers with GELU.
func (m *transformer) feedForward(n int, x *tensor.Tensor) *tensor.Tensor {
	c := m.config
	switch {
	case c.traits.experts:
		name := func(s string) string { return fmt.Sprintf("blk.%d.%s.weight", n, s) }
		return nn.Experts{
			Router: m.weights.get(name("ffn_gate_inp"), c.Experts, c.Width),
			Gate:   m.weights.get(name("ffn_gate_exps"), c.Experts, c.FeedForward, c.Width),
			Up:     m.weights.get(name("ffn_up_exps"), c.Experts, c.FeedForward, c.Width),
			Down:   m.weights.get(name("ffn_down_exps"), c.Experts, c.Width, c.FeedForward),
			Used:   c.ExpertsUsed, Numeric: m.numeric,
		}.Apply(x)
	case c.traits.gated:
		gate := m.linear(n, "ffn_gate", x, c.FeedForward, c.Width, false)
		up := m.linear(n, "ffn_up", x, c.FeedForward, c.Width, false)
		return m.linear(n, "ffn_down", gate.Silu().Mul(up), c.Width, c.FeedForward, false)
	}
	up := m.linear(n, "ffn_up", x, c.FeedForward, c.Width, c.traits.biases).GeluTanh()
	return m.linear(n, "ffn_down", up, c.Width, c.FeedForward, c.traits.biases)
}
