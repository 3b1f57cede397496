package testkit

import (
	"math"

	"pgregory.net/rapid"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/nn"
	"tgc/tensor"
)

// motifOps are the shapes of computation that the fusion rules look for.
var motifOps = []maker{
	{"softmax", 3, softmaxOp},
	{"rmsnorm", 3, rmsNormOp},
	{"layernorm", 2, layerNormOp},
	{"normed linear", 3, normedLinear},
	{"packed", 4, packedLinear},
	{"embedding", 1, embeddingOp},
	{"attention", 3, attentionOp},
	{"rotary", 1, rotaryOp},
	{"gated", 2, gatedOp},
	{"split", 2, splitProjection},
	{"quantised", 1, quantisedOp},
	{"topk", 1, topKOp},
	{"log sum exp", 1, logSumExp},
	{"one hit", 1, oneHitOp},
	{"scatter", 1, scatterOp},
	{"gradient", 2, gradientOp},
}

func softmaxOp(b *builder) *tensor.Tensor {
	x := b.float(1)
	if x == nil {
		return nil
	}
	return x.Softmax(b.axis(x))
}

func rmsNormOp(b *builder) *tensor.Tensor {
	x, shape := b.solid(1)
	if x == nil {
		return nil
	}
	return nn.RMSNorm(x, b.input(ir.F32, shape[len(shape)-1]), 1e-3)
}

func layerNormOp(b *builder) *tensor.Tensor {
	x, shape := b.solid(1)
	if x == nil {
		return nil
	}
	n := shape[len(shape)-1]
	var bias *tensor.Tensor
	if b.chance("bias") {
		bias = b.input(ir.F32, n)
	}
	return nn.LayerNorm(x, b.input(ir.F32, n), bias, 1e-2)
}

// norm draws one of the norms, a plain factor, or nothing.
func (b *builder) norm(x *tensor.Tensor, n int) *tensor.Tensor {
	switch b.intRange("norm", 0, 4) {
	case 1:
		return nn.RMSNorm(x, b.input(ir.F32, n), 1e-3)
	case 2:
		return nn.LayerNorm(x, b.input(ir.F32, n), nil, 1e-2)
	case 3:
		return nn.RMSNorm(x, b.input(ir.F32, n), 1e-3).Cast(ir.F16).Cast(ir.F32)
	case 4:
		return x.Mul(x.Abs().SumKeep(-1).AddScalar(1).Recip())
	}
	return x
}

// normedLinear: several projections of one normalised row, and a residual.
func normedLinear(b *builder) *tensor.Tensor {
	x, shape := b.solid(1)
	if x == nil {
		return nil
	}
	n := shape[len(shape)-1]
	y := b.norm(x, n)
	out := y.Linear(b.weight(n, n))
	if b.chance("second") {
		b.keep(y.Linear(b.weight(b.intRange("rows", 1, 6), n)))
	}
	if b.chance("residual") {
		out = out.Add(x)
	}
	return out
}

// packedFormats have blocks of up to 32 elements; superFormats of up to 256.
var (
	packedFormats = formatsOf(1, 32)
	superFormats  = formatsOf(33, 256)
)

// packedLinear: rows times a packed matrix, with the usual surroundings.
func packedLinear(b *builder) *tensor.Tensor {
	width := 32 * b.upTo("blocks", 3, 9)
	format := rapid.SampledFrom(packedFormats).Draw(b.t, "format")
	if b.limits.Elements >= 512 && b.intRange("super", 0, 3) == 3 {
		format, width = rapid.SampledFrom(superFormats).Draw(b.t, "format"), 256*b.upTo("super blocks", 1, 2)
	}
	rows := b.upTo("rows", 6, 70)
	x := b.input(ir.F32, b.upTo("tokens", 2, 19), width)
	y := b.norm(x, width)
	out := y.Linear(b.packedWeight(format, rows, width))
	switch b.intRange("more", 0, 3) {
	case 1:
		out = out.Silu().Mul(y.Linear(b.packedWeight(format, rows, width)))
	case 2:
		b.keep(y.Linear(b.packedWeight(rapid.SampledFrom(packedFormats).Draw(b.t, "format"), rows, width/32*32)))
	case 3:
		out = out.Add(b.input(ir.F32, rows))
	}
	return out
}

// embeddingOp gathers rows of a table, packed or plain.
func embeddingOp(b *builder) *tensor.Tensor {
	rows := b.intRange("vocabulary", 1, 5)
	at := b.inputInts(ir.I32, 0, int64(rows-1), b.intRange("tokens", 1, 3))
	if b.limits.Packed && b.chance("packed") {
		return b.packedWeight(rapid.SampledFrom(packedFormats).Draw(b.t, "format"), rows, 64).Gather(0, at)
	}
	return b.weight(rows, b.extent("width")).Gather(0, at)
}

// attentionOp: grouped heads over a cache with or without a mask.
func attentionOp(b *builder) *tensor.Tensor {
	batch, tokens := b.intRange("batch", 1, 2), b.upTo("tokens", 2, 5)
	kv, group, d := b.intRange("kv heads", 1, 2), b.upTo("group", 2, 4), b.upTo("head", 4, 33)
	length := b.upTo("length", 6, 40)
	q := b.input(ir.F32, batch, tokens, kv*group, d)
	if b.chance("projected") {
		x := b.norm(b.input(ir.F32, batch, tokens, 8), 8)
		q = x.Linear(b.weight(kv*group*d, 8)).Reshape(batch, tokens, kv*group, d)
	}
	keys, values := b.input(ir.F32, batch, kv, length, d), b.input(ir.F32, batch, kv, length, d)
	if b.size != nil {
		keys, values = b.input(ir.F32, batch, kv, b.sizeHigh(), d), b.input(ir.F32, batch, kv, b.sizeHigh(), d)
		zero := b.g.Dims(0)[0]
		keys, values = keys.Slice(2, zero, b.size), values.Slice(2, zero, b.size)
	}
	positions := b.inputInts(ir.I32, 0, int64(length-1), batch, tokens)
	return nn.Attention(q, keys, values, positions)
}

// rotaryOp rotates pairs of a projected head.
func rotaryOp(b *builder) *tensor.Tensor {
	heads, half := b.intRange("heads", 1, 2), b.intRange("pairs", 1, 3)
	positions := b.inputInts(ir.I32, 0, 9, 1, b.intRange("tokens", 1, 2))
	freq := lists.Make(half, func(i int) float64 { return math.Pow(10, -float64(i)) })
	kind := nn.PairNeighbours
	if b.chance("halves") {
		kind = nn.PairHalves
	}
	tokens := positions.Extent(1)
	x := b.input(ir.F32, 1, tokens, 8)
	q := b.norm(x, 8).Linear(b.weight(heads*2*half, 8)).Reshape(1, tokens, heads, 2*half)
	if b.chance("head norm") {
		q = nn.RMSNorm(q, b.input(ir.F32, 2*half), 1e-3)
	}
	return nn.NewRotation(positions, freq).Apply(q, kind)
}

// gatedOp: a gated feed-forward layer.
func gatedOp(b *builder) *tensor.Tensor {
	x, shape := b.solid(1)
	if x == nil {
		return nil
	}
	n, hidden := shape[len(shape)-1], b.upTo("hidden", 6, 70)
	y := b.norm(x, n)
	h := y.Linear(b.weight(hidden, n)).Silu().Mul(y.Linear(b.weight(hidden, n)))
	return x.Add(h.Linear(b.weight(n, hidden)))
}

// splitProjection: one matrix whose result is cut into parts.
func splitProjection(b *builder) *tensor.Tensor {
	x, shape := b.solid(1)
	if x == nil {
		return nil
	}
	n := b.intRange("part", 1, 4)
	all := b.norm(x, shape[len(shape)-1]).Linear(b.weight(3*n, shape[len(shape)-1]))
	q, k, v := all.SliceInts(-1, 0, n), all.SliceInts(-1, n, n), all.SliceInts(-1, 2*n, n)
	b.keep(k)
	if b.chance("reduce one part") {
		q = q.SumKeep(-1)
	}
	return q.Mul(v)
}

// quantisedOp: a row as small integers with a scale per group, times a matrix.
func quantisedOp(b *builder) *tensor.Tensor {
	groups := b.intRange("groups", 1, 3)
	x := b.input(ir.F32, groups, 8)
	scale := x.Abs().MaxKeep(-1).MulScalar(1.0 / 64).AddScalar(1e-3)
	q := x.Div(scale).AddScalar(0.5).Floor()
	if b.chance("as bytes") {
		q = q.Cast(ir.I8).Cast(ir.F32)
	}
	b.keep(q)
	return q.Mul(scale).Reshape(1, groups*8).Linear(b.weight(b.intRange("rows", 1, 4), groups*8))
}

// topKOp picks the best of a row of inputs and uses the choice as an index.
func topKOp(b *builder) *tensor.Tensor {
	n := b.intRange("candidates", 1, 6)
	scores := b.input(ir.F32, b.intRange("tokens", 1, 2), n)
	indices, values := nn.TopK(scores, b.intRange("used", 1, min(n, 3)))
	b.keep(values)
	if b.chance("read rows") {
		return b.weight(n, 3, 4).Gather(0, indices).Sum(-1)
	}
	return indices
}

func logSumExp(b *builder) *tensor.Tensor {
	x := b.float(1)
	if x == nil {
		return nil
	}
	k := b.axis(x)
	m := x.MaxKeep(k)
	b.keep(m)
	return x.Sub(m).Exp().SumKeep(k).Log().Add(m)
}
