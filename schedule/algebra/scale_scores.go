package algebra

import (
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/schedule/expr"
	"tgc/schedule/state"
)

// scale-scores: attention of many queries multiplies floats, of which matrix instructions take three terms of bf16 each, six products.
// Of two terms of f16 they take three. What stands for the range of bf16 are powers of two, as in scale-terms: one for each row of queries,
// and one for all keys, and for all values, of a head, so that no score and no point has one of its own:
//
//	sum_e q[e]*k[t,e]  ->  c*d * sum_e (a + b) * (a' + b'),  a = f16(q[e]/d), b = f16(q[e]/d - a), and a', b' of k[t,e]/c
//	sum_t w[t]*v[t,e]  ->  c * sum_t w[t] * (a + b),  a = f16(v[t,e]/c), b = f16(v[t,e]/c - a)
//
// 2^13 d and 2^13 c are the powers of two below the largest |q|, |k| or |v|, and w are weights of a softmax, of which the largest is 1.
// What is lost is at most 2^-23 of a number, or 2^-38 of the largest. Second terms have no scale, as those of scale-terms have: scores count
// by their differences, and a weighted sum by the largest of what it weighs. So one chain of instructions adds all three products up.

// ScaleScores applies the rule to all values.
func ScaleScores(s *state.State) {
	if s.Opt.Profile.ScaledTokens == 0 {
		return
	}
	scored := make(map[*state.Value]bool)
	for _, v := range slices.Clone(s.Values) {
		if v.Dead || s.ReadsField(v.Body) || s.IsPointwise(v) {
			continue
		}
		roundInPlace(s, v)
		for _, u := range ir.Toposort(v.Body) {
			if u.Op == ir.OpProj {
				scaleSoftmax(s, v, u, scored)
			}
		}
	}
}

// roundInPlace has a value round what it reads of memory itself, where another one holds it as halves: a copy of all of a cache takes
// longer than instructions where panels are filled.
func roundInPlace(s *state.State, v *state.Value) {
	with := make(map[*ir.UOp]*ir.UOp)
	for _, u := range ir.Toposort(v.Body) {
		p, isRead := s.IsRead(u)
		if isRead && isHalf(p.Body) && s.IsPointwise(p) && isOfMemory(p.Body) {
			with[u] = s.Instantiate(p, u.Indices())
		}
	}
	if len(with) > 0 {
		v.Body = s.Rename([]*ir.UOp{v.Body}, with)[0]
		s.Record(v, true, "halves of what memory holds")
	}
}

// isOfMemory reports a value of one number in memory.
func isOfMemory(u *ir.UOp) bool {
	if u.Op == ir.OpLoad {
		return u.Src[0].Op == ir.OpParam
	}
	numbers := lists.Filter(u.Src, func(x *ir.UOp) bool { return x.Op != ir.OpConst })
	return len(numbers) == 1 && isOfMemory(numbers[0])
}

// scaleSoftmax has a weighted sum of a softmax read scaled terms of what it weighs, and the scores terms of both their factors.
func scaleSoftmax(s *state.State, v *state.Value, proj *ir.UOp, scored map[*state.Value]bool) {
	tuple, i := proj.Src[0], int(proj.Arg.(ir.IntArg))
	if i == 0 || !s.A.MonoidOf(tuple).Rescales {
		return
	}
	values := slices.Clone(tuple.ReduceValues())
	weighed, ok := operandOf(s, v, values[i], tuple.ReduceRange())
	if !ok || weighed.uses < s.Opt.Profile.ScaledTokens || !isLarge(s, v, weighed) {
		return
	}
	score := scoresOf(s, values[0])
	if score == nil {
		return
	}
	columns := weighed.columns(s, values[0])
	if analyse.OutputParts(s.Points(columns), s.Points([]*ir.UOp{score.Body.ReduceRange()}), analyse.ScaledOfFloat, s.Opt.Profile.MatrixTokens) == 0 {
		return
	}
	if !scored[score] && !scaleProduct(s, score) {
		return
	}
	scored[score] = true
	down := weighed.scale(s, append(columns, weighed.sum)...)
	values[i] = weighed.terms(s, reciprocalOf(s.A, down))
	scaled := s.A.TupleReduce(values, tuple.ReduceRange(), tuple.ReduceIdentities(), tuple.ReduceCombine())
	v.Body = s.Rename([]*ir.UOp{v.Body}, map[*ir.UOp]*ir.UOp{proj: s.A.Mul(s.A.Proj(scaled, i), down)})[0]
	s.Record(v, true, "terms of f16 of what a softmax weighs", state.Number{Name: "uses", Value: weighed.uses})
}

// scoresSaved is how many products it takes, for each operation of a launch's time and multiprocessor, that half of their instructions
// are what the launches cost that find scales. On an H100 these are some 300 million: 300 tokens of 32 heads of 64.
const scoresSaved = 20

// isLarge reports attention of so many products. Of points whose number grows there are as many as there are queries at least.
func isLarge(s *state.State, v *state.Value, weighed operand) bool {
	queries := int64(1)
	for _, r := range ir.WithoutRanges(v.Ranges, weighed.ranges) {
		queries = max(queries, s.Points([]*ir.UOp{r}))
	}
	points := s.Points([]*ir.UOp{weighed.sum})
	if _, constant := weighed.sum.Src[0].Int(); !constant {
		points = min(points, queries)
	}
	return 2*expr.Saturate(s.Points(v.Ranges), points) >= s.Opt.Profile.Launch*s.Opt.Profile.Workers*scoresSaved
}

// scoresOf is the value of the products that scores are made of, through values of one point each.
func scoresOf(s *state.State, score *ir.UOp) *state.Value {
	seen := make(map[*state.Value]bool)
	for todo := []*ir.UOp{score}; len(todo) > 0; todo = todo[1:] {
		for _, u := range ir.Toposort(todo[0]) {
			p, isRead := s.IsRead(u)
			switch {
			case !isRead || seen[p]:
			case analyse.IsFloatSum(p.Body):
				return p
			case s.IsPointwise(p) && s.Points(p.Ranges) > 1:
				seen[p] = true
				todo = append(todo, p.Body)
			}
		}
	}
	return nil
}

// scaleProduct has a value that is a sum of products of two floats read terms of both.
func scaleProduct(s *state.State, v *state.Value) bool {
	sum := v.Body
	factors := analyse.Factors(sum.Src[0])
	if len(factors) != 2 {
		return false
	}
	x, okX := operandOf(s, v, factors[0], sum.ReduceRange())
	y, okY := operandOf(s, v, factors[1], sum.ReduceRange())
	if !okX || !okY {
		return false
	}
	if x.uses > y.uses { // y is what more points use
		x, y = y, x
	}
	if y.uses < s.Opt.Profile.ScaledTokens {
		return false
	}
	a := s.A
	ofX, ofY := x.scale(s, x.sum), y.scale(s, append([]*ir.UOp{y.sum}, ir.WithoutRanges(y.ranges, append(slices.Clone(x.ranges), y.sum))...)...)
	product := a.Mul(x.terms(s, reciprocalOf(a, ofX)), y.terms(s, reciprocalOf(a, ofY)))
	v.Body = a.Mul(a.Reduce(ir.OpAdd, product, sum.ReduceRange()), a.Mul(ofX, ofY))
	s.Record(v, true, "terms of f16 of both factors", state.Number{Name: "uses", Value: y.uses})
	return true
}

// operand is a factor of a sum of products: a stored float.
type operand struct {
	load   *ir.UOp
	sum    *ir.UOp
	ranges []*ir.UOp // on which it depends, that of the sum last
	uses   int64     // points that use the same element
}

func operandOf(s *state.State, v *state.Value, u, sum *ir.UOp) (operand, bool) {
	if u.Op != ir.OpLoad || u.DType != ir.F32 || u.Src[0].Op != ir.OpParam && u.Src[0].Op != ir.OpValue {
		return operand{}, false
	}
	if p, isRead := s.IsRead(u); isRead && isHalf(p.Body) {
		return operand{}, false // one term already
	}
	own := s.Free.Of(u)
	ranges := lists.Filter(v.Ranges, func(r *ir.UOp) bool { return slices.Contains(own, r) })
	if !slices.Contains(own, sum) || len(ranges) == 0 || slices.ContainsFunc(own, func(r *ir.UOp) bool { return r != sum && !slices.Contains(ranges, r) }) {
		return operand{}, false
	}
	return operand{u, sum, append(ranges, sum), s.Points(ir.WithoutRanges(v.Ranges, own))}, true
}

// columns are the ranges of an operand that a value of its reader does not depend on.
func (o operand) columns(s *state.State, u *ir.UOp) []*ir.UOp {
	return ir.WithoutRanges(ir.WithoutRanges(o.ranges, s.Free.Of(u)), []*ir.UOp{o.sum})
}

// scale is a power of two for the largest of an operand over some of its ranges, one after the other, as the reader reads it: a value for each.
func (o operand) scale(s *state.State, over ...*ir.UOp) *ir.UOp {
	a, ranges := s.A, o.ranges
	most := a.Binary(ir.OpAnd, a.Make(ir.OpBitcast, ir.I32, nil, o.load), a.ConstInt(ir.I32, infiniteF32))
	for i, r := range over {
		extent := r.Src[0]
		if i > 0 {
			extent = capacity(s, extent)
		}
		k := s.NewRange(extent)
		most = s.CloseReduce(a.Reduce(ir.OpMax, s.AtIndex([]*ir.UOp{r}, most, []*ir.UOp{k}), k))
		if ranges = ir.WithoutRanges(ranges, []*ir.UOp{r}); i < len(over)-1 {
			most = o.stored(s, ranges, most)
		}
	}
	most = a.Binary(ir.OpMax, most, a.ConstInt(ir.I32, leastBits<<exponentOne))
	return o.stored(s, ranges, a.Make(ir.OpBitcast, ir.F32, nil, a.Sub(most, a.ConstInt(ir.I32, largestBits<<exponentOne))))
}

// capacity is the most that an extent may be.
func capacity(s *state.State, extent *ir.UOp) *ir.UOp {
	return s.A.Index(s.Bounds.Of(extent).Hi)
}

// terms are an operand times a factor as the sum of two terms.
func (o operand) terms(s *state.State, factor *ir.UOp) *ir.UOp {
	a := s.A
	y := a.Mul(o.load, factor)
	high := a.Cast(y, ir.F16)
	low := a.Cast(a.Sub(y, a.Cast(high, ir.F32)), ir.F16)
	return a.Add(a.Cast(high, ir.F32), a.Cast(low, ir.F32))
}

// stored is a read of a new value over some ranges of the reader; along what grows it has a point for each that there may be, as what
// blocks of a GPU share out, with 0 for those that there are not yet.
func (o operand) stored(s *state.State, ranges []*ir.UOp, body *ir.UOp) *ir.UOp {
	a := s.A
	own := lists.Map(ranges, func(r *ir.UOp) *ir.UOp { return s.NewRange(capacity(s, r.Src[0])) })
	body = s.AtIndex(ranges, body, own)
	for i, r := range ranges {
		if r.Src[0] != own[i].Src[0] {
			body = a.Where(a.Lt(own[i], r.Src[0]), body, a.ConstInt(body.DType, 0))
		}
	}
	v := s.NewValue(body.DType, nil, nil)
	s.SetSignature(v, own, body)
	v.Pinned = true
	return a.Load(v.Node, ranges...)
}
