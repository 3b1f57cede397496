package heuristic

import (
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/kernel/plan"
	"tgc/target"
)

// What the rows of a product have in common: activations, what is computed of them, and the norm that scales them. A worker or block may
// compute it once (STAGE).

// usesOf are the axes of results along which weights are used again.
func (a *analysis) usesOf(weights []*operand) analyse.RangeSet {
	var s analyse.RangeSet
	for _, w := range weights {
		s = s.Union(setOf(w.reuse))
	}
	return s
}

// ownRows are the axes of the sums' results along which weights differ.
func (a *analysis) ownRows(weights []*operand) analyse.RangeSet {
	return a.rowsOf(weights).Minus(a.usesOf(weights))
}

// lastStage reports stages among the rows of weights.
func (a *analysis) lastStage(weights []*operand) bool {
	return slices.ContainsFunc(a.rowsOf(weights).List(), func(i int) bool { return a.axes[i].Kind == plan.StageAxis })
}

// blockAxes are the store axes of which a block of a GPU has one point, and along which activations differ: the token of a
// row of an expert's matrix. What differs along them alone differs for no row of a block. There are none where rows are points of stages:
// such tiles have numbers of their own.
func (a *analysis) blockAxes(weights []*operand) (axes analyse.RangeSet) {
	if a.lastStage(weights) {
		return axes
	}
	return a.pointsOfBlock(weights)
}

// pointsOfBlock are those axes of tiles, too.
func (a *analysis) pointsOfBlock(weights []*operand) (axes analyse.RangeSet) {
	if a.desc.Kind != target.GPU {
		return axes
	}
	all := a.ownRows(weights).Meet(a.storeSet())
	row := a.lastStore(all.List())
	if row < 0 {
		return axes
	}
	for _, w := range weights {
		chain := setOf(w.chain)
		for _, u := range ofSum(w.sum) {
			read := u.Op == ir.OpLoad || u.Op == ir.OpField
			if read && u.DType != ir.Idx && !a.free.Of(u).Meet(chain).Empty() && !readsOperand(u, w) {
				axes = axes.Union(a.free.Of(u).Meet(all))
			}
		}
	}
	if axes.Has(row) {
		return analyse.RangeSet{}
	}
	return axes
}

// invariantAxis is an axis of the sums of weights along which values are computed, or sums of
// integers, that depend on no store axis, besides the weights' own; such sums may, of uses that a thread has at once. A sum of floats beside those of
// weights is an addition for what a thread reads anyway: on an H200 stages of them made Qwen3 1.7B 5 % slower in
// exact mode (docs/bench/h200-shapes.txt).
func (a *analysis) invariantAxis(weights []*operand) (axis int, ok bool) {
	all := a.storeSet().Minus(a.blockAxes(weights))
	for _, w := range weights {
		own := all.Minus(a.heldUses(w))
		for _, u := range ofSum(w.sum) {
			if factors, free := a.commonFactors(w, u, all); len(factors) > 1 {
				if k := slices.IndexFunc(w.chain, free.Has); k >= 0 {
					return w.chain[k], true
				}
			}
			stores := all
			if u.Op == ir.OpReduce {
				stores = own
			}
			if u.Op == ir.OpReduce && u.DType.IsFloat() || u.Op != ir.OpReduce && (!u.Op.IsElementwise() || u.Op == ir.OpCast) || u.DType == ir.Idx || u.DType == ir.Bool {
				continue
			}
			free := a.free.Of(u)
			if !free.Meet(stores).Empty() || readsOperand(u, w) || !analyse.Any(u, isAccess) { // places of bits are constants
				continue
			}
			if k := slices.IndexFunc(w.chain, free.Has); k >= 0 {
				return w.chain[k], true
			}
		}
	}
	return 0, false
}

// commonFactors are the factors of a sum's product that depend on none of some store axes, nor on the weight itself, and what they depend on
// together: activations and the gain of a norm, which a plan of a GPU that stages them multiplies with each other first.
func (a *analysis) commonFactors(w *operand, sum *ir.UOp, stores analyse.RangeSet) (factors []*ir.UOp, free analyse.RangeSet) {
	if a.desc.Kind != target.GPU || !analyse.IsFloatSum(sum) {
		return nil, free
	}
	factors = lists.Filter(analyse.Factors(sum.Src[0]), func(f *ir.UOp) bool {
		return a.free.Of(f).Meet(stores).Empty() && !readsOperand(f, w) && analyse.Any(f, isAccess)
	})
	for _, f := range factors {
		free = free.Union(a.free.Of(f))
	}
	return factors, free
}

// heldUses are the axes along which a weight is used again by the thread that has it, whose sums are of bytes: what differs
// along them differs for no row. Floats are multiplied as they are read.
func (a *analysis) heldUses(w *operand) (uses analyse.RangeSet) {
	if a.desc.Kind == target.GPU && a.dotAxis(w.chain[len(w.chain)-1]) {
		uses = setOf(w.reuse)
	}
	return uses
}

func readsOperand(u *ir.UOp, w *operand) bool {
	return analyse.Any(u, func(x *ir.UOp) bool { return isAccess(x) && x.Src[0] == w.param })
}
