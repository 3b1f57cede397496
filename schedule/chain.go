package schedule

import (
	"slices"

	"tgc/ir"
)

// R4, second half: a flat sum over k beside a chain of nested sums whose extents
// multiply to k is split along the chain, so that both share all loops: the
// RMSNorm's sum of squares runs in the loops of the matvec that it scales.

// alignChains splits the flat sums of a kernel along its chains.
func (s *scheduler) alignChains(roots []*ir.UOp) []*ir.UOp {
	var chains, flat []*ir.UOp
	for _, u := range s.outerReduces(roots) {
		if u.Arg.(ir.ReduceArg).Op != ir.OpAdd {
			continue
		}
		if s.height(u.Src[0]) == 0 {
			flat = append(flat, u)
		} else if len(s.chainOf(u)) > 1 {
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
			return chainLength(s.chainOf(c)) == extent && !s.within(f, c) && !s.within(c, f)
		})
		if at >= 0 {
			with[f] = s.splitAlong(f, s.chainOf(chains[at]))
		}
	}
	if len(with) == 0 {
		return roots
	}
	return s.rename(roots, with)
}

// outerReduces lists the plain reduces that use no closed range, in preorder.
func (s *scheduler) outerReduces(roots []*ir.UOp) []*ir.UOp {
	var out []*ir.UOp
	var seen ir.Visited
	var visit func(u *ir.UOp)
	visit = func(u *ir.UOp) {
		if s.height(u) == 0 || !seen.Add(u) {
			return
		}
		if u.Op == ir.OpReduce && u.Arg.(ir.ReduceArg).Op != ir.OpInvalid && !slices.ContainsFunc(s.free.of(u), isClosed) {
			out = append(out, u)
		}
		for _, src := range u.Src {
			visit(src)
		}
	}
	for _, r := range roots {
		visit(r)
	}
	return out
}

// chainOf lists the extents of nested sums from u inwards: at each level all
// sums that use the level's range have one constant extent.
func (s *scheduler) chainOf(u *ir.UOp) []int64 {
	n, ok := u.ReduceRange().Src[0].Int()
	if !ok || u.Arg.(ir.ReduceArg).Op != ir.OpAdd {
		return nil
	}
	var inner *ir.UOp
	for _, x := range s.innerReduces(u) {
		if inner != nil && x.ReduceRange().Src[0] != inner.ReduceRange().Src[0] {
			return []int64{n}
		}
		inner = x
	}
	if inner == nil {
		return []int64{n}
	}
	return append([]int64{n}, s.chainOf(inner)...)
}

// innerReduces lists the reduces directly inside u that use its range.
func (s *scheduler) innerReduces(u *ir.UOp) []*ir.UOp {
	var out []*ir.UOp
	var seen ir.Visited
	var visit func(x *ir.UOp)
	visit = func(x *ir.UOp) {
		if s.height(x) == 0 || !seen.Add(x) {
			return
		}
		if x.Op == ir.OpReduce {
			if s.dependsOn(x, u.ReduceRange()) && x.Arg.(ir.ReduceArg).Op == ir.OpAdd {
				out = append(out, x)
			}
			return
		}
		for _, src := range x.Src {
			visit(src)
		}
	}
	visit(u.Src[0])
	return out
}

func chainLength(chain []int64) int64 {
	n := int64(1)
	for _, c := range chain {
		n *= c
	}
	return n
}

// splitAlong writes a flat sum as nested sums with the chain's extents.
func (s *scheduler) splitAlong(f *ir.UOp, chain []int64) *ir.UOp {
	digits := make([]*ir.UOp, len(chain))
	sum := s.a.Index(0)
	for i, n := range chain {
		digits[i] = s.newRange(s.a.Index(n))
		sum = s.a.Add(s.a.Mul(sum, s.a.Index(n)), digits[i])
	}
	body := s.substitute(f.Src[0], map[*ir.UOp]*ir.UOp{f.ReduceRange(): s.simplify(sum)})
	for i := len(digits) - 1; i >= 0; i-- {
		body = s.closeReduce(s.a.Reduce(ir.OpAdd, body, digits[i]))
	}
	return body
}
