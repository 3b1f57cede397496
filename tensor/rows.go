package tensor

import "tgc/ir"

// RowFactor writes t [.., D], where it is a product, as rest [.., D] times factor [.., 1]: what
// its factors that are the same along the last axis make, the reciprocal root of a norm for
// example. factor is nil where there is none. The product of both is t but for roundings.
func (t *Tensor) RowFactor() (rest, factor *Tensor) {
	if !t.ok() || t.Rank() == 0 || t.Dim(-1).IsInt(1) {
		return t, nil
	}
	var visit func(u *ir.UOp)
	visit = func(u *ir.UOp) {
		part, into := t.graph.wrap(u), &rest
		switch {
		case u.Op == ir.OpMul:
			visit(u.Src[0])
			visit(u.Src[1])
			return
		case u.Op == ir.OpExpand && t.graph.wrap(u.Src[0]).Dim(-1).IsInt(1):
			part, into = t.graph.wrap(u.Src[0]), &factor
		}
		if *into != nil {
			part = (*into).Mul(part)
		}
		*into = part
	}
	visit(t.node)
	if rest == nil || factor == nil {
		return t, nil
	}
	return rest, factor
}
