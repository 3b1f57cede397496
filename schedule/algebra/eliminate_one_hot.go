package algebra

import (
	"math"
	"slices"

	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/schedule/expr"
	"tgc/schedule/state"
)

// eliminate-one-hot: a fold over r of terms that are the fold's identity unless an
// index equation holds,
//
//	REDUCE(op, WHERE(c*r + low == y & more, f(r), identity); r),
//
// has one term that counts, r = floor(y/c), and needs no loop. Scatters along an
// axis that they leave in place, derivatives of lookups and products with a one-hot
// matrix have this form. y may be read from memory. low
// are lower digits of a flattened position: their equation stays.

// EliminateOneHot applies the rule to every fold of a value.
func EliminateOneHot(s *state.State, v *state.Value) {
	hits, points := int64(0), int64(1)
	body := s.RewriteReduces(v.Body, func(u *ir.UOp) *ir.UOp {
		u = plainTerm(s.Exprs, u)
		hit := onlyTerm(s.Graph, u)
		if hit == nil {
			return u
		}
		hits++
		points = max(points, s.Points(expr.BinderRanges(u)))
		return hit
	})
	if hits > 0 {
		v.Body = body
		s.Record(v, true, "one term is not the identity", state.Number{Name: "loops", Value: hits}, state.Number{Name: "extent", Value: points})
	}
}

// onlyTerm is the one term of a fold that counts, nil when no equation names it.
func onlyTerm(s *state.Graph, u *ir.UOp) *ir.UOp {
	a, r, fold := s.A, u.ReduceRange(), u.Arg.(ir.ReduceArg)
	identity := identityOf(s.Exprs, fold, u.DType)
	term := opened(s, u.Src[0], fold)
	for _, e := range equationsOf(s.Exprs, term, fold, nil) {
		at, ok := solve(s.Exprs, e, r)
		if !ok {
			continue
		}
		hit := s.Substitute(term, map[*ir.UOp]*ir.UOp{r: at})
		if fold.Op == ir.OpAdd && u.DType.IsFloat() {
			hit = plusZero(s.Exprs, hit) // where the sum began
		}
		inside := s.Simplify(a.And(a.Lt(a.Index(-1), at), a.Lt(at, r.Src[0])))
		return s.SimplifyNode(a.Where(inside, hit, identity))
	}
	return nil
}

func identityOf(s *expr.Exprs, fold ir.ReduceArg, dtype ir.DType) *ir.UOp {
	return s.A.ConstScalar(dtype, ir.ReduceIdentity(fold.Op, dtype))
}

// carriesGuard reports an op through which a fold's identity passes: where its
// source is the identity, the fold of the results is as if they were too. A sum
// of -0 and +0 that begins with +0 is +0.
func carriesGuard(op ir.Op, fold ir.ReduceArg) bool {
	return fold.Op == ir.OpAdd && (op == ir.OpNeg || op == ir.OpCast)
}

// opened is a term in which the reads of pointwise values are replaced by what
// they hold, where that may show a guard.
func opened(s *state.Graph, term *ir.UOp, fold ir.ReduceArg) *ir.UOp {
	if p, ok := s.IsRead(term); ok {
		body := p.Body
		hides := body.Op == ir.OpWhere || carriesGuard(body.Op, fold) || body.DType == ir.Bool
		if hides && !p.Pinned && p.Target < 0 && s.IsPointwise(p) {
			return opened(s, s.Instantiate(p, term.Indices()), fold)
		}
		return term
	}
	src := slices.Clone(term.Src)
	switch {
	case term.Op == ir.OpCmpEq:
		return openedIndex(s, term)
	case term.Op == ir.OpWhere:
		src[0], src[1] = opened(s, src[0], fold), opened(s, src[1], fold)
	case term.Op == ir.OpAnd && term.DType == ir.Bool:
		src[0], src[1] = opened(s, src[0], fold), opened(s, src[1], fold)
	case carriesGuard(term.Op, fold), term.Op == ir.OpReduce && term.Arg == ir.Arg(fold):
		src[0] = opened(s, src[0], fold)
	}
	return s.A.With(term, src)
}

// openedIndex is a condition in which integers that pointwise values hold are
// computed: how they are bounded is what an equation needs.
func openedIndex(s *state.Graph, cond *ir.UOp) *ir.UOp {
	with := make(map[*ir.UOp]*ir.UOp)
	for _, u := range ir.Toposort(cond) {
		p, ok := s.IsRead(u)
		if ok && u.DType.IsInt() && !p.Pinned && p.Target < 0 && s.IsPointwise(p) {
			with[u] = s.Instantiate(p, u.Indices())
		}
	}
	return s.Substitute(cond, with)
}

// equation is an equality of integers without which a term is the identity of
// its fold, under inner loops.
type equation struct {
	x, y  *ir.UOp
	inner []*ir.UOp // ranges closed between the fold and the equation
}

// equationsOf lists those in the WHEREs of a term and of inner folds of the
// same kind.
func equationsOf(s *expr.Exprs, term *ir.UOp, fold ir.ReduceArg, inner []*ir.UOp) []equation {
	switch {
	case term.Op == ir.OpWhere && term.Src[2] == identityOf(s, fold, term.DType):
		return append(equations(term.Src[0], inner), equationsOf(s, term.Src[1], fold, inner)...)
	case term.Op == ir.OpCast && term.Src[0].DType == ir.Bool && fold.Op == ir.OpAdd:
		return equations(term.Src[0], inner)
	case carriesGuard(term.Op, fold):
		return equationsOf(s, term.Src[0], fold, inner)
	case term.Op == ir.OpReduce && term.Arg == ir.Arg(fold):
		return equationsOf(s, term.Src[0], fold, append(slices.Clone(inner), term.ReduceRange()))
	}
	return nil
}

// equations lists those that a condition implies.
func equations(cond *ir.UOp, inner []*ir.UOp) []equation {
	var list []equation
	for _, c := range expr.Conjuncts(cond, nil) {
		if c.Op == ir.OpCmpEq {
			list = append(list, equation{c.Src[0], c.Src[1], inner})
		}
	}
	return list
}

// solve finds the only value of r for which an equation can hold, free of r and
// of inner ranges. Terms that stay below c may depend on these beside c*r.
func solve(s *expr.Exprs, e equation, r *ir.UOp) (at *ir.UOp, ok bool) {
	if !s.DependsOn(e.x, r) && !s.DependsOn(e.y, r) {
		return nil, false
	}
	x, y := asIndex(s, e.x), asIndex(s, e.y)
	if x == nil || y == nil {
		return nil, false
	}
	f, ok := s.Linear.Of(x).Plus(s.Linear.Of(y), -1)
	if c := f.Coef(r); ok && c < 0 {
		f, ok = (ir.LinearForm{}).Plus(f, -1)
	}
	c := f.Coef(r)
	if !ok || c == 0 {
		return nil, false
	}
	low, rest := ir.LinearForm{}, ir.LinearForm{Const: f.Const}
	for _, t := range f.Terms {
		switch {
		case t.Atom == r:
		case s.Height(t.Atom) > 0:
			return nil, false
		case s.DependsOn(t.Atom, r) || s.DependsOn(t.Atom, e.inner...):
			low.Terms = append(low.Terms, t)
		default:
			rest.Terms = append(rest.Terms, t)
		}
	}
	below := s.Bounds.OfForm(low)
	if !below.Finite() || below.Hi-below.Lo >= c {
		return nil, false
	}
	// c*r + low + rest = 0 and 0 <= low-Lo < c, so r = floor((-rest-Lo)/c).
	over, ok := ir.ConstForm(-below.Lo).Plus(rest, -1)
	if !ok {
		return nil, false
	}
	return s.Simplify(s.A.Div(over.Build(s.A), s.A.Index(c))), true
}

// asIndex is an integer expression as Idx; nil for one that Idx does not hold.
func asIndex(s *expr.Exprs, u *ir.UOp) *ir.UOp {
	switch {
	case u.DType == ir.Idx:
		return u
	case u.DType.IsInt() && u.DType != ir.U64:
		return s.Simplify(s.A.Cast(u, ir.Idx))
	}
	return nil
}

// plusZero is 0 + u: another value only where u is -0.
func plusZero(s *expr.Exprs, u *ir.UOp) *ir.UOp {
	switch {
	case isNeverMinusZero(u):
		return u
	case u.Op == ir.OpWhere:
		return s.A.With(u, []*ir.UOp{u.Src[0], plusZero(s, u.Src[1]), plusZero(s, u.Src[2])})
	}
	return s.A.Add(s.Zero(u.DType), u)
}

// withoutZero undoes plusZero.
func withoutZero(s *expr.Exprs, u *ir.UOp) *ir.UOp {
	switch {
	case u.Op == ir.OpAdd && u.Src[0] == s.Zero(u.DType):
		return u.Src[1]
	case u.Op == ir.OpWhere:
		return s.A.With(u, []*ir.UOp{u.Src[0], withoutZero(s, u.Src[1]), withoutZero(s, u.Src[2])})
	}
	return u
}

// plainTerm takes 0 + x out of the term of a sum: it begins with +0, so that no
// term's -0 shows.
func plainTerm(s *expr.Exprs, u *ir.UOp) *ir.UOp {
	if !analyse.IsFloatSum(u) {
		return u
	}
	return s.A.With(u, []*ir.UOp{withoutZero(s, u.Src[0]), u.ReduceRange()})
}

// isNeverMinusZero reports a float that is not -0 whatever it reads.
func isNeverMinusZero(u *ir.UOp) bool {
	switch u.Op {
	case ir.OpReduce:
		return u.Arg.(ir.ReduceArg).Op == ir.OpAdd
	case ir.OpAdd:
		return isNeverMinusZero(u.Src[0]) || isNeverMinusZero(u.Src[1])
	case ir.OpWhere:
		return isNeverMinusZero(u.Src[1]) && isNeverMinusZero(u.Src[2])
	case ir.OpConst:
		v, _ := u.Float()
		return !math.Signbit(v)
	}
	return false
}
