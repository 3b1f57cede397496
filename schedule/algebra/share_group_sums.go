package algebra

import (
	"slices"

	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/schedule/expr"
	"tgc/schedule/state"
)

// share-group-sums: once scales and offsets are outside, integer dots leave sums of
// activations alone. With several tokens these become values of their own: one
// number for a group and token, the same for all rows. With one token a block
// computes them itself, next to its activations, as it does with several tokens
// whose activations it makes ready (BlockRows).

// ShareGroupSums applies the rule to all values: those whose work is worth new values first, then others to sums that these have left.
func ShareGroupSums(s *state.State) {
	others := make(map[*state.Value]sumKinds)
	values := slices.Clone(s.Values)
	for _, v := range values {
		if v.Dead || s.Height(v.Body) == 0 {
			continue
		}
		switch kinds, ok := sharedSums(s, v); {
		case !ok:
		case worthSums(s, v, kinds):
			shareSums(s, v, kinds)
		default:
			kinds.known = true
			others[v] = kinds
		}
	}
	for _, v := range values {
		if kinds, ok := others[v]; ok {
			shareSums(s, v, kinds)
		}
	}
}

// sharedSums are the kinds of a value's sums that may be values; ok is false where it has none.
func sharedSums(s *state.State, v *state.Value) (kinds sumKinds, ok bool) {
	n, reuse := s.Opt.Profile.MatrixTokens, s.WeightReuse(v)
	matrix := n > 0 && reuse > n/2 // fewer would leave most of a tile empty
	floats := (matrix || onFloatTiles(s, v)) && s.ReadsField(v.Body)
	return sumKinds{floats: floats, integers: !matrix}, floats || holdsDot(s.Exprs, v.Body)
}

// worthSums reports a product whose work pays for new values: without matrix instructions it always does.
func worthSums(s *state.State, v *state.Value, kinds sumKinds) bool {
	return kinds.integers || s.Work(v.Body, v.Ranges)/matrixSums >= s.Opt.Profile.Launch*s.Opt.Profile.Workers
}

// shareSums lets a value read sums of its activations.
func shareSums(s *state.State, v *state.Value, kinds sumKinds) {
	before, own := len(s.Values), v.Body
	if inPanels(s, v) {
		own = sumsOutside(s.Exprs, own) // of which each row of a panel would add one for every group
	}
	if body := sumsApart(s, v, own, kinds); body != own {
		v.Body = body
		s.Record(v, true, "sums of activations", state.Number{Name: "values", Value: int64(len(s.Values) - before)})
	}
}

// matrixSums is by how much the work of a product, as threads would do it, is longer than the group sums beside it by matrix instructions:
// a fifth of its instructions, each of which does ten times as much. Sums shorter than a launch are no values. It is an estimate: on an
// H100 sums that are always values were timed with other changes only (docs/bench/h100-tiles.txt), prompts of 512 9 to 44 % faster, batches of 8 and 16 0 to 36 % slower.
const matrixSums = 48

// shortGroup is the number of points of a group below which its sum of activations is not added by itself: adding it takes as long as a dot of
// four of them. One Zen 5 core, tiles of 128 tokens, codes of Q5_0 that four weights share, of which 32 have a scale: 628 us with
// a sum for every four, 341 with one for all. A sum for every 16 is as fast as one for 32 (Q4_0).
const shortGroup = 16

// sumsOutside takes sums of activations of short groups out of the sums of integers that they stand in beside sums with
// weights, as far as these nest without a scale between them:
//
//	sum_i (sum_j x*q + c*sum_j x)  ->  sum_i sum_j x*q + c*sum_i sum_j x
func sumsOutside(s *expr.Exprs, body *ir.UOp) *ir.UOp {
	return s.RewriteReduces(body, func(u *ir.UOp) *ir.UOp {
		if u.DType != ir.I32 || !analyse.IsSum(u) || u.Src[0].Op != ir.OpAdd {
			return u
		}
		with, without := u.Src[0].Src[0], u.Src[0].Src[1]
		if s.ReadsField(without) {
			with, without = without, with
		}
		if !s.ReadsField(with) || s.ReadsField(without) || !isShortGroup(s, without) {
			return u
		}
		r := u.ReduceRange()
		var out, in []*ir.UOp
		for _, f := range analyse.Factors(without) {
			if s.DependsOn(f, r) {
				in = append(in, f)
			} else {
				out = append(out, f)
			}
		}
		apart := analyse.Product(s.A, append(out, sumOfSums(s, in, r, u.DType)))
		return s.A.Add(s.SumOf([]*ir.UOp{with}, r, u.DType), apart)
	})
}

// isShortGroup reports a product of which one factor is a sum over few points.
func isShortGroup(s *expr.Exprs, u *ir.UOp) bool {
	return slices.ContainsFunc(analyse.Factors(u), func(f *ir.UOp) bool {
		return f.Op == ir.OpReduce && analyse.IsSum(f) && s.Points([]*ir.UOp{f.ReduceRange()}) < shortGroup
	})
}

// sumOfSums is the sum of a product over a range: of another sum one sum over both, where their ranges are the digits of one position.
func sumOfSums(s *expr.Exprs, factors []*ir.UOp, r *ir.UOp, dtype ir.DType) *ir.UOp {
	if len(factors) != 1 || factors[0].Op != ir.OpReduce || !analyse.IsSum(factors[0]) {
		return s.SumOf(factors, r, dtype)
	}
	inner, body := factors[0].ReduceRange(), factors[0].Src[0]
	k := s.NewRange(s.A.Mul(r.Src[0], inner.Src[0]))
	for _, digits := range [][2]*ir.UOp{{r, inner}, {inner, r}} {
		high, low := digits[0], digits[1]
		body := s.Substitute(body, map[*ir.UOp]*ir.UOp{high: s.A.Div(k, low.Src[0]), low: s.A.Mod(k, low.Src[0])})
		if !analyse.Any(body, func(u *ir.UOp) bool { return (u.Op == ir.OpFloorDiv || u.Op == ir.OpFloorMod) && s.DependsOn(u, k) }) {
			return s.SumOf([]*ir.UOp{body}, k, dtype)
		}
	}
	return s.SumOf(factors, r, dtype)
}

// holdsDot reports sums of integers next to packed weights.
func holdsDot(s *expr.Exprs, body *ir.UOp) bool {
	return s.Height(body) > 0 && s.ReadsField(body) && slices.ContainsFunc(ir.Toposort(body), func(u *ir.UOp) bool {
		return u.Op == ir.OpReduce && u.DType == ir.I32 && readsValue(u)
	})
}

func readsValue(u *ir.UOp) bool {
	return slices.ContainsFunc(ir.Toposort(u), func(x *ir.UOp) bool { return x.Op == ir.OpValue })
}

// sumsApart replaces the largest expressions around sums of activations by reads
// of values.
func sumsApart(s *state.State, v *state.Value, body *ir.UOp, kinds sumKinds) *ir.UOp {
	with := make(map[*ir.UOp]*ir.UOp)
	ir.Walk(func(u *ir.UOp) []*ir.UOp {
		switch {
		case s.Height(u) == 0:
			return nil
		case isGroupSum(s.Exprs, v, u, kinds):
			if s.BlocksPrepare(rowsOf(s.Exprs, v, u), s.MostReads(u, s.Free.Of(u))) {
				return nil // blocks make these ready, and add them up
			}
			if sum := groupValue(s.Graph, u, kinds.known); sum != nil {
				with[u] = sum
			}
			return nil
		}
		return u.Src
	}, body)
	if len(with) == 0 {
		return body
	}
	return s.ReplaceNodes(body, with)
}

// sumKinds are the sums that become values.
type sumKinds struct {
	floats   bool // of floats too
	integers bool // arithmetic on them that is of integers: an offset, which matrix instructions sum with the codes
	known    bool // none but what another value has left
}

// rowsOf is for how many rows of v an expression differs.
func rowsOf(s *expr.Exprs, v *state.Value, u *ir.UOp) int64 {
	return s.Points(ir.WithoutRanges(v.Ranges, ir.WithoutRanges(v.Ranges, s.Free.Of(u))))
}

// isGroupSum reports arithmetic on sums of integers, or floats, without weights, in a loop
// of a sum with weights, that some range of v's does not change: rows.
func isGroupSum(s *expr.Exprs, v *state.Value, u *ir.UOp, kinds sumKinds) bool {
	if u.DType != ir.F32 && (u.DType != ir.I32 || !kinds.integers) || s.ReadsField(u) || !u.Op.IsElementwise() && u.Op != ir.OpReduce {
		return false
	}
	sums := false
	for _, x := range ir.Toposort(u) {
		if x.Op == ir.OpReduce {
			if x.DType != ir.I32 && !kinds.floats || !analyse.IsSum(x) || !readsValue(x) {
				return false
			}
			sums = true
		}
		if x.Op == ir.OpStage {
			return false
		}
	}
	free := s.Free.Of(u)
	used := func(r *ir.UOp) bool { return s.DependsOn(u, r) }
	return sums && expr.ConstantExtents(free) && slices.ContainsFunc(free, expr.IsClosed) &&
		slices.ContainsFunc(v.Ranges, used) && !slices.ContainsFunc(free, func(r *ir.UOp) bool { return !expr.IsClosed(r) && !slices.Contains(v.Ranges, r) })
}

// groupValue is a read of the value that u is over its free ranges; equal ones
// of several readers are one. Nil: there is none yet, and only one that is known will do.
func groupValue(s *state.Graph, u *ir.UOp, onlyKnown bool) *ir.UOp {
	ranges := expr.Sorted(s.Free.Of(u))
	slices.SortStableFunc(ranges, func(x, y *ir.UOp) int { // those of the reader first, then outer sums before inner
		if expr.IsClosed(x) != expr.IsClosed(y) {
			if expr.IsClosed(y) {
				return -1
			}
			return 1
		}
		if expr.IsClosed(x) {
			return expr.RangeID(y) - expr.RangeID(x)
		}
		return expr.RangeID(x) - expr.RangeID(y)
	})
	key := s.AtIndex(ranges, u, places(s.A, ranges))
	known, ok := s.RestMemo[key]
	if !ok && onlyKnown {
		return nil
	}
	if !ok {
		known = s.NewValue(u.DType, nil, nil)
		s.SetSignature(known, ranges, u)
		s.RestMemo[key] = known
	}
	return s.A.Load(known.Node, ranges...)
}

// places are ranges of the same extents that no value has.
func places(a *ir.Arena, ranges []*ir.UOp) []*ir.UOp {
	place := make([]*ir.UOp, len(ranges))
	for i, r := range ranges {
		place[i] = a.Range(groupPlace+i, r.Src[0])
	}
	return place
}

// groupPlace is the first id of ranges in place of any: no other range has it.
const groupPlace = 1 << 30
