package algebra

import (
	"slices"

	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/schedule/state"
)

// split-terms: tile instructions multiply BF16, and an f32 is the sum of three (docs/decisions/0007).
// The terms of activations that every row of weights reads are values:
//
//	sum_j y*q  ->  sum_j (f32(a) + f32(b) + f32(c))*q,  a = bf16(y), b = bf16(y - a), c = bf16(y - a - b)
//
// The sum of the three is y, to the bit: of normal numbers, 8 + 8 + 8 bits are those of an f32.

// SplitTerms applies the rule to a value.
func SplitTerms(s *state.State, v *state.Value) {
	if !onFloatTiles(s, v) || !s.ReadsField(v.Body) {
		return
	}
	before := len(s.Values)
	body := s.RewriteReduces(v.Body, func(u *ir.UOp) *ir.UOp {
		factors := slices.Clone(analyse.Factors(u.Src[0]))
		if !analyse.IsFloatSum(u) || len(factors) != 2 || s.Height(u.Src[0]) > 0 || s.Points([]*ir.UOp{u.ReduceRange()}) > termPoints {
			return u
		}
		for i, f := range factors {
			p, isRead := s.IsRead(f)
			if isRead && p.Node.DType == ir.F32 && s.ReadsField(factors[1-i]) && isTileCode(s, factors[1-i]) && !s.ReadsField(f) && s.DependsOn(f, u.ReduceRange()) {
				factors[i] = termsOf(s.Graph, p, f)
				return s.A.Reduce(ir.OpAdd, s.A.Mul(factors[0], factors[1]), u.ReduceRange())
			}
		}
		return u
	})
	if body != v.Body {
		v.Body = body
		s.Record(v, true, "terms of activations", state.Number{Name: "values", Value: int64(len(s.Values) - before)})
	}
}

// termsOf is a read of a value as the sum of its terms, which are made once for all readers.
func termsOf(s *state.Graph, p *state.Value, read *ir.UOp) *ir.UOp {
	a := s.A
	ranges, at, index := p.Ranges, slices.Clone(p.Ranges), slices.Clone(read.Indices())
	last := len(ranges) - 1
	if n, constant := ranges[last].Src[0].Int(); constant && n%termPoints == 0 && n > termPoints {
		block, point := s.NewRange(a.Index(n/termPoints)), s.NewRange(a.Index(termPoints))
		at[last] = a.Add(a.Mul(block, a.Index(termPoints)), point)
		ranges = slices.Concat([]*ir.UOp{block}, ranges[:last], []*ir.UOp{point})
		k := index[last]
		index = slices.Concat([]*ir.UOp{a.Div(k, a.Index(termPoints))}, index[:last], []*ir.UOp{a.Mod(k, a.Index(termPoints))})
	}
	var sum *ir.UOp
	rest, key := a.Load(p.Node, at...), a.Load(p.Node, p.Ranges...)
	for range activationTerms {
		body := a.Cast(rest, ir.BF16)
		rest = a.Sub(rest, a.Cast(body, ir.F32))
		key = a.Cast(a.Cast(key, ir.BF16), ir.F32) // the same for all readers
		known, ok := s.RestMemo[key]
		if !ok {
			known = s.NewValue(ir.BF16, nil, nil)
			s.SetSignature(known, ranges, body)
			known.Pinned = true
			s.RestMemo[key] = known
		}
		term := a.Cast(a.Load(known.Node, index...), ir.F32)
		if sum == nil {
			sum = term
		} else {
			sum = a.Add(sum, term)
		}
	}
	return sum
}
