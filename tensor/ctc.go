package tensor

import (
	"math"

	"tgc/ir"
)

// CTCOptions are those of CTCLoss.
type CTCOptions struct {
	Reduction Reduction // the mean divides each loss by its number of targets first
	Blank     int       // the class that means nothing
}

// CTCLoss is connectionist temporal classification: -log of the probability that t, logarithms of
// probabilities [T, N, C], spells targets [N, S] (integers) in its first steps (i32 [N]) frames,
// of which blanks and repetitions are dropped; of each row of targets the first lengths (i32 [N])
// count. Infinite where that cannot be.
func (t *Tensor) CTCLoss(targets, steps, lengths *Tensor, options ...CTCOptions) *Tensor {
	o := optional(t, options)
	if !t.ok() || !targets.ok() || !steps.ok() || !lengths.ok() {
		return t.bad()
	}
	if t.Rank() != 3 || targets.Rank() != 2 || !t.DType().IsFloat() || !targets.DType().IsInt() || targets.Dim(0) != t.Dim(1) || t.Extent(0) < 1 || o.Blank < 0 || o.Blank >= t.Extent(2) {
		return t.graph.fail("", "%s with targets %s, blank %d; want [T N C] and integers [N S]", t, targets, o.Blank)
	}
	for _, list := range []*Tensor{steps, lengths} {
		if list.Rank() != 1 || list.Dim(0) != t.Dim(1) || !list.DType().IsInt() {
			return t.graph.fail("", "%s with steps %s, lengths %s; want an integer for each of %d", t, steps, lengths, t.Extent(1))
		}
	}
	labels, skips := targets.betweenBlanks(o.Blank)
	frames := t.wide().TakeAlong(-1, labels.Unsqueeze(0)).halved() // [N L] each
	first := t.graph.Iota(ir.I32, labels.Dim(-1)).Lt(labels.scalar(2))
	least := frames[0].scalar(unlikely)
	alpha := first.Where(frames[0], least)
	at := t.graph.Ones(ir.I32, 1, 1)
	steps, lengths = steps.Cast(ir.I32).Unsqueeze(1), lengths.Cast(ir.I32).Unsqueeze(1) // [N 1]
	number := 0
	alpha = Loop(len(frames)-1, func(state []*Tensor) []*Tensor {
		alpha, at := state[0], state[1]
		number++
		before := func(k int) *Tensor { return alpha.behind(k) }
		sum := alpha.LogAddExp(before(1)).LogAddExp(skips.Where(before(2), least))
		return []*Tensor{at.Lt(steps).Where(sum.Add(frames[number]).Maximum(least), alpha), at.AddScalar(1)}
	}, alpha, at)[0]
	end := lengths.MulScalar(2)
	last := alpha.TakeAlong(-1, end)
	previous := lengths.Eq(lengths.scalar(0)).Where(least, alpha.TakeAlong(-1, end.AddScalar(-1).Maximum(end.scalar(0))))
	loss := last.LogAddExp(previous).Squeeze(-1).Neg() // [N]
	loss = loss.Lt(loss.scalar(-unlikely/2)).Where(loss, loss.scalar(math.Inf(1)))
	if o.Reduction == ReduceMean {
		loss = loss.Div(lengths.Squeeze(-1).Maximum(lengths.scalar(1)).Cast(loss.DType()))
	}
	return loss.total(o.Reduction).Cast(t.DType())
}

// unlikely is the logarithm of a probability of nothing, which is finite so that differences of
// two are no NaN.
const unlikely = -1e30

// betweenBlanks puts blanks [N] before, between and after targets [N S], and says where a label
// may follow the one before the blank before it.
func (t *Tensor) betweenBlanks(blank int) (labels, skips *Tensor) {
	t = t.Cast(ir.I32)
	n, s := t.Extent(0), t.Extent(1)
	blanks := t.scalar(float64(blank)).fill(t.graph.Dims(n, s, 1))
	labels = blanks.Cat(-1, t.Unsqueeze(-1)).Reshape(n, 2*s).Cat(-1, t.scalar(float64(blank)).fill(t.graph.Dims(n, 1))).Contiguous()
	far := t.graph.Iota(ir.I32, labels.Dim(-1)).Lt(labels.scalar(2)).Not()
	skips = far.And(labels.Ne(labels.scalar(float64(blank)))).And(labels.Ne(labels.Roll([]int{2}, []int{-1})))
	return labels, skips.Contiguous()
}

// behind is the last axis moved k places towards its end; nothing is likely before it.
func (t *Tensor) behind(k int) *Tensor {
	n := t.Extent(-1)
	if k >= n {
		return t.scalar(unlikely).fill(t.shape())
	}
	first := t.graph.Iota(ir.I32, t.Dim(-1)).Lt(t.graph.Scalar(ir.I32, float64(k)))
	return first.Where(t.scalar(unlikely), t.SliceInts(-1, 0, n-k).Pad(-1, k, 0))
}

// halved are the parts of the first axis, which goes: by halves, so that of all parts there are
// few kinds of kernels, and derivatives by them are put together by halves too.
func (t *Tensor) halved() []*Tensor {
	n := t.Extent(0)
	if n == 1 {
		return []*Tensor{t.Squeeze(0)}
	}
	half := 1
	for 2*half < n {
		half *= 2
	}
	return append(t.SliceInts(0, 0, half).Contiguous().halved(), t.SliceInts(0, half, n-half).Contiguous().halved()...)
}
