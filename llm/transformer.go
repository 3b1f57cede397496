package llm

import (
	"fmt"
	"slices"

	"tgc/ir"
	"tgc/nn"
	"tgc/tensor"
)

// transformer builds the layers of a model on a graph. One definition serves
// all architectures; what differs is in Config.
type transformer struct {
	config    *Config
	weights   *weights
	positions *tensor.Tensor // [B, T], i32
	rotations [rotaries]nn.Rotation
	length    *ir.UOp // cache rows to visit
	numeric   nn.Numeric
	caches    []layerCache
	last      *tensor.Tensor // [B], i32: the token whose logits are wanted; nil: all
}

// layerCache is the key and value cache of a layer.
type layerCache struct{ keys, values cache }

// embed looks up the rows of tokens [B, T]: [B, T, D].
func (m *transformer) embed(tokens *tensor.Tensor) *tensor.Tensor {
	c := m.config
	x := scaled(m.embedding().Gather(0, tokens), c.factors.embedding)
	if c.arch.learned {
		x = x.Add(m.weights.get("position_embd.weight", c.Context, c.Width).Gather(0, m.positions))
	}
	return x
}

// scaled is x times a factor.
func scaled(x *tensor.Tensor, factor float64) *tensor.Tensor {
	if factor == 1 {
		return x
	}
	return x.MulScalar(factor)
}

func (m *transformer) embedding() *tensor.Tensor {
	return m.weights.get("token_embd.weight", m.config.Vocabulary, m.config.Width)
}

// layer is one block: attention and feed-forward, each with a residual, and a norm
// before or after.
func (m *transformer) layer(n int, x *tensor.Tensor) *tensor.Tensor {
	arch := m.config.arch
	before := func(name string, x *tensor.Tensor) *tensor.Tensor {
		if arch.noNormBefore {
			return x
		}
		return m.norm(n, name, x)
	}
	after := func(name string, x *tensor.Tensor) *tensor.Tensor {
		if arch.normAfter {
			x = m.norm(n, name, x)
		}
		return scaled(x, m.config.factors.residual)
	}
	attended := m.attention(n, before("attn_norm", x))
	x = m.wanted(n, x).Add(after("post_attention_norm", attended))
	return x.Add(after("post_ffw_norm", m.feedForward(n, before(arch.feedNorm(), x))))
}

// wanted is what of x [B, T, ..] is used after the keys and values of layer n: after those of the last
// one only the tokens whose logits are wanted, [B, 1, ..].
func (m *transformer) wanted(n int, x *tensor.Tensor) *tensor.Tensor {
	if m.last == nil || n != len(m.caches)-1 {
		return x
	}
	return pick(x, m.last)
}

// pick takes row last[b] of x [B, T, ..] for each b: [B, 1, ..].
func pick(x, last *tensor.Tensor) *tensor.Tensor {
	g, shape := x.Graph(), x.Shape()
	sequences, tokens := x.Extent(0), x.Extent(1)
	index := g.Iota(ir.I32, shape[0]).MulScalar(float64(tokens)).Add(last)
	flat := x.ReshapeDims(append(g.Dims(sequences*tokens), shape[2:]...)...)
	return flat.Gather(0, index).Unsqueeze(1)
}

// head is the final norm and the output matrix: logits [.., V].
func (m *transformer) head(x *tensor.Tensor) *tensor.Tensor {
	c := m.config
	matrix := m.embedding
	if m.weights.has("output.weight") {
		matrix = func() *tensor.Tensor { return m.weights.get("output.weight", c.Vocabulary, c.Width) }
	}
	logits := m.numeric.Linear(m.normalise(x, "output_norm"), matrix())
	if m.weights.has("output.bias") {
		logits = logits.Add(m.weights.get("output.bias", c.Vocabulary))
	}
	return nn.SoftCap(scaled(logits, c.factors.logits), c.factors.logitCap)
}

func (m *transformer) norm(n int, name string, x *tensor.Tensor) *tensor.Tensor {
	return m.normalise(x, fmt.Sprintf("blk.%d.%s", n, name))
}

func (m *transformer) normalise(x *tensor.Tensor, name string) *tensor.Tensor {
	c := m.config
	weight := m.weights.get(name+".weight", c.Width)
	if c.arch.norm == layerNorm {
		return nn.LayerNorm(x, weight, m.weights.get(name+".bias", c.Width), c.Epsilon)
	}
	return nn.RMSNorm(x, weight, c.Epsilon)
}

// linear applies a block's matrix [rows, columns], with its bias if any.
func (m *transformer) linear(n int, name string, x *tensor.Tensor, rows, columns int) *tensor.Tensor {
	y := m.numeric.Linear(x, m.weights.get(fmt.Sprintf("blk.%d.%s.weight", n, name), rows, columns))
	if bias := m.bias(n, name, rows); bias != nil {
		y = y.Add(bias)
	}
	return y
}

// bias is that of a block's matrix, nil where there is none: some architectures always
// have one, and a file of another may.
func (m *transformer) bias(n int, name string, shape ...int) *tensor.Tensor {
	full := fmt.Sprintf("blk.%d.%s.bias", n, name)
	if !slices.Contains(m.config.arch.biases, name) && !m.weights.has(full) {
		return nil
	}
	return m.weights.get(full, shape...)
}

// attention projects x [B, T, D], writes this step's keys and values into the
// caches and attends to them, for the tokens that are wanted.
func (m *transformer) attention(n int, x *tensor.Tensor) *tensor.Tensor {
	c, layer := m.config, m.config.layers[n]
	q, k, v := m.project(n, x)
	q, k = m.headNorm(n, "attn_q_norm", q, c.Heads), m.headNorm(n, "attn_k_norm", k, c.KVHeads)
	if !c.arch.learned && layer.rotary != rotaryNone {
		rotation := m.rotations[layer.rotary]
		q, k = rotation.Apply(q, c.arch.pairing), rotation.Apply(k, c.arch.pairing)
	}
	keys, values := m.caches[n].keys.store(k, m.positions), m.caches[n].values.store(v, m.positions)
	options := nn.AttentionOptions{Scale: c.factors.attention, SoftCap: c.factors.scoreCap, Window: layer.window, Rows: m.windowRows(layer.window), Numeric: m.numeric}
	visible := func(t *tensor.Tensor) *tensor.Tensor {
		if options.Rows != nil {
			return t.Gather(2, options.Rows)
		}
		return t.Slice(2, m.weights.graph.Dims(0)[0], m.length)
	}
	if c.arch.sinks {
		options.Sinks = m.weights.get(fmt.Sprintf("blk.%d.attn_sinks.weight", n), c.Heads)
	}
	q, positions := m.wanted(n, m.temper(q)), m.wanted(n, m.positions)
	out := options.Apply(q, keys.read(visible), values.read(visible), positions)
	return m.linear(n, "attn_output", out, c.Width, c.Heads*c.HeadSize)
}

// windowRows are the cache rows that the queries of a step may see through a window: as
// many as fit, from the first one of the first query on. It is nil where that is no fewer than all,
// and for several sequences, whose positions differ.
func (m *transformer) windowRows(window int) *tensor.Tensor {
	context := m.caches[0].keys.rows()
	sequences, tokens := m.positions.Extent(0), m.positions.Extent(1)
	most := window + tokens - 1
	if window == 0 || sequences > 1 || most >= context {
		return nil
	}
	g := m.weights.graph
	first := m.positions.SliceInts(1, 0, 1).Reshape(1).AddScalar(float64(1-window)).Clamp(0, float64(context-most))
	rows := g.Arena().Binary(ir.OpMin, m.length, g.Dims(most)[0])
	return first.Add(g.Iota(ir.I32, rows))
}

// temper scales the queries q [B, T, H, D] of far positions up by 1 + s*log(1 + floor(p/length)),
// which sharpens a softmax over many rows (Ministral 3).
func (m *transformer) temper(q *tensor.Tensor) *tensor.Tensor {
	f := m.config.factors
	if f.temperature == 0 {
		return q
	}
	passed := m.positions.FloorDiv(q.Graph().Scalar(ir.I32, float64(f.temperatureLength))).Cast(ir.F32)
	factor := passed.AddScalar(1).Log().MulScalar(f.temperature).AddScalar(1)
	return q.Mul(factor.Unsqueeze(-1).Unsqueeze(-1))
}

// project returns queries [B, T, H, D], keys and values [B, T, KV, D]. A file may hold
// the three matrices as one.
func (m *transformer) project(n int, x *tensor.Tensor) (q, k, v *tensor.Tensor) {
	c := m.config
	queries, shared := c.Heads*c.HeadSize, c.KVHeads*c.HeadSize
	if m.weights.has(fmt.Sprintf("blk.%d.attn_qkv.weight", n)) {
		all := m.linear(n, "attn_qkv", x, queries+2*shared, c.Width)
		q = all.SliceInts(-1, 0, queries)
		k = all.SliceInts(-1, queries, shared)
		v = all.SliceInts(-1, queries+shared, shared)
	} else {
		q = m.linear(n, "attn_q", x, queries, c.Width)
		k = m.linear(n, "attn_k", x, shared, c.Width)
		v = m.linear(n, "attn_v", x, shared, c.Width)
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
	switch c.arch.headNorm {
	case headNormEach:
		return nn.RMSNorm(x, m.weights.get(full, c.HeadSize), c.Epsilon)
	case headNormAll:
		width := heads * c.HeadSize
		flat := x.ReshapeDims(x.Dim(0), x.Dim(1), m.weights.graph.Dims(width)[0])
		return m.heads(nn.RMSNorm(flat, m.weights.get(full, width), c.Epsilon), heads)
	}
	return x
}

// hiddenOf are the gated units.
var hiddenOf = map[feedKind]func(gate, up *tensor.Tensor) *tensor.Tensor{
	feedSwiGLU: nn.SwiGLU, feedFusedSwiGLU: nn.SwiGLU, feedGeGLU: nn.GeGLU, feedClampedGLU: nn.ClampedGLU,
}

// feedForward is a gated unit, a mixture of them, or two layers with GELU.
func (m *transformer) feedForward(n int, x *tensor.Tensor) *tensor.Tensor {
	c := m.config
	if c.Experts > 0 {
		return m.experts(n).Apply(x)
	}
	var hidden *tensor.Tensor
	switch c.arch.feed {
	case feedPlain:
		hidden = m.linear(n, "ffn_up", x, c.FeedForward, c.Width).GeluTanh()
	case feedFusedSwiGLU:
		both := m.linear(n, "ffn_up", x, 2*c.FeedForward, c.Width)
		hidden = nn.SwiGLU(both.SliceInts(-1, 0, c.FeedForward), both.SliceInts(-1, c.FeedForward, c.FeedForward))
	default:
		gate := m.linear(n, "ffn_gate", x, c.FeedForward, c.Width)
		up := m.linear(n, "ffn_up", x, c.FeedForward, c.Width)
		hidden = hiddenOf[c.arch.feed](gate, up)
	}
	return m.linear(n, "ffn_down", hidden, c.Width, c.FeedForward)
}

// experts are the weights of a block's mixture.
func (m *transformer) experts(n int) nn.Experts {
	c := m.config
	matrix := func(name string, shape ...int) *tensor.Tensor {
		return m.weights.get(fmt.Sprintf("blk.%d.%s.weight", n, name), shape...)
	}
	return nn.Experts{
		Router: matrix("ffn_gate_inp", c.Experts, c.Width), RouterBias: m.bias(n, "ffn_gate_inp", c.Experts),
		Gate: matrix("ffn_gate_exps", c.Experts, c.FeedForward, c.Width), GateBias: m.bias(n, "ffn_gate_exps", c.Experts, c.FeedForward),
		Up: matrix("ffn_up_exps", c.Experts, c.FeedForward, c.Width), UpBias: m.bias(n, "ffn_up_exps", c.Experts, c.FeedForward),
		Down: matrix("ffn_down_exps", c.Experts, c.Width, c.FeedForward), DownBias: m.bias(n, "ffn_down_exps", c.Experts, c.Width),
		Used: c.ExpertsUsed, AmongChosen: c.arch.experts != expertsAmongAll, Hidden: hiddenOf[c.arch.feed], Numeric: m.numeric,
	}
}
