package tensor

import "slices"

// Reduction says what a loss makes of the values of its points; not given, their mean.
type Reduction uint8

// The reductions.
const (
	ReduceMean Reduction = iota
	ReduceSum
	ReduceNone // one value for each point
)

// CrossEntropyOptions are those of PyTorch's cross_entropy and nll_loss.
type CrossEntropyOptions struct {
	Reduction Reduction
	Smoothing float64 // this part of the target is spread evenly over the classes
	Ignore    *int    // points of this class count for nothing; nil is -100
}

// CrossEntropy is -log softmax(t)[target] for logits t [N, C, ..] (or [C]) and a
// target of classes (integers [N, ..]) or of probabilities (t's shape and
// dtype). The mean of classes is over the points that are not ignored, that of
// probabilities over all points.
func (t *Tensor) CrossEntropy(target *Tensor, options ...CrossEntropyOptions) *Tensor {
	o := optional(t, options)
	if !t.ok() || !target.ok() {
		return t.bad()
	}
	if target.DType().IsInt() {
		return t.wide().logProbabilities().classLoss("cross_entropy", target, o).Cast(t.DType())
	}
	if !slices.Equal(t.shape(), target.shape()) || t.DType() != target.DType() || t.Rank() < 1 {
		return t.graph.fail("cross_entropy", "logits %s, target %s; want classes, or probabilities of that shape", t, target)
	}
	axis := t.classAxis()
	p := target.wide()
	if o.Smoothing != 0 {
		p = p.MulScalar(1 - o.Smoothing).AddScalar(o.Smoothing / float64(t.Extent(axis)))
	}
	loss := p.Mul(t.wide().logProbabilities()).Sum(axis).Neg()
	return loss.total(o.Reduction).Cast(t.DType())
}

// NLLLoss is CrossEntropy for t that holds logarithms of probabilities; target
// holds classes.
func (t *Tensor) NLLLoss(target *Tensor, options ...CrossEntropyOptions) *Tensor {
	o := optional(t, options)
	if !t.ok() || !target.ok() {
		return t.bad()
	}
	return t.wide().classLoss("nll_loss", target, o).Cast(t.DType())
}

// classAxis is the axis of classes of [N, C, ..] or [C].
func (t *Tensor) classAxis() int { return min(t.Rank()-1, 1) }

// logProbabilities is log softmax along the axis of classes.
func (t *Tensor) logProbabilities() *Tensor {
	if t.Rank() < 1 {
		return t.graph.fail("cross_entropy", "logits %s, want [N C ..]", t)
	}
	return t.LogSoftmax(t.classAxis())
}

// classLoss is the loss of logarithms of probabilities at classes.
func (t *Tensor) classLoss(op string, target *Tensor, o CrossEntropyOptions) *Tensor {
	if !t.ok() {
		return t.bad()
	}
	axis := t.classAxis()
	want := t.Shape()
	if axis >= 0 {
		want = append(want[:axis], want[axis+1:]...)
	}
	if axis < 0 || !target.DType().IsInt() || !slices.Equal(target.shape(), want) {
		return t.graph.fail(op, "scores %s, target %s; want [N C ..] and integers [N ..]", t, target)
	}
	// The element is picked by a sum in which one class hits, not by GATHER: it
	// joins the loop of the softmax, and its gradient is elementwise.
	class := t.graph.axisIota(target.DType(), t.shape(), axis)
	zero := t.scalar(0)
	loss := target.Unsqueeze(axis).Eq(class).Where(t, zero).Sum(axis).Neg()
	if o.Smoothing != 0 {
		even := t.Sum(axis).MulScalar(-o.Smoothing / float64(t.Extent(axis)))
		loss = loss.MulScalar(1 - o.Smoothing).Add(even)
	}
	ignored := -100
	if o.Ignore != nil {
		ignored = *o.Ignore
	}
	if ignored < 0 && !target.DType().IsSigned() {
		return loss.total(o.Reduction)
	}
	skip := target.Eq(target.scalar(float64(ignored)))
	loss = skip.Where(zero, loss)
	if o.Reduction != ReduceMean {
		return loss.total(o.Reduction)
	}
	return loss.Sum().Div(skip.Where(zero, t.scalar(1)).Sum())
}

// total applies a reduction.
func (t *Tensor) total(r Reduction) *Tensor {
	switch {
	case !t.ok() || r == ReduceNone:
		return t
	case r == ReduceSum:
		return t.Sum()
	}
	return t.Mean()
}

// pointLoss applies a loss of one point to t and u, of one shape and dtype.
func (t *Tensor) pointLoss(op string, u *Tensor, r Reduction, loss func(x, y *Tensor) *Tensor) *Tensor {
	if !t.ok() || !u.ok() {
		return t.bad()
	}
	if t.DType() != u.DType() || !t.DType().IsFloat() || !slices.Equal(t.shape(), u.shape()) {
		return t.graph.fail(op, "%s and %s, want floats of one shape", t, u)
	}
	return loss(t.wide(), u.wide()).total(r).Cast(t.DType())
}

// MSELoss is (t-u)^2.
func (t *Tensor) MSELoss(u *Tensor, reduction ...Reduction) *Tensor {
	r := optional(t, reduction)
	return t.pointLoss("mse_loss", u, r, func(x, y *Tensor) *Tensor {
		d := x.Sub(y)
		return d.Mul(d)
	})
}

// L1Loss is |t-u|.
func (t *Tensor) L1Loss(u *Tensor, reduction ...Reduction) *Tensor {
	r := optional(t, reduction)
	return t.pointLoss("l1_loss", u, r, func(x, y *Tensor) *Tensor { return x.Sub(y).Abs() })
}

// HuberLoss is d^2/2 for d = |t-u| < delta, else delta*(d - delta/2) (Huber
// 1964).
func (t *Tensor) HuberLoss(u *Tensor, delta float64, reduction ...Reduction) *Tensor {
	r := optional(t, reduction)
	return t.pointLoss("huber_loss", u, r, func(x, y *Tensor) *Tensor { return huber(x, y, delta) })
}

// SmoothL1Loss is HuberLoss with delta = beta, divided by beta; L1Loss for beta
// 0.
func (t *Tensor) SmoothL1Loss(u *Tensor, beta float64, reduction ...Reduction) *Tensor {
	r := optional(t, reduction)
	if beta == 0 {
		return t.L1Loss(u, r)
	}
	return t.pointLoss("smooth_l1_loss", u, r, func(x, y *Tensor) *Tensor {
		return huber(x, y, beta).MulScalar(1 / beta)
	})
}

func huber(x, y *Tensor, delta float64) *Tensor {
	d := x.Sub(y)
	far := d.Abs()
	outer := far.AddScalar(-delta / 2).MulScalar(delta)
	return far.Lt(far.scalar(delta)).Where(d.Mul(d).MulScalar(0.5), outer)
}

// BCELoss is the binary cross entropy -(u*log t + (1-u)*log(1-t)) of
// probabilities t; logarithms are at least -100, as in PyTorch.
func (t *Tensor) BCELoss(u *Tensor, reduction ...Reduction) *Tensor {
	r := optional(t, reduction)
	return t.pointLoss("bce_loss", u, r, func(p, y *Tensor) *Tensor {
		one, least := p.scalar(1), p.scalar(-100)
		yes, no := p.Log().Maximum(least), one.Sub(p).Log().Maximum(least)
		return y.Mul(yes).Add(one.Sub(y).Mul(no)).Neg()
	})
}

// BCELogitsLoss is BCELoss of sigmoid(t), without overflow: log(1 + exp(t)) -
// t*u.
func (t *Tensor) BCELogitsLoss(u *Tensor, reduction ...Reduction) *Tensor {
	r := optional(t, reduction)
	return t.pointLoss("bce_logits_loss", u, r, func(x, y *Tensor) *Tensor {
		return x.Softplus(1).Sub(x.Mul(y))
	})
}
