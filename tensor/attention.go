package tensor

import (
	"math"

	"tgc/ir"
)

// AttentionOptions are those of PyTorch's scaled_dot_product_attention.
type AttentionOptions struct {
	Mask    *Tensor // broadcast to [.. L S]; Bool: true attends; floats are added
	Causal  bool    // query i sees keys 0..i
	Scale   float64 // 0 is 1/sqrt(E)
	Grouped bool    // each key head (axis -3) serves that many neighbouring query heads
}

// Attention is scaled dot-product attention (Vaswani et al. 2017): softmax(t
// keys^T * scale + mask) values, for queries t [.., L, E], keys [.., S, E] and
// values [.., S, V]. A query that may see no key gives NaN. The compiler makes
// one online softmax of it; halves are computed in f32.
func (t *Tensor) Attention(keys, values *Tensor, options ...AttentionOptions) *Tensor {
	o := optional(t, options)
	if !t.ok() || !keys.ok() || !values.ok() || o.Mask != nil && !o.Mask.ok() {
		return t.bad()
	}
	if t.Rank() < 2 || keys.Rank() < 2 || values.Rank() < 2 || t.Dim(-1) != keys.Dim(-1) || keys.Dim(-2) != values.Dim(-2) {
		return t.graph.fail("attention", "queries %s, keys %s, values %s; want [.. L E], [.. S E] and [.. S V]", t, keys, values)
	}
	q, k, v, mask := t.wide(), keys.wide(), values.wide(), o.Mask
	if o.Grouped {
		if t.Rank() < 3 || keys.Rank() < 3 || values.Rank() < 3 || keys.Dim(-3) != values.Dim(-3) || keys.Extent(-3) < 1 || t.Extent(-3)%keys.Extent(-3) != 0 {
			return t.graph.fail("attention", "grouped queries %s, keys %s, values %s: query heads are no multiple of key heads", t, keys, values)
		}
		heads, group := keys.Extent(-3), t.Extent(-3)/keys.Extent(-3)
		q, k, v = q.Unflatten(-3, heads, group), k.Unsqueeze(-3), v.Unsqueeze(-3)
		if mask != nil && mask.Rank() >= 3 {
			if mask.Extent(-3) == 1 {
				mask = mask.Unsqueeze(-3)
			} else {
				mask = mask.Unflatten(-3, heads, group)
			}
		}
	}
	scale := o.Scale
	if scale == 0 {
		scale = 1 / math.Sqrt(float64(t.Extent(-1)))
	}
	scores := q.MatMul(k.Transpose(-1, -2)).MulScalar(scale)
	scores = scores.masked(mask, o.Causal)
	out := scores.Softmax(-1).MatMul(v)
	if o.Grouped {
		out = out.Flatten(-4, -3)
	}
	return out.Cast(t.DType())
}

// masked hides scores [.., L, S] from the softmax.
func (t *Tensor) masked(mask *Tensor, causal bool) *Tensor {
	hidden := t.scalar(math.Inf(-1))
	if causal {
		row, column := t.graph.Iota(ir.I32, t.Dim(-2)).Unsqueeze(-1), t.graph.Iota(ir.I32, t.Dim(-1))
		t = column.Le(row).Where(t, hidden)
	}
	switch {
	case mask == nil:
		return t
	case mask.DType() == ir.Bool:
		return mask.Where(t, hidden)
	}
	return t.Add(mask.Cast(t.DType()))
}
