package shape

import (
	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/kernel/plan"
	"tgc/target"
)

// reassociateProducts multiplies the factors of summed products in groups that depend on
// the same store ranges. A product ((x*d)*s)*q of activations and a decoded
// weight becomes x*((d*s)*q), whose second factor a panel can hold and copies for
// several tokens share. It is done where the plan allows other rounding (STAGE,
// FMA: class A).
func reassociateProducts(st *State, sink *ir.UOp) *ir.UOp {
	h, err := newHoister(st, sink)
	if err != nil {
		return sink // order-ranges reports it
	}
	staged, panel := false, analyse.RangeSet{}
	for _, p := range st.Axes {
		staged = staged || p.Stage
		if p.Stage && p.Axis.Kind == plan.StoreAxis {
			panel.Add(h.free.Index.Of(p.Axis.Range))
		}
	}
	if !staged && !st.Options.FMA {
		return sink
	}
	h.store = h.store.Minus(gridAxes(st, h.free, sink, st.Axes))
	return st.Arena.Rebuild(sink, func(u *ir.UOp, src []*ir.UOp) *ir.UOp {
		if !analyse.IsFloatSum(u) {
			return nil
		}
		return st.Arena.With(u, []*ir.UOp{h.reassociateProduct(src[0], panel, staged), src[1]})
	})
}

// reassociateProduct groups factors by the store ranges that they depend on. What
// depends on the panel's ranges alone, or on none, goes into the panel; without
// a panel the latter joins the side with most factors, which is the weight.
func (h *hoister) reassociateProduct(u *ir.UOp, panel analyse.RangeSet, staged bool) *ir.UOp {
	factors := analyse.Factors(u)
	if len(factors) < 3 {
		return u
	}
	isOpen := func(f *ir.UOp) bool { return isInnerSum(f) && !h.free.Of(f).Meet(h.store).Empty() }
	if open := lists.Filter(factors, isOpen); len(open) > 0 && panel.Empty() && h.st.Desc.Kind == target.CPU {
		// The lanes of the inner sum are still open when it is multiplied, and the other factors
		// have few or none: they are multiplied with one another first.
		rest := lists.Filter(factors, func(f *ir.UOp) bool { return !isOpen(f) })
		if len(rest) < 2 {
			return u
		}
		slow := h.reassociateProduct(analyse.Product(h.st.Arena, rest), panel, staged)
		return h.st.Arena.Mul(slow, analyse.Product(h.st.Arena, open))
	}
	groups := make(map[analyse.RangeSet][]*ir.UOp)
	var keys []analyse.RangeSet
	for _, f := range factors {
		key := h.free.Of(f).Meet(h.store)
		if !panel.Empty() && key.Minus(panel).Empty() {
			key = panel
		}
		if groups[key] == nil {
			keys = append(keys, key)
		}
		groups[key] = append(groups[key], f)
	}
	if !staged {
		keys = joinInvariant(keys, groups)
	}
	if len(keys) < 2 {
		return u
	}
	sides := lists.Map(keys, func(key analyse.RangeSet) *ir.UOp { return analyse.Product(h.st.Arena, groups[key]) })
	return analyse.Product(h.st.Arena, sides)
}

// isInnerSum reports the sum of a group, converted or not.
func isInnerSum(u *ir.UOp) bool {
	if u.Op == ir.OpCast {
		u = u.Src[0]
	}
	return analyse.IsSum(u)
}

// joinInvariant moves the group without store ranges to the largest other one,
// if there are several; else nothing is gained and nil is returned.
func joinInvariant(keys []analyse.RangeSet, groups map[analyse.RangeSet][]*ir.UOp) []analyse.RangeSet {
	var sides []analyse.RangeSet
	largest := analyse.RangeSet{}
	for _, key := range keys {
		if key.Empty() {
			continue
		}
		sides = append(sides, key)
		if len(groups[key]) > len(groups[largest]) || largest.Empty() {
			largest = key
		}
	}
	if len(sides) < 2 {
		return nil
	}
	groups[largest] = append(groups[largest], groups[analyse.RangeSet{}]...)
	return sides
}
