package emit

import (
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/schedule/expr"
)

// align-chains: a flat sum over k beside a chain of nested sums whose extents
// multiply to k is split along the chain, so that both share all loops: the
// RMSNorm's sum of squares runs in the loops of the matvec that it scales.

// alignFlatSums splits the flat sums of a kernel along its chains.
func alignFlatSums(s *expr.Exprs, roots []*ir.UOp) []*ir.UOp {
	var chains, flat []*ir.UOp
	for _, u := range outerReduces(s, roots) {
		if u.Arg.(ir.ReduceArg).Op != ir.OpAdd {
			continue
		}
		if s.Height(u.Src[0]) == 0 {
			flat = append(flat, u)
		} else if len(chainOf(s, u)) > 1 {
			chains = append(chains, u)
		}
	}
	with := make(map[*ir.UOp]*ir.UOp)
	for _, f := range flat {
		extent, ok := f.ReduceRange().Src[0].Int()
		if !ok {
			continue
		}
		at := slices.IndexFunc(chains, func(c *ir.UOp) bool {
			return lists.Product(chainOf(s, c)) == extent && !s.Within(f, c) && !s.Within(c, f) && readsAlike(f, c)
		})
		if at >= 0 {
			before := s.A.MakeFor(f)
			with[f] = splitAlong(s, f, chainOf(s, chains[at]))
			s.A.MakeAgainFor(before)
		}
	}
	if len(with) == 0 {
		return roots
	}
	return s.Rename(roots, with)
}

// readsAlike reports reduces that read a buffer both: with one loop a thread loads once for both. What
// is read in stages, a block reads before its loops: a chain of integers that are rounded there has
// nothing in common with the sum of squares of what they were made of.
func readsAlike(x, y *ir.UOp) bool {
	from := func(u *ir.UOp) (list []*ir.UOp) {
		ir.Walk(func(u *ir.UOp) []*ir.UOp {
			if u.Op == ir.OpStage {
				return nil
			}
			if u.Op == ir.OpLoad {
				list = append(list, u.Src[0])
			}
			return u.Src
		}, u)
		return list
	}
	of := from(y)
	return slices.ContainsFunc(from(x), func(u *ir.UOp) bool { return slices.Contains(of, u) })
}

// outerReduces lists the plain reduces that use no closed range, in preorder.
func outerReduces(s *expr.Exprs, roots []*ir.UOp) []*ir.UOp {
	var out []*ir.UOp
	ir.Walk(func(u *ir.UOp) []*ir.UOp {
		if s.Height(u) == 0 {
			return nil
		}
		if u.Op == ir.OpReduce && u.Arg.(ir.ReduceArg).Op != ir.OpInvalid && !slices.ContainsFunc(s.Free.Of(u), expr.IsClosed) {
			out = append(out, u)
		}
		return u.Src
	}, roots...)
	return out
}

// chainOf lists the extents of nested sums from u inwards: at each level all
// sums that use the level's range have one constant extent.
func chainOf(s *expr.Exprs, u *ir.UOp) []int64 {
	n, ok := u.ReduceRange().Src[0].Int()
	if !ok || u.Arg.(ir.ReduceArg).Op != ir.OpAdd {
		return nil
	}
	var inner *ir.UOp
	for _, x := range innerReduces(s, u) {
		if inner != nil && x.ReduceRange().Src[0] != inner.ReduceRange().Src[0] {
			return []int64{n}
		}
		inner = x
	}
	if inner == nil {
		return []int64{n}
	}
	return append([]int64{n}, chainOf(s, inner)...)
}

// innerReduces lists the reduces directly inside u that use its range.
func innerReduces(s *expr.Exprs, u *ir.UOp) []*ir.UOp {
	var out []*ir.UOp
	ir.Walk(func(x *ir.UOp) []*ir.UOp {
		switch {
		case s.Height(x) == 0:
			return nil
		case x.Op == ir.OpReduce:
			if s.DependsOn(x, u.ReduceRange()) && x.Arg.(ir.ReduceArg).Op == ir.OpAdd {
				out = append(out, x)
			}
			return nil
		}
		return x.Src
	}, u.Src[0])
	return out
}

// splitAlong writes a flat sum as nested sums with the chain's extents.
func splitAlong(s *expr.Exprs, f *ir.UOp, chain []int64) *ir.UOp {
	digits, k := s.DigitsOf(chain)
	body := s.Substitute(f.Src[0], map[*ir.UOp]*ir.UOp{f.ReduceRange(): k})
	for _, digit := range slices.Backward(digits) {
		body = s.CloseReduce(s.A.Reduce(ir.OpAdd, body, digit))
	}
	return body
}
