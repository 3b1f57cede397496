package nn

import (
	"tgc/ir"
	"tgc/target"
	"tgc/tensor"
)

// TopK picks the k largest of each row of x [.., N] by counting ranks, which
// needs no sort: an element's rank is how many come before it, equals by index.
// It returns the indices (i32) and values, both [.., k], best first.
func TopK(x *tensor.Tensor, k int) (indices, values *tensor.Tensor) {
	g := x.Graph()
	n := x.Dim(-1)
	one := x.Unsqueeze(-1)   // [.. N 1]: the element
	other := x.Unsqueeze(-2) // [.. 1 N]: all others
	id := g.Iota(ir.I32, n)
	earlier := id.Unsqueeze(0).Lt(id.Unsqueeze(1)) // [N N]: other comes before element
	before := one.Lt(other).Or(one.Eq(other).And(earlier))
	yes, no := g.Scalar(ir.I32, 1), g.Scalar(ir.I32, 0)
	rank := before.Where(yes, no).Sum(-1) // [.. N]

	slot := g.Iota(ir.I32, g.Dims(k)[0]).Unsqueeze(-1) // [k 1]
	atSlot := rank.Unsqueeze(-2).Eq(slot)              // [.. k N]
	indices = atSlot.Where(id, no).Sum(-1)
	values = atSlot.Where(x.Unsqueeze(-2), g.Scalar(x.DType(), 0)).Sum(-1)
	return indices, values
}

// Experts holds the weights of a mixture of gated feed-forward experts:
// Gate and Up [E, F, D], Down [E, D, F], Router [E, D].
type Experts struct {
	Router, Gate, Up, Down *tensor.Tensor
	Used                   int     // experts per token
	Numeric                Numeric // of the products with Gate, Up and Down
}

// Apply routes x [B, T, D]: a softmax over all experts, the Used best, their
// outputs weighed by their probabilities (not renormalised). Only the chosen
// experts' weights are read. A target may order many tokens by their experts, so that
// each weight is read once for all of them.
func (e Experts) Apply(x *tensor.Tensor) *tensor.Tensor {
	chosen, weight := TopK(x.Linear(e.Router).Softmax(-1), e.Used)
	product := func(w, v *tensor.Tensor) *tensor.Tensor {
		in := e.Numeric.activations(v, w).Unsqueeze(-2)
		return w.Gather(0, chosen).Mul(in).Sum(-1)
	}
	in := x.Unsqueeze(2)                                        // [B T 1 D]
	hidden := product(e.Gate, in).Silu().Mul(product(e.Up, in)) // [B T J F]
	out := product(e.Down, hidden)                              // [B T J D]
	out = out.Mul(weight.Unsqueeze(-1)).Sum(2)
	return out.OnTarget(func(desc *target.Desc) *tensor.Tensor {
		batch, tokens, experts := x.Extent(0), x.Extent(1), e.Router.Extent(0)
		rows := desc.Tuning.TileRows(batch*tokens*e.Used, experts)
		if rows == 0 {
			return nil
		}
		chosen, weight := chosen.Flatten(0, 1), weight.Flatten(0, 1)
		return e.grouped(x.Flatten(0, 1), group(chosen, experts, rows), weight).Unflatten(0, batch, tokens)
	})
}
