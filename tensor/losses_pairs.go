package tensor

import "tgc/ir"

// CosineSimilarity is the cosine of the angle between t and u along an axis, which is
// dropped; norms below epsilon count as epsilon.
func (t *Tensor) CosineSimilarity(u *Tensor, axis int, epsilon float64) *Tensor {
	return t.widely2("cosine_similarity", u, func(x, y *Tensor) *Tensor {
		length := func(v *Tensor) *Tensor {
			return v.Mul(v).Sum(axis).ClampMin(epsilon * epsilon).Sqrt()
		}
		return x.Mul(y).Sum(axis).Div(length(x).Mul(length(y)))
	})
}

// CosineLoss is 1 - cos for pairs of rows [.. K] whose target is 1 and max(0, cos - margin)
// for those with -1, where cos is CosineSimilarity along the last axis.
func (t *Tensor) CosineLoss(u, target *Tensor, margin float64, reduction ...Reduction) *Tensor {
	r := optional(t, reduction)
	if !t.ok() || !u.ok() || !target.ok() {
		return t.bad()
	}
	cos := t.CosineSimilarity(u, -1, 1e-6)
	apart := cos.AddScalar(-margin).ClampMin(0)
	return target.Cast(ir.I32).Eq(t.graph.Scalar(ir.I32, 1)).Where(cos.Neg().AddScalar(1), apart).total(r)
}

// TripletLoss is max(0, |t-near| - |t-far| + margin) for anchors t [.. K]: one that is as
// near as another is far by the margin costs nothing.
func (t *Tensor) TripletLoss(near, far *Tensor, margin float64, reduction ...Reduction) *Tensor {
	r := optional(t, reduction)
	if !t.ok() || !near.ok() || !far.ok() {
		return t.bad()
	}
	return t.Sub(near).lengths(2).Sub(t.Sub(far).lengths(2)).AddScalar(margin).ClampMin(0).total(r)
}

// KLLoss is the divergence u*(log u - t) of each point, for t that holds logarithms of
// probabilities and targets u that hold probabilities; 0 where u is 0.
func (t *Tensor) KLLoss(u *Tensor, reduction ...Reduction) *Tensor {
	return t.pointLoss("kl_loss", u, optional(t, reduction), func(x, y *Tensor) *Tensor {
		return y.awayFromZero(func(p *Tensor) *Tensor { return p.Mul(p.Log().Sub(x)) })
	})
}
