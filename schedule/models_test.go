package schedule_test

import (
	"fmt"
	"math"

	"tgc/ir"
	"tgc/nn"
	"tgc/tensor"
)

// arch describes a model of the zoo: sizes, formats and what distinguishes the
// architectures. Only tests know models.
type arch struct {
	width, heads, kv, head, ff, vocab, context int

	format, vFormat string // packed format of the weights; "" is plain f32
	pairing         nn.Pairing
	headNorm        string // "", "each", "all"
	bias            bool
	experts, used   int
	gpt2            bool

	batch, tokens, layers int
	embed, output         bool // embedding in front, norm and output matrix behind
}

// llamaTiny is small enough to evaluate in a test.
func llamaTiny() arch {
	return arch{
		width: 64, heads: 4, kv: 2, head: 16, ff: 128, vocab: 32, context: 8,
		format: "Q8_0", pairing: nn.PairNeighbours, batch: 1, tokens: 1, layers: 1,
	}
}

// llama1B has the sizes of LLaMA-3.2-1B: for compile-only tests.
func llama1B(layers int) arch {
	return arch{
		width: 2048, heads: 32, kv: 8, head: 64, ff: 8192, vocab: 128256, context: 4096,
		format: "Q6_K", pairing: nn.PairNeighbours, batch: 1, tokens: 1, layers: layers, embed: true, output: true,
	}
}

// build makes the step's graph.
func (m arch) build() *tensor.Graph {
	g := tensor.NewGraph()
	b := &modelBuilder{arch: m, g: g}
	first := g.Input("positions", ir.I32, m.batch)
	b.positions = first.Unsqueeze(1).Add(g.Iota(ir.I32, g.Dims(m.tokens)[0]))
	b.length = g.Var("length", 1, int64(m.context))
	if !m.gpt2 {
		freq := make([]float64, m.head/2)
		for i := range freq {
			freq[i] = math.Pow(10000, -2*float64(i)/float64(m.head))
		}
		b.rotation = nn.NewRotation(b.positions, freq)
	}
	var x *tensor.Tensor
	if m.embed {
		tokens := g.Input("tokens", ir.I32, m.batch, m.tokens)
		x = b.weight("embd", m.format, m.vocab, m.width).Gather(0, tokens)
		if m.gpt2 {
			x = x.Add(b.weight("pos", "", m.context, m.width).Gather(0, b.positions))
		}
	} else {
		x = g.Input("x", ir.F32, m.batch, m.tokens, m.width)
	}
	for n := range m.layers {
		x = b.layer(n, x)
	}
	if m.output {
		x = b.norm("out", x).Linear(b.weight("output", m.format, m.vocab, m.width))
	}
	g.Output("result", x)
	return g
}

type modelBuilder struct {
	arch
	g         *tensor.Graph
	positions *tensor.Tensor
	rotation  nn.Rotation
	length    *ir.UOp
}

func (b *modelBuilder) weight(name, format string, shape ...int) *tensor.Tensor {
	if format == "" {
		return b.g.Input(name, ir.F32, shape...)
	}
	return b.g.Packed(name, format, shape...)
}

func (b *modelBuilder) norm(name string, x *tensor.Tensor) *tensor.Tensor {
	w := b.weight(name+".norm", "", x.Extent(-1))
	if b.gpt2 {
		return nn.LayerNorm(x, w, b.weight(name+".norm_bias", "", x.Extent(-1)), 1e-5)
	}
	return nn.RMSNorm(x, w, 1e-5)
}

func (b *modelBuilder) linear(name string, x *tensor.Tensor, rows int, bias bool) *tensor.Tensor {
	format := b.format
	if b.vFormat != "" && len(name) > 2 && name[len(name)-2:] == ".v" {
		format = b.vFormat
	}
	y := x.Linear(b.weight(name, format, rows, x.Extent(-1)))
	if bias {
		y = y.Add(b.weight(name+".bias", "", rows))
	}
	return y
}

func (b *modelBuilder) layer(n int, x *tensor.Tensor) *tensor.Tensor {
	p := fmt.Sprintf("%d", n)
	x = x.Add(b.attention(p, b.norm(p+".attn", x)))
	return x.Add(b.feedForward(p, b.norm(p+".ffn", x)))
}

func (b *modelBuilder) split(x *tensor.Tensor, heads int) *tensor.Tensor {
	d := b.g.Dims(heads, b.head)
	return x.ReshapeDims(x.Dim(0), x.Dim(1), d[0], d[1])
}

func (b *modelBuilder) headNormed(name string, x *tensor.Tensor, heads int) *tensor.Tensor {
	switch b.headNorm {
	case "each":
		return nn.RMSNorm(x, b.weight(name, "", b.head), 1e-6)
	case "all":
		flat := x.ReshapeDims(x.Dim(0), x.Dim(1), b.g.Dims(heads * b.head)[0])
		return b.split(nn.RMSNorm(flat, b.weight(name, "", heads*b.head), 1e-6), heads)
	}
	return x
}

func (b *modelBuilder) attention(p string, x *tensor.Tensor) *tensor.Tensor {
	queries, shared := b.heads*b.head, b.kv*b.head
	var q, k, v *tensor.Tensor
	if b.gpt2 {
		all := b.linear(p+".qkv", x, queries+2*shared, true)
		q, k, v = all.SliceInts(-1, 0, queries), all.SliceInts(-1, queries, shared), all.SliceInts(-1, queries+shared, shared)
	} else {
		q, k, v = b.linear(p+".q", x, queries, b.bias), b.linear(p+".k", x, shared, b.bias), b.linear(p+".v", x, shared, b.bias)
	}
	q, k, v = b.split(q, b.heads), b.split(k, b.kv), b.split(v, b.kv)
	q, k = b.headNormed(p+".qn", q, b.heads), b.headNormed(p+".kn", k, b.kv)
	if !b.gpt2 {
		q, k = b.rotation.Apply(q, b.pairing), b.rotation.Apply(k, b.pairing)
	}
	keys, values := b.remember(p+".kc", k), b.remember(p+".vc", v)
	zero := b.g.Dims(0)[0]
	out := nn.Attention(q, keys.Slice(2, zero, b.length), values.Slice(2, zero, b.length), b.positions)
	return b.linear(p+".o", out, b.width, b.gpt2)
}

func (b *modelBuilder) remember(name string, x *tensor.Tensor) *tensor.Tensor {
	cache := b.g.Input(name, ir.F32, b.batch, b.kv, b.context, b.head)
	one := b.g.Dims(1)[0]
	along := func(axis int, n *ir.UOp) *tensor.Tensor {
		shape := []*ir.UOp{one, one, one, one}
		shape[axis] = n
		return b.g.Iota(ir.I32, n).ReshapeDims(shape...)
	}
	row := b.positions.ReshapeDims(x.Dim(0), x.Dim(1), one, one)
	next := cache.AssignAt(x, along(0, x.Dim(0)), along(2, x.Dim(2)), row, along(3, x.Dim(3)))
	b.g.Keep(next)
	return next
}

func (b *modelBuilder) feedForward(p string, x *tensor.Tensor) *tensor.Tensor {
	switch {
	case b.experts > 0:
		return nn.Experts{
			Router: b.weight(p+".router", "", b.experts, b.width),
			Gate:   b.weight(p+".gate", b.format, b.experts, b.ff, b.width),
			Up:     b.weight(p+".up", b.format, b.experts, b.ff, b.width),
			Down:   b.weight(p+".down", b.format, b.experts, b.width, b.ff),
			Used:   b.used,
		}.Apply(x)
	case b.gpt2:
		return b.linear(p+".down", b.linear(p+".up", x, b.ff, true).GeluTanh(), b.width, true)
	}
	gate, up := b.linear(p+".gate", x, b.ff, false), b.linear(p+".up", x, b.ff, false)
	return b.linear(p+".down", gate.Silu().Mul(up), b.width, false)
}
