package rewrite

import (
	"slices"

	"tgc/ir"
)

// cost weighs an op for the measures: what a rule may trade for what. Plain
// arithmetic is 4, what machines do slowly is more, leaves 1.
func cost(u *ir.UOp) int {
	if u.DType == ir.Bool && (u.Op == ir.OpAdd || u.Op == ir.OpMul || u.Op == ir.OpMin || u.Op == ir.OpMax) {
		return 5 // written as or, and
	}
	switch u.Op {
	case ir.OpConst, ir.OpVar, ir.OpRange, ir.OpArg, ir.OpParam:
		return 1
	case ir.OpFloorDiv, ir.OpFloorMod, ir.OpFDiv, ir.OpSqrt, ir.OpRsqrt, ir.OpExp2, ir.OpLog2, ir.OpSin, ir.OpRng:
		return 16
	case ir.OpMul, ir.OpMulHi, ir.OpRecip, ir.OpFma:
		return 8
	case ir.OpSub, ir.OpWhere, ir.OpShl:
		return 5
	}
	return 4
}

// treeCost is the summed cost of the graph seen as a tree, the measure of most
// sets; doubled, plus 1 for each commutative node whose sources stand in the
// wrong order.
var treeCost = Measure{
	Text: "cost of the ops (measure.go) summed over the tree, then commutative sources out of order",
	Of: func(root *ir.UOp) int {
		total := make(map[*ir.UOp]int)
		for _, u := range ir.Toposort(root) {
			n := 4 * cost(u)
			if swapped(u) {
				n++
			}
			for _, s := range u.Src {
				n += total[s]
			}
			total[u] = n
		}
		return total[root]
	},
}

// swapped reports a commutative node whose sources are not in canonical order:
// constants second, then by structure. Floats keep their order unless one is a
// constant, so that kernels read as they were written. Idx has linear forms.
func swapped(u *ir.UOp) bool {
	if !slices.Contains(ir.Commutative, u.Op) || len(u.Src) != 2 || u.Src[0].DType == ir.Idx {
		return false
	}
	x, y := u.Src[0], u.Src[1]
	if x.Op == ir.OpConst || y.Op == ir.OpConst {
		return x.Op == ir.OpConst && y.Op != ir.OpConst
	}
	return !x.DType.IsFloat() && ir.Compare(x, y) > 0
}
