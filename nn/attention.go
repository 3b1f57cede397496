package nn

import (
	"math"

	"tgc/ir"
	"tgc/target"
	"tgc/tensor"
)

// AttentionOptions are what models add to scaled dot-product attention. The zero
// value adds nothing.
type AttentionOptions struct {
	Scale   float64        // of scores; 0: one over the square root of the head size
	SoftCap float64        // scores s become SoftCap*tanh(s/SoftCap); 0: they stay
	Window  int            // cache rows that a query sees, its own among them; 0: all before it
	Sinks   *tensor.Tensor // [H]: a score a head that takes its share of the softmax and has no value; may be nil
	Rows    *tensor.Tensor // [length] (i32): the cache rows of keys and values; nil: 0, 1, 2, ..
	Numeric Numeric        // Int8 may round queries, keys and values to f16 where queries are many: an error of 3e-8
}

// Attention is causal scaled dot-product attention (Vaswani et al. 2017) with
// grouped heads (Ainslie et al. 2023) over a cache.
//
// q is [B, T, H, D]; keys and values are [B, KV, length, D], of f32 or f16, where H is a
// multiple of KV and neighbouring query heads share one; positions [B, T] (i32)
// are those of the queries: query t sees the cache rows 0..positions[b,t].
// The result is [B, T, H*D].
func Attention(q, keys, values, positions *tensor.Tensor) *tensor.Tensor {
	return AttentionOptions{}.Apply(q, keys, values, positions)
}

// Apply is Attention with options.
func (o AttentionOptions) Apply(q, keys, values, positions *tensor.Tensor) *tensor.Tensor {
	return o.attend(q, keys, values, positions).OnTarget(func(desc *target.Desc) *tensor.Tensor {
		queries, _ := q.Dim(1).Int()
		many := func(least int64) bool { return least > 0 && queries >= least }
		switch {
		case o.Numeric == Int8 && many(desc.Tuning.HalfRows):
			return o.attend(ToHalf(q), ToHalf(keys), ToHalf(values), positions)
		case keys.DType() == ir.F16 && many(desc.Tuning.WideRows):
			return o.attend(q, keys.Cast(ir.F32).Contiguous(), values.Cast(ir.F32).Contiguous(), positions)
		}
		return nil
	})
}

// ToHalf gives the numbers of f16 nearest to t, the largest ones where t is beyond them. Every warp rounds
// the keys that it multiplies: a maximum and a minimum are an instruction each.
func ToHalf(t *tensor.Tensor) *tensor.Tensor {
	if t.DType() == ir.F16 {
		return t
	}
	most := func(x float64) *tensor.Tensor { return t.Graph().Scalar(ir.F32, x) }
	return t.Maximum(most(-largestHalf)).Minimum(most(largestHalf)).Cast(ir.F16)
}

func (o AttentionOptions) attend(q, keys, values, positions *tensor.Tensor) *tensor.Tensor {
	g := q.Graph()
	q, keys, values = q.Cast(ir.F32), keys.Cast(ir.F32), values.Cast(ir.F32)
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

	scale := o.Scale
	if scale == 0 {
		scale = 1 / math.Sqrt(float64(d))
	}
	scores := SoftCap(q.Unsqueeze(-2).Mul(keys).Sum(-1).MulScalar(scale), o.SoftCap) // [B KV G T L]
	row := o.Rows
	if row == nil {
		row = g.Iota(ir.I32, length)
	}
	limit := positions.ReshapeDims(b, one, one, t, one)
	seen := row.Le(limit)
	if o.Window > 0 {
		seen = seen.And(limit.AddScalar(-float64(o.Window)).Lt(row))
	}
	scores = seen.Where(scores, g.Scalar(ir.F32, math.Inf(-1)))
	out := o.weigh(scores, values) // [B KV G T D]
	return out.Permute(0, 3, 1, 2, 4).ReshapeDims(b, t, dims(heads*d))
}

// weigh sums values [B KV 1 1 L D] by the softmax of scores [B KV G T L]. A sink is one
// more term of the softmax's denominator.
func (o AttentionOptions) weigh(scores, values *tensor.Tensor) *tensor.Tensor {
	if o.Sinks == nil {
		return scores.Softmax(-1).Unsqueeze(-1).Mul(values).Sum(-2)
	}
	kv, group := scores.Extent(1), scores.Extent(2)
	sinks := o.Sinks.Reshape(1, kv, group, 1, 1)
	most := scores.MaxKeep(-1).Detach()
	terms := scores.Sub(most).Exp()
	total := terms.SumKeep(-1).Add(sinks.Sub(most).Exp()) // [B KV G T 1]
	return terms.Mul(total.Recip()).Unsqueeze(-1).Mul(values).Sum(-2)
}

// SoftCap bounds x smoothly: limit*tanh(x/limit). 0 is no bound.
func SoftCap(x *tensor.Tensor, limit float64) *tensor.Tensor {
	if limit == 0 {
		return x
	}
	return x.MulScalar(1 / limit).Tanh().MulScalar(limit)
}
