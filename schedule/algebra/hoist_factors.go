package algebra

import (
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/schedule/expr"
	"tgc/schedule/state"
)

// hoist-factors: REDUCE(ADD, f1*..*fn; k): factors free of k move out. With
// look-through, a factor that reads a pointwise value P is replaced by P's
// factors iff that exposes a factor free of k that is no constant. Then what
// stays, when it is more than a few operations, becomes a value of its
// own, one for all readers: else a quantised activation would be recomputed for
// every output row. Only sums: a maximum changes with the factor's sign, and a
// narrowing CAST, WHERE or EXP2 is opaque. Assumes finite inputs. A sum that fewer points
// have then than before, a product with an outer one, is a value of its own.
//
// "RMSNorm folds into the matvec" is this rule and unify-loops.

// HoistFactors applies the rule to every float sum of a value.
func HoistFactors(s *state.State, v *state.Value) {
	factors, times, tiles := int64(0), int64(1), onFloatTiles(s, v)
	body := s.RewriteReduces(v.Body, func(u *ir.UOp) *ir.UOp {
		if !analyse.IsFloatSum(u) {
			return u
		}
		out, in := partFactors(s, u, tiles)
		if len(out) > 0 {
			factors += int64(len(out))
			times = max(times, s.Points(expr.BinderRanges(u)))
		}
		if len(out) == 0 {
			return u
		}
		return analyse.Product(s.A, append(out, sharedSum(s, v, s.SumOf(in, u.ReduceRange(), u.DType))))
	})
	if body != v.Body {
		v.Body = body
		s.Record(v, true, "factor free of the sum", state.Number{Name: "factors", Value: factors}, state.Number{Name: "extent", Value: times})
	}
}

// sharedSum is a sum of which some ranges of v are free now: one value for all their points,
// which would each compute it. Other sums stay where they are.
func sharedSum(s *state.State, v *state.Value, sum *ir.UOp) *ir.UOp {
	free := s.Free.Of(sum)
	own := slices.DeleteFunc(slices.Clone(v.Ranges), func(r *ir.UOp) bool { return !slices.Contains(free, r) })
	if sum.Op != ir.OpReduce || len(own) == 0 || len(own) != len(free) || s.Points(v.Ranges) == s.Points(own) {
		return sum
	}
	p := s.NewValue(sum.DType, nil, nil)
	s.SetSignature(p, own, sum)
	return s.A.Load(p.Node, own...)
}

// partFactors parts the factors of a sum into those free of its range and the
// rest.
func partFactors(s *state.State, u *ir.UOp, stored bool) (out, in []*ir.UOp) {
	k := u.ReduceRange()
	for _, f := range analyse.Factors(u.Src[0]) {
		if !s.DependsOn(f, k) {
			out = append(out, f)
			continue
		}
		exposed, rest, ok := lookThrough(s, f, stored, func(g *ir.UOp) bool { return !s.DependsOn(g, k) })
		if !ok {
			rest = []*ir.UOp{f}
		}
		out, in = append(out, exposed...), append(in, rest...)
	}
	return out, in
}

// lookThrough replaces a read of a pointwise value by that value's factors, if
// one of them satisfies wanted and is no constant. It returns the wanted
// factors and the others, the latter possibly as one read of a new value; stored: in any case
// as that, as tiles read activations.
func lookThrough(s *state.State, f *ir.UOp, stored bool, wanted func(*ir.UOp) bool) (exposed, rest []*ir.UOp, ok bool) {
	p, isRead := s.IsRead(f)
	if !isRead || p.Pinned || p.Target >= 0 || p.Split || !s.IsPointwise(p) || s.FactsOf(p.Body).Weights {
		return nil, nil, false // a decode must not move into every row
	}
	index := f.Indices()
	var inner []*ir.UOp // factors of P that stay, over P's ranges
	for _, g := range analyse.Factors(p.Body) {
		at := s.AtIndex(p.Ranges, g, index)
		switch {
		case wanted(at):
			exposed = append(exposed, at)
			ok = ok || at.Op != ir.OpConst
			continue
		case isReadOfPointwise(s.Graph, g):
			if more, left, deeper := lookThrough(s, at, stored, wanted); deeper {
				exposed, rest, ok = append(exposed, more...), append(rest, left...), true
				continue
			}
		}
		inner = append(inner, g)
	}
	if !ok {
		return nil, nil, false
	}
	if len(inner) > 0 {
		rest = append(rest, restOf(s, p, inner, index, stored))
	}
	return exposed, rest, true
}

func isReadOfPointwise(s *state.Graph, g *ir.UOp) bool {
	p, ok := s.IsRead(g)
	return ok && s.IsPointwise(p)
}

// restOf is the product of some factors of P at an index: inline when it is
// cheap enough to be repeated for every output row and need not be stored, else a read of a value of
// its own.
func restOf(s *state.State, p *state.Value, list, index []*ir.UOp, stored bool) *ir.UOp {
	if narrow := narrowRest(s, p, list, index); narrow != nil {
		return narrow
	}
	body := analyse.Product(s.A, list)
	if len(list) == 1 && body.Op == ir.OpLoad || !stored && !expr.IsNarrowing(body) && s.Operations(body) <= s.Opt.Profile.RepeatOps && s.Points(p.Ranges) <= s.Opt.Profile.RepeatCap {
		return s.AtIndex(p.Ranges, body, index)
	}
	rest, ok := s.RestMemo[body]
	if !ok {
		rest = s.NewValue(body.DType, nil, nil)
		ranges := slices.DeleteFunc(slices.Clone(p.Ranges), func(r *ir.UOp) bool { return !s.DependsOn(body, r) })
		s.SetSignature(rest, ranges, body)
		s.RestMemo[body] = rest
	}
	var at []*ir.UOp
	for i, r := range p.Ranges {
		if s.DependsOn(body, r) {
			at = append(at, index[i])
		}
	}
	return s.A.Load(rest.Node, at...)
}

// narrowRest is restOf where the factors widen narrow integers (the digits of
// quantised activations): those become the values, a byte each instead of a
// float, and every reader widens them. nil where that is not so.
func narrowRest(s *state.State, p *state.Value, list, index []*ir.UOp) *ir.UOp {
	body := analyse.Product(s.A, list)
	wide := lists.Filter(ir.Toposort(body), func(u *ir.UOp) bool { return widensInteger(s.Exprs, u) })
	if len(wide) == 0 {
		return nil
	}
	with := make(map[*ir.UOp]*ir.UOp, len(wide))
	for i, u := range wide {
		with[u] = s.A.Const(u.DType, float64(i+2)) // in place of the read, which has other ranges
	}
	shell := s.Substitute(body, with)
	if len(s.Free.Of(shell)) > 0 || s.Operations(shell) > s.Opt.Profile.InlineOps {
		return nil
	}
	clear(with)
	for _, u := range wide {
		with[u] = s.A.Cast(restOf(s, p, u.Src, index, false), u.DType)
	}
	return s.Substitute(body, with)
}

// widensInteger reports the conversion to float of a narrow integer that is
// computed: neither read from memory as it is, nor from packed fields.
func widensInteger(s *expr.Exprs, u *ir.UOp) bool {
	if u.Op != ir.OpCast || !u.DType.IsFloat() {
		return false
	}
	x := u.Src[0]
	return x.DType.IsInt() && x.DType.Size() <= 2 && x.Op != ir.OpLoad && x.Op != ir.OpConst && !s.ReadsField(x)
}
