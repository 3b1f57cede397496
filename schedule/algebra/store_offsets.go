package algebra

import (
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/schedule/expr"
	"tgc/schedule/state"
)

// store-offsets: a weight with an offset for each group, s*q - m, leaves a sum of offsets beside that of products:
//
//	sum_b d*sum_k y*q - sum_b e*sum_g m*t  ->  sum_b d*sum_k y*q - o,  o = sum_(b,g) t*(e*m)
//
// where t is the sum of a group's activations. Beside codes that warpgroups multiply, the second sum is a multiply-add for each
// group and result, for which the matrix units wait. As a value of its own it is a product of matrices, too, as short as there are groups.

// StoreOffsets applies the rule to all values.
func StoreOffsets(s *state.State) {
	found, work := make(map[*state.Value][]offsetSum), make(map[*state.Value]int64)
	readers := lists.Filter(s.Values, func(v *state.Value) bool {
		if v.Dead || s.Height(v.Body) == 0 || !readsPlanes(s, v.Body) {
			return false
		}
		found[v] = offsetSums(s, v)
		for _, o := range found[v] {
			work[o.of] = expr.Saturate(s.Points(v.Ranges), s.Points([]*ir.UOp{o.flat.ReduceRange()})) + work[o.of]
		}
		return len(found[v]) > 0
	})
	for _, v := range readers {
		with := make(map[*ir.UOp]*ir.UOp)
		for _, o := range found[v] {
			if work[o.of] >= s.Opt.Profile.Launch*s.Opt.Profile.Workers*offsetsSaved {
				with[o.sum] = storedSum(s, v, o)
			}
		}
		if len(with) > 0 {
			v.Body = s.ReplaceNodes(v.Body, with)
			s.Record(v, true, "sums of offsets", state.Number{Name: "values", Value: int64(len(with))})
		}
	}
}

// offsetsSaved is how many multiply-adds of a multiprocessor, for each operation of a launch's time, take as long as a launch that stores
// their sums instead, of all products of the same activations. On an H200 these are 50 million: a layer of SmolLM2 360M with 10 to 79
// million a launch was 1 to 2 % slower with all of them stored, LLaMA 8B's with 70 to 1,900 million 11 to 14 % faster (docs/bench/h200-offsets.txt).
const offsetsSaved = 3

// offsetSum is a sum of offsets in a body.
type offsetSum struct {
	sum, flat *ir.UOp      // as it stands there, and over one range
	of        *state.Value // sums of activations
}

// offsetSums are those that a sum of terms is added to, or subtracted from.
func offsetSums(s *state.State, v *state.Value) (list []offsetSum) {
	for _, u := range ir.Toposort(v.Body) {
		if u.Op != ir.OpSub && u.Op != ir.OpAdd {
			continue
		}
		for i, x := range u.Src {
			if o, ok := offsetSumOf(s, x); ok && readsPlanes(s, u.Src[1-i]) {
				list = append(list, o)
			}
		}
	}
	return list
}

// offsetSumOf takes a nest of sums of offsets times sums of activations as one sum.
func offsetSumOf(s *state.State, u *ir.UOp) (o offsetSum, ok bool) {
	ranges, factors := nestOf(s, u)
	weights := lists.Filter(factors, s.ReadsField)
	inGroup := func(r *ir.UOp) bool { // whose points have the offset in common
		return !slices.ContainsFunc(weights, func(f *ir.UOp) bool { return s.DependsOn(f, r) })
	}
	if len(ranges) == 0 || !expr.ConstantExtents(ranges) || slices.ContainsFunc(ranges, inGroup) {
		return o, false
	}
	activations := lists.Filter(factors, func(f *ir.UOp) bool { return !s.ReadsField(f) })
	for _, f := range activations {
		if of, isRead := s.IsRead(f); isRead && slices.ContainsFunc(ranges, func(r *ir.UOp) bool { return s.DependsOn(f, r) }) {
			o.of = of
		}
	}
	if o.of == nil || o.of.Node.DType != ir.F32 {
		return o, false
	}
	a := s.A
	size := a.Index(1)
	for _, r := range ranges {
		size = a.Mul(size, r.Src[0])
	}
	k := s.NewRange(s.Simplify(size))
	digits, rest := make(map[*ir.UOp]*ir.UOp, len(ranges)), k
	for _, r := range slices.Backward(ranges) {
		digits[r], rest = s.Simplify(a.Mod(rest, r.Src[0])), s.Simplify(a.Div(rest, r.Src[0]))
	}
	product := a.Mul(analyse.Product(a, activations), analyse.Product(a, weights))
	o.sum, o.flat = u, s.SumOf([]*ir.UOp{s.Substitute(product, digits)}, k, u.DType)
	return o, true
}

// nestOf are the ranges of a sum of sums, outer ones first, and the factors of its terms; none for a sum of anything else.
func nestOf(s *state.State, u *ir.UOp) (ranges, factors []*ir.UOp) {
	for u != nil {
		if !analyse.IsFloatSum(u) {
			return nil, nil
		}
		ranges = append(ranges, u.ReduceRange())
		inner := (*ir.UOp)(nil)
		for _, f := range analyse.Factors(u.Src[0]) {
			switch {
			case s.Height(f) == 0:
				factors = append(factors, f)
			case inner != nil:
				return nil, nil
			default:
				inner = f
			}
		}
		u = inner
	}
	return ranges, factors
}

// storedSum is a read of the value of a sum of offsets.
func storedSum(s *state.State, v *state.Value, o offsetSum) *ir.UOp {
	rows := lists.Filter(v.Ranges, func(r *ir.UOp) bool { return s.DependsOn(o.flat, r) })
	stored := s.NewValue(o.flat.DType, nil, nil)
	s.SetSignature(stored, rows, o.flat)
	stored.Pinned = true
	return s.A.Load(stored.Node, rows...)
}

// readsPlanes reports sums of terms of f16 that lie in planes.
func readsPlanes(s *state.State, body *ir.UOp) bool {
	return analyse.Any(body, func(u *ir.UOp) bool {
		if u.Op != ir.OpCast || u.DType != ir.F32 || u.Src[0].DType != ir.F16 {
			return false
		}
		p, isRead := s.IsRead(u.Src[0])
		return isRead && p.Pinned && len(p.Ranges) > 0 && p.Ranges[0].Src[0].IsInt(termPlanes) && u.Src[0].Indices()[0].IsInt(0)
	})
}
