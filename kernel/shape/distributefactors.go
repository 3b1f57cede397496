package shape

import (
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/kernel/plan"
	"tgc/target"
)

// Factors of the rows of panels. A block's scale stands outside of the sum over its groups, since it is then
// multiplied once for each block. In a panel it is multiplied into the scales of the groups before any token reads them:
//
//	sum_b d * sum_g s * f(b, g)  ->  sum_b sum_g (d*s) * f(b, g)
//
// so that the loop over blocks has nothing to do, and no sums of its own that take registers of a tile. It re-associates
// (FMA: class A).

// distributeFactors moves factors of rows into inner sums that multiply with such factors.
func distributeFactors(st *State, sink *ir.UOp) *ir.UOp {
	if !st.Options.FMA || st.Desc.Kind == target.GPU || !st.sumsPanels() {
		return sink
	}
	h, err := newHoister(st, sink)
	if err != nil {
		return sink // order-ranges reports it
	}
	var panel analyse.RangeSet
	for _, p := range st.Axes {
		if p.Stage && p.Axis.Kind == plan.StoreAxis {
			panel.Add(h.free.Index.Of(p.Axis.Range))
		}
	}
	ofRows := func(u *ir.UOp) bool {
		stores := h.free.Of(u).Meet(h.store)
		return !stores.Empty() && stores.Minus(panel).Empty() && !isInnerSum(u)
	}
	return st.Arena.Rebuild(sink, func(u *ir.UOp, src []*ir.UOp) *ir.UOp {
		if !analyse.IsFloatSum(u) {
			return nil
		}
		return st.Arena.With(u, []*ir.UOp{distributed(st.Arena, src[0], ofRows), src[1]})
	})
}

// distributed is a product with an inner sum that has taken in the other factors of rows.
func distributed(a *ir.Arena, u *ir.UOp, ofRows func(*ir.UOp) bool) *ir.UOp {
	factors := analyse.Factors(u)
	i := slices.IndexFunc(factors, analyse.IsFloatSum)
	rows := lists.Filter(factors, ofRows)
	if i < 0 || len(rows) == 0 {
		return u
	}
	inner := withFactor(a, factors[i], analyse.Product(a, rows), ofRows)
	if inner == nil {
		return u
	}
	rest := lists.Filter(slices.Delete(factors, i, i+1), func(f *ir.UOp) bool { return !ofRows(f) })
	return analyse.Product(a, append(rest, inner))
}

// withFactor multiplies what a sum adds up, if that has factors of rows; else it is nil.
func withFactor(a *ir.Arena, sum, factor *ir.UOp, ofRows func(*ir.UOp) bool) *ir.UOp {
	body := sum.Src[0]
	switch {
	case analyse.IsFloatSum(body):
		if body = withFactor(a, body, factor, ofRows); body == nil {
			return nil
		}
	case slices.ContainsFunc(analyse.Factors(body), ofRows):
		body = a.Mul(body, factor)
	default:
		return nil
	}
	return a.Reduce(ir.OpAdd, body, sum.ReduceRange())
}
