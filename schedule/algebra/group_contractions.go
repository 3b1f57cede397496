package algebra

import (
	"math"
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/schedule/expr"
	"tgc/schedule/state"
)

// GroupContractions writes sums of products in the grouped form of their contraction
// (expr.Contraction): a sum for every level, inside of it what is finer, and at the
// innermost level
//
//	sum_j (c*hi + lo)*q  ->  c*sum_j hi*q + sum_j lo*q   for digits of integer activations,
//	sum_j y*(q + c)      ->  sum_j y*q + c*sum_j y       for integers y,
//
// so that each sum is one of products of bytes, for which there are dot instructions. The
// sum of the y is the same for all rows. For floats an offset stays: a conversion of
// bytes takes a constant along, and the second sum would cost as many additions as a row
// has points. A plan of matrix instructions joins it again (join-offsets). Where lanes
// run along k (Profile.IntegerSums) the constants' sum leaves the groups: inside of them
// it would fold the lanes for every group. Where they run along rows it stays, and the
// sum of a group starts from it.
func GroupContractions(s *state.State, v *state.Value) {
	beside := flatSums(s.Exprs, v.Body)
	body := s.RewriteReduces(v.Body, func(u *ir.UOp) *ir.UOp {
		if !splitsSum(s, v, u) {
			return u
		}
		integers := hasIntegers(s, analyse.Factors(u.Src[0]))
		panels, tiles := inPanels(s, v) && integers, onFloatTiles(s, v) && !integers
		if c := tileContraction(s, u, beside, panels); c != nil {
			return s.Nest(c, func(l *expr.Level) *ir.UOp { return innermost(s, u, l.Factors, l.Range) })
		}
		factors := unsignedCodes(s, u, coarseFactors(s, u))
		matrices := onMatrices(s, v, integers, func() *expr.Level { return s.ContractionOf(u, factors, beside).Terms[0].Innermost() })
		if matrices {
			factors = joinSteps(s, factors)
		}
		c := s.ContractionOf(u, factors, beside)
		if c.IsFlat() {
			factors := unsignedCodes(s, u, analyse.Factors(u.Src[0]))
			if distributed(s, u, factors) < 0 {
				return u
			}
			return innermost(s, u, factors, u.ReduceRange())
		}
		if s.Opt.Profile.FloatTiles > 0 && (tiles || panels) {
			s.JoinDigits(c, termPoints, termPoints)
		}
		if matrices {
			s.JoinDigits(c, matrixPoints, math.MaxInt64)
		}
		if tiles && !panels {
			s.JoinScales(c, termPoints, oneTerm)
		}
		if tiles && !panels && !tilesTake(s, c) {
			return u
		}
		if s.Opt.Profile.IntegerSums && !panels && !tiles {
			s.SeparateOffsets(c)
		}
		if panels {
			s.ScaleOwnSums(c)
		}
		return s.Nest(c, func(l *expr.Level) *ir.UOp { return innermost(s, u, l.Factors, l.Range) })
	})
	if body != v.Body {
		v.Body = body
		s.Record(v, true, "factors by level", state.Number{Name: "sums", Value: int64(len(beside))}, state.Number{Name: "loops", Value: int64(s.Height(body))})
	}
}

// tileContraction is the contraction of a sum whose groups one tile instruction sums as bytes, of either
// sign: nothing is moved up, and an offset is within a byte. It is nil for any other sum.
func tileContraction(s *state.State, u *ir.UOp, beside []*ir.UOp, panels bool) *expr.Contraction {
	if !panels || s.Opt.Profile.FloatTiles == 0 {
		return nil
	}
	c := s.ContractionOf(u, lists.Map(coarseFactors(s, u), s.WithinByte), beside)
	s.JoinDigits(c, termPoints, termPoints)
	for i := range c.Terms {
		if n, constant := c.Terms[i].Innermost().Range.Src[0].Int(); c.IsFlat() || !constant || n != termPoints {
			return nil
		}
	}
	s.ScaleOwnSums(c)
	return c
}

// innermost is an innermost sum of the contraction of u, over products that are
// distributed over digits and offsets.
func innermost(s *state.State, u *ir.UOp, factors []*ir.UOp, r *ir.UOp) *ir.UOp {
	if i := distributed(s, u, factors); i >= 0 {
		f := factors[i]
		term := func(x *ir.UOp) *ir.UOp { return innermost(s, u, expr.InPlace(factors, i, x), r) }
		return s.A.Make(f.Op, f.DType, nil, term(f.Src[0]), term(f.Src[1]))
	}
	var out, in []*ir.UOp
	for _, f := range factors {
		if s.DependsOn(f, r) {
			in = append(in, f)
		} else {
			out = append(out, f)
		}
	}
	return analyse.Product(s.A, append(out, s.SumOf(in, r, u.DType)))
}

// distributed is the number of the factor over which an innermost sum of the contraction
// of u is distributed, digits before offsets; -1 for none, as where u has no weight.
func distributed(s *state.State, u *ir.UOp, factors []*ir.UOp) int {
	if !s.ReadsField(u) || slices.ContainsFunc(factors, func(f *ir.UOp) bool { return s.Height(f) > 0 }) {
		return -1
	}
	if i := slices.IndexFunc(factors, func(f *ir.UOp) bool { return s.RoleOf(f) == expr.Digits }); i >= 0 {
		return i
	}
	if len(factors) < 2 || !hasIntegers(s, factors) {
		return -1
	}
	return slices.IndexFunc(factors, func(f *ir.UOp) bool { return s.RoleOf(f) == expr.OffsetCode })
}

// flatSums lists the sums of an expression that hold no other.
func flatSums(s *expr.Exprs, body *ir.UOp) []*ir.UOp {
	return lists.Filter(ir.Toposort(body), func(u *ir.UOp) bool { return analyse.IsFloatSum(u) && s.Height(u.Src[0]) == 0 })
}

// coarseFactors flattens a sum's product, looking through reads of pointwise values that
// hold a coarser read: the scale d[k/32] of a quantised activation.
func coarseFactors(s *state.State, u *ir.UOp) []*ir.UOp {
	k := u.ReduceRange()
	var list []*ir.UOp
	for _, f := range analyse.Factors(u.Src[0]) {
		exposed, rest, ok := lookThrough(s, f, false, func(g *ir.UOp) bool {
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

// hasIntegers reports factors that are integers and no weights: one that widens narrow
// integers, itself or as a factor of the pointwise value that it reads, as one that gathers
// rows of another does.
func hasIntegers(s *state.State, factors []*ir.UOp) bool {
	return slices.ContainsFunc(factors, func(f *ir.UOp) bool {
		p, isRead := s.IsRead(f)
		return s.IsWidened(f) || isRead && s.IsPointwise(p) && !s.FactsOf(p.Body).Weights && hasIntegers(s, analyse.Factors(p.Body))
	})
}

// splitsSum reports a sum of v that is written in the grouped form. Where lanes run along
// k that of a product with many tokens is not: its decoded rows are staged once for all
// tokens, and a step of a group's sum costs more than one of f32. A sum of bytes that one instruction
// takes costs less with any number of tokens.
func splitsSum(s *state.State, v *state.Value, u *ir.UOp) bool {
	if !analyse.IsFloatSum(u) {
		return false
	}
	p := &s.Opt.Profile
	if onFloatTiles(s, v) && s.ReadsField(u) {
		return true
	}
	return !p.IntegerSums || hasIntegers(s, analyse.Factors(u.Src[0])) && (p.ByteDots || p.TileReuse == 0 || s.WeightReuse(v) <= p.TileReuse)
}

// unsignedCodes writes codes among the factors of a sum in the way that the target's instruction for
// sums of bytes takes: what a bit chooses as a number with an offset; signed ones as unsigned ones with an
// offset, where it has one unsigned side. Of two signed ones it would be needed twice, for what moving
// one of them up adds, which an offset says once for a group of a token.
func unsignedCodes(s *state.State, u *ir.UOp, factors []*ir.UOp) []*ir.UOp {
	p := &s.Opt.Profile
	if !p.IntegerSums {
		return lists.Map(factors, func(f *ir.UOp) *ir.UOp { return s.OfBit(f, false) })
	}
	if !p.ByteDots || !hasIntegers(s, analyse.Factors(u.Src[0])) {
		return factors
	}
	return lists.Map(factors, func(f *ir.UOp) *ir.UOp {
		if s.Granularity(f, u.ReduceRange()) > 1 {
			return f // a scale
		}
		if f = s.OfBit(f, true); p.BytePairs {
			return s.UnlessNegated(f)
		}
		return s.Unsigned(f)
	})
}

// joinSteps has codes take along what bits of a weight add to them.
func joinSteps(s *state.State, factors []*ir.UOp) (joined []*ir.UOp) {
	for _, f := range factors {
		joined = append(joined, analyse.Factors(s.JoinStep(f, oneTerm))...)
	}
	return joined
}

// matrixPoints are those of the sum of a matrix instruction of a GPU: what grids of eight or four weights
// have as digits is too short for it.
const matrixPoints = 16

// onMatrices reports a product that a GPU's matrix instructions sum faster than its threads, which have whole digits: of so many tokens
// that they fill more than half of a tile, or, where it is a sum of floats, of digits that are entries of a table, or whose numbers of all
// tokens are as many as an instruction sums. Four layers, exact, H200, us a step: of 1536 and 4608 two to four tokens, entries of four,
// IQ3_S 194, 316 and 360, by matrix instructions 177, 221 and 229, digits of four that are computed, TQ1_0 155, 185 and 214, 192, 234 and 233; of
// 1280 and 3584, entries of eight, two tokens, IQ1_M 319 and 193, IQ2_S 184 and 176, IQ1_S 169 and 181, digits of a bit, Q1_0 181 and 137, of four at four
// tokens Q2_0 209 and 159, TQ1_0 162 and 191 (docs/bench/h200-entries.txt).
func onMatrices(s *state.State, v *state.Value, integers bool, innermost func() *expr.Level) bool {
	n, reuse := s.Opt.Profile.MatrixTokens, s.WeightReuse(v)
	switch {
	case n <= 0 || reuse <= 1:
		return false
	case reuse > n/2:
		return true
	case integers:
		return false
	}
	digit := innermost()
	points, _ := digit.Range.Src[0].Int()
	return reuse*points >= matrixPoints || hasEntries(s, digit)
}

// hasEntries reports a digit whose numbers lie beside one another in a table.
func hasEntries(s *state.State, digit *expr.Level) bool {
	return slices.ContainsFunc(digit.Factors, func(f *ir.UOp) bool {
		return analyse.Any(f, func(u *ir.UOp) bool {
			return u.Op == ir.OpLoad && u.Src[0].Op == ir.OpTable && s.DependsOn(u, digit.Range)
		})
	})
}

// inPanels reports a product of so many tokens that its weights are decoded into panels of
// bytes, whose lanes are rows.
func inPanels(s *state.State, v *state.Value) bool {
	p := &s.Opt.Profile
	return p.IntegerSums && p.ByteDots && p.PanelReuse > 0 && s.WeightReuse(v) > p.PanelReuse
}
