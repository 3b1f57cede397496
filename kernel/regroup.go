package kernel

import "tgc/ir"

// regroup multiplies the factors of summed products in the order that the STAGE
// Opt needs: those of the staged side first, among themselves. A product
// ((x*d)*s)*q of activations and a decoded weight becomes x*((d*s)*q), whose
// second factor a panel can hold (class A: products are rounded in another
// order).
func (ap *applier) regroup(sink *ir.UOp, plans []axisPlan) *ir.UOp {
	h, axes := ap.newHoister(sink)
	for i, x := range axes {
		if x.Kind == StoreAxis {
			h.store.add(i)
		}
	}
	staged, panel := false, rangeSet{}
	for _, p := range plans {
		staged = staged || p.stage
		if p.stage && p.axis.Kind == StoreAxis {
			panel.add(h.free.index[p.axis.Range])
		}
	}
	if !staged {
		return sink
	}
	done := make(map[*ir.UOp]*ir.UOp)
	for _, u := range ir.Toposort(sink) {
		src := make([]*ir.UOp, len(u.Src))
		for i, s := range u.Src {
			src[i] = done[s]
		}
		if u.Op == ir.OpReduce && u.Arg.(ir.ReduceArg).Op == ir.OpAdd && u.DType.IsFloat() {
			src[0] = h.regroupProduct(src[0], panel)
		}
		done[u] = ap.arena.With(u, src)
	}
	return done[sink]
}

// regroupProduct groups factors by the store ranges that they depend on; what
// depends on the panel's ranges alone, or on none, goes into the panel.
func (h *hoister) regroupProduct(u *ir.UOp, panel rangeSet) *ir.UOp {
	factors := flattenProduct(u)
	if len(factors) < 3 {
		return u
	}
	a := h.ap.arena
	var keys []rangeSet
	products := make(map[rangeSet]*ir.UOp)
	for _, f := range factors {
		key := h.free.of(f).meet(h.store)
		if !panel.empty() && key.minus(panel).empty() {
			key = panel
		}
		if products[key] == nil {
			keys = append(keys, key)
			products[key] = f
		} else {
			products[key] = a.Mul(products[key], f)
		}
	}
	out := products[keys[0]]
	for _, key := range keys[1:] {
		out = a.Mul(out, products[key])
	}
	return out
}
