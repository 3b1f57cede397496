package schedule

import "tgc/ir"

// R3, group split: a factor of a sum that depends on k only through k/g leaves
// the inner sum. k becomes digits at all boundaries of the divisor chain (so
// that every field index becomes affine), nested outermost first, and each
// factor moves to the outermost level where its digits are closed. Boundaries
// come from all operands: an output projection's k is also cut at the head
// size. Look-through here serves only reads of values that are coarser (the
// scale d[k/32] of a quantised activation).
func (s *scheduler) groupSplit(v *value) {
	beside := s.flatSums(v.body)
	body := s.rewriteReduces(v.body, func(u *ir.UOp) *ir.UOp {
		if !s.splitsSum(v, u) {
			return u
		}
		return s.splitGroups(u, beside)
	})
	if body != v.body {
		v.body = body
		s.record(GroupSplit, v, true, "factor of k/g", Number{"sums", int64(len(beside))}, Number{"loops", s.loopDepth(body)})
	}
}

// flatSums lists the sums of an expression that hold no other.
func (s *scheduler) flatSums(body *ir.UOp) []*ir.UOp {
	var out []*ir.UOp
	for _, u := range ir.Toposort(body) {
		if u.Op == ir.OpReduce && u.Arg.(ir.ReduceArg).Op == ir.OpAdd && u.DType.IsFloat() && s.height(u.Src[0]) == 0 {
			out = append(out, u)
		}
	}
	return out
}

func (s *scheduler) splitGroups(u *ir.UOp, beside []*ir.UOp) *ir.UOp {
	k := u.ReduceRange()
	list := s.coarseFactors(u, k)
	cuts := []*ir.UOp{s.product(list)}
	for _, other := range beside {
		if other != u && other.ReduceRange() == k {
			cuts = append(cuts, other.Src[0])
		}
	}
	chain := s.divisorChain(k, cuts...)
	coarse := false
	for _, f := range list {
		if g := s.granularity(f, k); g > 1 {
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
	sum := s.a.Index(0)
	above := extent
	for i, c := range chain {
		digits[i] = s.newRange(s.a.Index(above / c))
		sum = s.a.Add(sum, s.a.Mul(digits[i], s.a.Index(c)))
		above = c
	}
	sum = s.simplify(sum)
	for i, f := range list {
		list[i] = s.substitute(f, map[*ir.UOp]*ir.UOp{k: sum})
	}
	for i := len(digits) - 1; i >= 0; i-- {
		var out, in []*ir.UOp
		for _, f := range list {
			if s.dependsOn(f, digits[i]) {
				in = append(in, f)
			} else {
				out = append(out, f)
			}
		}
		if len(in) == 0 {
			in = append(in, s.a.Const(u.DType, 1))
		}
		list = append(out, s.closeReduce(s.a.Reduce(ir.OpAdd, s.product(in), digits[i])))
	}
	return s.product(list)
}

// loopDepth is the depth of the deepest nest of reduces.
func (s *scheduler) loopDepth(u *ir.UOp) int64 { return int64(s.height(u)) }

// coarseFactors flattens a sum's product, looking through reads of pointwise
// values that hold a coarser read.
func (s *scheduler) coarseFactors(u, k *ir.UOp) []*ir.UOp {
	var list []*ir.UOp
	for _, f := range factors(u.Src[0]) {
		exposed, rest, ok := s.lookThrough(f, func(g *ir.UOp) bool {
			_, isRead := s.isRead(g)
			return isRead && s.granularity(g, k) > 1
		})
		if ok && s.granularity(f, k) <= 1 {
			list = append(append(list, rest...), exposed...)
			continue
		}
		list = append(list, f)
	}
	return list
}
