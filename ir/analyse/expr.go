package analyse

import (
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
)

// Factors lists what a tree of MUL multiplies, left to right; u itself where it
// is no product.
func Factors(u *ir.UOp) []*ir.UOp { return operands(u, ir.OpMul, nil) }

// Product multiplies factors, left to right; nil for none.
func Product(a *ir.Arena, factors []*ir.UOp) *ir.UOp {
	var p *ir.UOp
	for _, f := range factors {
		if p == nil {
			p = f
		} else {
			p = a.Mul(p, f)
		}
	}
	return p
}

// CommonFactors lists the factors that two products have in common, in the order of the
// first, and what each has besides.
func CommonFactors(x, y *ir.UOp) (both, left, right []*ir.UOp) {
	right = Factors(y)
	for _, f := range Factors(x) {
		if k := slices.Index(right, f); k >= 0 {
			both, right = append(both, f), slices.Delete(right, k, k+1)
		} else {
			left = append(left, f)
		}
	}
	return both, left, right
}

func operands(u *ir.UOp, op ir.Op, list []*ir.UOp) []*ir.UOp {
	if u.Op != op {
		return append(list, u)
	}
	return operands(u.Src[1], op, operands(u.Src[0], op, list))
}

// IsFold reports a REDUCE with one plain op.
func IsFold(u *ir.UOp, op ir.Op) bool {
	return u.Op == ir.OpReduce && u.Arg.(ir.ReduceArg).Op == op
}

// IsSum reports a REDUCE that adds, of any type.
func IsSum(u *ir.UOp) bool { return IsFold(u, ir.OpAdd) }

// IsFloatSum reports a REDUCE that adds floats.
func IsFloatSum(u *ir.UOp) bool { return IsSum(u) && u.DType.IsFloat() }

// IsFloatMax reports a REDUCE that keeps the largest float.
func IsFloatMax(u *ir.UOp) bool { return IsFold(u, ir.OpMax) && u.DType.IsFloat() }

// IsTuple reports a REDUCE of several components, folded by a combine step.
func IsTuple(u *ir.UOp) bool { return IsFold(u, ir.OpInvalid) }

// IsPlain reports a REDUCE of one value, folded by an op.
func IsPlain(u *ir.UOp) bool { return u.Op == ir.OpReduce && !IsTuple(u) }

// Uses reports that a node is among those under root.
func Uses(root, node *ir.UOp) bool {
	return Any(root, func(u *ir.UOp) bool { return u == node })
}

// Any reports a node under root, itself among them, for which is holds. It ends
// with the first.
func Any(root *ir.UOp, is func(u *ir.UOp) bool) bool {
	if is(root) {
		return true
	}
	var seen ir.Visited
	stack := []*ir.UOp{root}
	for len(stack) > 0 {
		u := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, s := range u.Src {
			if !seen.Add(s) {
				continue
			}
			if is(s) {
				return true
			}
			if len(s.Src) > 0 {
				stack = append(stack, s)
			}
		}
	}
	return false
}

// OutsideStages lists the nodes under root that are in no STAGE; STAGEs are among them,
// with the extents of their ranges.
func OutsideStages(root *ir.UOp) (list []*ir.UOp) {
	ir.Walk(func(u *ir.UOp) []*ir.UOp {
		if list = append(list, u); u.Op == ir.OpStage {
			return nil
		}
		return u.Src
	}, root)
	return list
}

// RangesIn lists the RANGEs under a root, closed ones too, in the order of
// ir.Toposort.
func RangesIn(root *ir.UOp) []*ir.UOp {
	return lists.Filter(ir.Toposort(root), func(u *ir.UOp) bool { return u.Op == ir.OpRange })
}

// TestedBit is an unsigned x and an n, where a condition is that bit n of x is set: 0 < (1<<n & x).
func TestedBit(u *ir.UOp) (x, n *ir.UOp) {
	if u.Op != ir.OpCmpLt || u.Src[1].Op != ir.OpAnd || u.Src[1].DType.IsSigned() {
		return nil, nil
	}
	if zero, ok := u.Src[0].Int(); !ok || zero != 0 {
		return nil, nil
	}
	for i, m := range u.Src[1].Src {
		if m.Op != ir.OpShl {
			continue
		}
		if one, ok := m.Src[0].Int(); ok && one == 1 {
			return u.Src[1].Src[1-i], m.Src[1]
		}
	}
	return nil, nil
}
