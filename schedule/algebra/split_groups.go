package algebra

import (
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/schedule/expr"
	"tgc/schedule/state"
)

// SplitGroups (group split): a factor of a sum that depends on k only through k/g leaves
// the inner sum. k becomes digits at all boundaries of the divisor chain (so
// that every field index becomes affine), nested outermost first, and each
// factor moves to the outermost level where its digits are closed. Boundaries
// come from all operands: an output projection's k is also cut at the head
// size. Look-through here serves only reads of values that are coarser (the
// scale d[k/32] of a quantised activation).
func SplitGroups(s *state.State, v *state.Value) {
	beside := flatSums(s.Exprs, v.Body)
	body := s.RewriteReduces(v.Body, func(u *ir.UOp) *ir.UOp {
		if !splitsSum(s, v, u) {
			return u
		}
		return nestSum(s, u, beside)
	})
	if body != v.Body {
		v.Body = body
		s.Record(v, true, "factor of k/g", state.Number{Name: "sums", Value: int64(len(beside))}, state.Number{Name: "loops", Value: loopDepth(s.Exprs, body)})
	}
}

// flatSums lists the sums of an expression that hold no other.
func flatSums(s *expr.Exprs, body *ir.UOp) []*ir.UOp {
	var out []*ir.UOp
	for _, u := range ir.Toposort(body) {
		if u.Op == ir.OpReduce && u.Arg.(ir.ReduceArg).Op == ir.OpAdd && u.DType.IsFloat() && s.Height(u.Src[0]) == 0 {
			out = append(out, u)
		}
	}
	return out
}

func nestSum(s *state.State, u *ir.UOp, beside []*ir.UOp) *ir.UOp {
	k := u.ReduceRange()
	list := coarseFactors(s, u, k)
	cuts := []*ir.UOp{analyse.Product(s.A, list)}
	for _, other := range beside {
		if other != u && other.ReduceRange() == k {
			cuts = append(cuts, other.Src[0])
		}
	}
	chain := s.DivisorChain(k, cuts...)
	coarse := false
	for _, f := range list {
		if g := s.Granularity(f, k); g > 1 {
			for _, c := range chain {
				coarse = coarse || g%c == 0
			}
		}
	}
	if !coarse {
		return u
	}
	// k = sum of digit*weight, the outermost digit first.
	extent, _ := k.Src[0].Int()
	chain = append(chain, 1)
	digits := make([]*ir.UOp, len(chain))
	sum := s.A.Index(0)
	above := extent
	for i, c := range chain {
		digits[i] = s.NewRange(s.A.Index(above / c))
		sum = s.A.Add(sum, s.A.Mul(digits[i], s.A.Index(c)))
		above = c
	}
	sum = s.Simplify(sum)
	for i, f := range list {
		list[i] = s.Substitute(f, map[*ir.UOp]*ir.UOp{k: sum})
	}
	for i := len(digits) - 1; i >= 0; i-- {
		var out, in []*ir.UOp
		for _, f := range list {
			if s.DependsOn(f, digits[i]) {
				in = append(in, f)
			} else {
				out = append(out, f)
			}
		}
		if len(in) == 0 {
			in = append(in, s.A.Const(u.DType, 1))
		}
		list = append(out, s.CloseReduce(s.A.Reduce(ir.OpAdd, analyse.Product(s.A, in), digits[i])))
	}
	return analyse.Product(s.A, list)
}

// loopDepth is the depth of the deepest nest of reduces.
func loopDepth(s *expr.Exprs, u *ir.UOp) int64 { return int64(s.Height(u)) }

// coarseFactors flattens a sum's product, looking through reads of pointwise
// values that hold a coarser read.
func coarseFactors(s *state.State, u, k *ir.UOp) []*ir.UOp {
	var list []*ir.UOp
	for _, f := range analyse.Factors(u.Src[0]) {
		exposed, rest, ok := lookThrough(s, f, func(g *ir.UOp) bool {
			_, isRead := s.IsRead(g)
			return isRead && s.Granularity(g, k) > 1
		})
		if ok && s.Granularity(f, k) <= 1 {
			list = append(append(list, rest...), exposed...)
			continue
		}
		list = append(list, f)
	}
	return list
}
