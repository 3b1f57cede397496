package algebra

import (
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/schedule/expr"
	"tgc/schedule/state"
)

// split-terms: tile instructions multiply BF16, and an f32 is the sum of three (docs/decisions/0007).
// The terms of activations that every row of weights reads are values:
//
//	sum_j y*q  ->  sum_j (f32(a) + f32(b) + f32(c))*q,  a = bf16(y), b = bf16(y - a), c = bf16(y - a - b)
//
// The sum of the three is y, to the bit: of normal numbers, 8 + 8 + 8 bits are those of an f32.
// Integers are one term of themselves. Points that an instruction takes lie together, those of all
// tokens side by side before those of the next group, so that the columns of a tile are one run of memory.

// SplitTerms applies the rule to a value.
func SplitTerms(s *state.State, v *state.Value) {
	if !onFloatTiles(s, v) || !s.ReadsField(v.Body) {
		return
	}
	before := len(s.Values)
	body := floatTerms(s, v.Body)
	if inPanels(s, v) {
		body = integerTerms(s, body)
	}
	if body != v.Body {
		v.Body = body
		s.Record(v, true, "terms of activations", state.Number{Name: "values", Value: int64(len(s.Values) - before)})
	}
}

// floatTerms reads activations that codes are multiplied with as terms.
func floatTerms(s *state.State, body *ir.UOp) *ir.UOp {
	return s.RewriteReduces(body, func(u *ir.UOp) *ir.UOp {
		factors := slices.Clone(analyse.Factors(u.Src[0]))
		if !analyse.IsFloatSum(u) || len(factors) != 2 || s.Height(u.Src[0]) > 0 || s.Points([]*ir.UOp{u.ReduceRange()}) > termPoints {
			return u
		}
		for i, f := range factors {
			p, isRead := s.IsRead(f)
			if isRead && p.Node.DType == ir.F32 && s.ReadsField(factors[1-i]) && isTileCode(s, factors[1-i]) && !s.ReadsField(f) && s.DependsOn(f, u.ReduceRange()) {
				factors[i] = termsOf(s.Graph, p, f, activationTerms)
				return s.A.Reduce(ir.OpAdd, s.A.Mul(factors[0], factors[1]), u.ReduceRange())
			}
		}
		return u
	})
}

// integerTerms reads bytes of activations where they lie as tiles take them, for sums of their own, too.
func integerTerms(s *state.State, body *ir.UOp) *ir.UOp {
	with := make(map[*ir.UOp]*ir.UOp)
	for _, u := range ir.Toposort(body) {
		if p, isRead := s.IsRead(u); isRead && p.Node.DType == ir.I8 && len(p.Ranges) > 1 {
			with[u] = termsOf(s.Graph, p, u, 1)
		}
	}
	return s.Substitute(body, with)
}

// termsOf is a read of a value as the sum of so many terms, which are made once for all readers:
// what differs along sums comes first, then what differs between tokens, then the points of a tile.
func termsOf(s *state.Graph, p *state.Value, read *ir.UOp, terms int) *ir.UOp {
	a := s.A
	ranges, at, index := slices.Clone(p.Ranges), slices.Clone(p.Ranges), slices.Clone(read.Indices())
	last := len(ranges) - 1
	if n, constant := ranges[last].Src[0].Int(); constant && n%termPoints == 0 && n > termPoints {
		block, point, k := s.NewRange(a.Index(n/termPoints)), s.NewRange(a.Index(termPoints)), index[last]
		at[last] = a.Add(a.Mul(block, a.Index(termPoints)), point)
		ranges[last], index[last] = block, a.Div(k, a.Index(termPoints))
		ranges, index = append(ranges, point), append(index, a.Mod(k, a.Index(termPoints)))
	}
	order := sumsFirst(s, index)
	ranges = lists.Map(order, func(i int) *ir.UOp { return ranges[i] })
	index = lists.Map(order, func(i int) *ir.UOp { return index[i] })
	var sum *ir.UOp
	rest := a.Load(p.Node, at...)
	key := s.AtIndex(ranges, rest, places(a, ranges)) // the same for all readers
	for range terms {
		body, dtype := rest, rest.DType
		if dtype == ir.F32 {
			dtype = ir.BF16
			body = a.Cast(rest, dtype)
			rest = a.Sub(rest, a.Cast(body, ir.F32))
			key = a.Cast(a.Cast(key, dtype), ir.F32)
		}
		known, ok := s.RestMemo[key]
		if !ok {
			known = s.NewValue(dtype, nil, nil)
			s.SetSignature(known, ranges, body)
			known.Pinned = true
			s.RestMemo[key] = known
		}
		term := a.Load(known.Node, index...)
		if dtype == ir.BF16 {
			term = a.Cast(term, ir.F32)
		}
		if sum == nil {
			sum = term
		} else {
			sum = a.Add(sum, term)
		}
	}
	return sum
}

// alongSum reports an index that goes along a sum.
func alongSum(s *state.Graph, index *ir.UOp) bool {
	return slices.ContainsFunc(s.Free.Of(index), expr.IsClosed)
}

// sumsFirst is the order of indices in which those come first that go along sums, and the last one,
// the points of a tile, stays last.
func sumsFirst(s *state.Graph, index []*ir.UOp) []int {
	last := len(index) - 1
	var sums, others []int
	for i := range last {
		if alongSum(s, index[i]) {
			sums = append(sums, i)
		} else {
			others = append(others, i)
		}
	}
	return slices.Concat(sums, others, []int{last})
}
