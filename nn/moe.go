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
// Gate and Up [E, F, D], Down [E, D, F], Router [E, D]; and their biases, nil where
// there are none: those of Gate and Up [E, F], of Down [E, D], of Router [E].
type Experts struct {
	Router, Gate, Up, Down                 *tensor.Tensor
	RouterBias, GateBias, UpBias, DownBias *tensor.Tensor
	Used                                   int // experts per token
	// AmongChosen weighs the chosen experts by a softmax over their own scores, so
	// that the weights sum to 1; else it is one over the scores of all.
	AmongChosen bool
	Hidden      func(gate, up *tensor.Tensor) *tensor.Tensor // nil: SwiGLU
	Numeric     Numeric                                      // of the products with Gate, Up and Down
}

// SwiGLU is silu(gate) * up (Shazeer 2020).
func SwiGLU(gate, up *tensor.Tensor) *tensor.Tensor { return gate.Silu().Mul(up) }

// GeGLU is gelu(gate) * up (Shazeer 2020), with the tanh form of GELU.
func GeGLU(gate, up *tensor.Tensor) *tensor.Tensor { return gate.GeluTanh().Mul(up) }

// ClampedGLU is the gated unit of gpt-oss: gate up to 7 and up within 7 of 0; a
// sigmoid 1.702 times as steep as silu's; 1 is added to up.
func ClampedGLU(gate, up *tensor.Tensor) *tensor.Tensor {
	const limit, steepness = 7, 1.702
	gate = gate.ClampMax(limit)
	return gate.Mul(gate.MulScalar(steepness).Sigmoid()).Mul(up.Clamp(-limit, limit).AddScalar(1))
}

// hidden is what Down is multiplied with.
func (e Experts) hidden(gate, up *tensor.Tensor) *tensor.Tensor {
	if e.Hidden == nil {
		return SwiGLU(gate, up)
	}
	return e.Hidden(gate, up)
}

// route picks the experts of each token of x [.., D] and their weights, both [.., Used].
func (e Experts) route(x *tensor.Tensor) (chosen, weight *tensor.Tensor) {
	scores := x.Linear(e.Router)
	if e.RouterBias != nil {
		scores = scores.Add(e.RouterBias)
	}
	chosen, weight = TopK(scores.Softmax(-1), e.Used)
	// Not a softmax of the chosen scores: it would be one loop with the experts' outputs (fuse-softmax),
	// which is then planned for a few scores and not for the weights that stream past.
	if e.AmongChosen {
		weight = weight.Mul(weight.SumKeep(-1).Recip())
	}
	return chosen, weight
}

// Apply routes x [B, T, D]: the Used experts of the best scores, their outputs weighed.
// Only the chosen experts' weights are read. A target may order many tokens by their
// experts, so that each weight is read once for all of them.
func (e Experts) Apply(x *tensor.Tensor) *tensor.Tensor {
	chosen, weight := e.route(x)
	product := func(w, bias, v *tensor.Tensor) *tensor.Tensor {
		in := e.Numeric.activations(v, w).Unsqueeze(-2)
		out := w.Gather(0, chosen).Mul(in).Sum(-1)
		if bias != nil {
			out = out.Add(bias.Gather(0, chosen))
		}
		return out
	}
	in := x.Unsqueeze(2)                                                             // [B T 1 D]
	hidden := e.hidden(product(e.Gate, e.GateBias, in), product(e.Up, e.UpBias, in)) // [B T J F]
	out := product(e.Down, e.DownBias, hidden)                                       // [B T J D]
	out = out.Mul(weight.Unsqueeze(-1)).Sum(2)
	return out.OnTarget(func(desc *target.Desc) *tensor.Tensor {
		batch, tokens, experts := x.Extent(0), x.Extent(1), e.Router.Extent(0)
		rows := desc.Tuning.TileRows(batch*tokens*e.Used, experts, e.Numeric.inBytes(e.Gate))
		if rows == 0 {
			return nil
		}
		chosen, weight := chosen.Flatten(0, 1), weight.Flatten(0, 1)
		return e.grouped(x.Flatten(0, 1), group(chosen, experts, rows), weight, desc).Unflatten(0, batch, tokens)
	})
}
