package nn

import (
	"math"

	"tgc/ir"
	"tgc/tensor"
)

// Attention is causal scaled dot-product attention (Vaswani et al. 2017) with
// grouped heads (Ainslie et al. 2023) over a cache.
//
// q is [B, T, H, D]; keys and values are [B, KV, length, D], where H is a
// multiple of KV and neighbouring query heads share one; positions [B, T] (i32)
// are those of the queries: query t sees the cache rows 0..positions[b,t].
// The result is [B, T, H*D].
func Attention(q, keys, values, positions *tensor.Tensor) *tensor.Tensor {
	g := q.Graph()
	b, t := q.Dim(0), q.Dim(1)
	heads, d := q.Extent(2), q.Extent(3)
	kv := keys.Extent(1)
	group := heads / max(kv, 1)
	one := g.Dims(1)[0]
	dims := func(n int) *ir.UOp { return g.Dims(n)[0] }

	q = q.ReshapeDims(b, t, dims(kv), dims(group), dims(d)).Permute(0, 2, 3, 1, 4) // [B KV G T D]
	length := keys.Dim(2)
	keys = keys.ReshapeDims(b, dims(kv), one, one, length, dims(d))
	values = values.ReshapeDims(b, dims(kv), one, one, length, dims(d))

	scores := q.Unsqueeze(-2).Mul(keys).Sum(-1).MulScalar(1 / math.Sqrt(float64(d))) // [B KV G T L]
	row := g.Iota(ir.I32, length)
	limit := positions.ReshapeDims(b, one, one, t, one)
	seen := row.Le(limit)
	scores = seen.Where(scores, g.Scalar(ir.F32, math.Inf(-1)))
	out := scores.Softmax(-1).Unsqueeze(-1).Mul(values).Sum(-2) // [B KV G T D]
	return out.Permute(0, 3, 1, 2, 4).ReshapeDims(b, t, dims(heads*d))
}
