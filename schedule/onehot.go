package schedule

import (
	"math"
	"slices"

	"tgc/ir"
)

// R1h, one hit: a fold over r of terms that are the fold's identity unless an
// index equation holds,
//
//	REDUCE(op, WHERE(c*r + low == y & more, f(r), identity); r),
//
// has one term that counts: r = floor(y/c). The loop goes. This is what becomes
// of a scatter along an axis that it leaves in place, of the derivative of a
// lookup, and of a product with a one-hot matrix. y may be read from memory. low
// are lower digits of a flattened position: their equation stays.

// oneHit applies R1h to every fold of a value.
func (s *scheduler) oneHit(v *value) {
	hits, points := int64(0), int64(1)
	body := s.rewriteReduces(v.body, func(u *ir.UOp) *ir.UOp {
		u = s.plainTerm(u)
		hit := s.hitOf(u)
		if hit == nil {
			return u
		}
		hits++
		points = max(points, s.points(binderRanges(u)))
		return hit
	})
	if hits > 0 {
		v.body = body
		s.record(OneHit, v, true, "one term is not the identity", Number{"loops", hits}, Number{"extent", points})
	}
}

// hitOf is the one term of a fold that counts, nil when no equation names it.
func (s *scheduler) hitOf(u *ir.UOp) *ir.UOp {
	a, r, fold := s.a, u.ReduceRange(), u.Arg.(ir.ReduceArg)
	identity := s.identityOf(fold, u.DType)
	term := s.opened(u.Src[0], fold)
	for _, e := range s.equationsOf(term, fold, nil) {
		at, ok := s.solve(e, r)
		if !ok {
			continue
		}
		hit := s.substitute(term, map[*ir.UOp]*ir.UOp{r: at})
		if fold.Op == ir.OpAdd && u.DType.IsFloat() {
			hit = s.plusZero(hit) // where the sum began
		}
		inside := s.simplify(a.And(a.Lt(a.Index(-1), at), a.Lt(at, r.Src[0])))
		return s.simplifyNode(a.Where(inside, hit, identity))
	}
	return nil
}

func (s *scheduler) identityOf(fold ir.ReduceArg, dtype ir.DType) *ir.UOp {
	return s.a.ConstScalar(dtype, ir.ReduceIdentity(fold.Op, dtype))
}

// carriesGuard reports an op through which a fold's identity passes: where its
// source is the identity, the fold of the results is as if they were too. A sum
// of -0 and +0 that begins with +0 is +0.
func carriesGuard(op ir.Op, fold ir.ReduceArg) bool {
	return fold.Op == ir.OpAdd && (op == ir.OpNeg || op == ir.OpCast)
}

// opened is a term in which the reads of pointwise values are replaced by what
// they hold, where that may show a guard.
func (s *scheduler) opened(term *ir.UOp, fold ir.ReduceArg) *ir.UOp {
	if p, ok := s.isRead(term); ok {
		body := p.body
		hides := body.Op == ir.OpWhere || carriesGuard(body.Op, fold) || body.DType == ir.Bool
		if hides && !p.pinned && p.target < 0 && s.isPointwise(p) {
			return s.opened(s.instantiate(p, term.Indices()), fold)
		}
		return term
	}
	src := slices.Clone(term.Src)
	switch {
	case term.Op == ir.OpCmpEq:
		return s.openedIndex(term)
	case term.Op == ir.OpWhere:
		src[0], src[1] = s.opened(src[0], fold), s.opened(src[1], fold)
	case term.Op == ir.OpAnd && term.DType == ir.Bool:
		src[0], src[1] = s.opened(src[0], fold), s.opened(src[1], fold)
	case carriesGuard(term.Op, fold), term.Op == ir.OpReduce && term.Arg == ir.Arg(fold):
		src[0] = s.opened(src[0], fold)
	}
	return s.a.With(term, src)
}

// openedIndex is a condition in which integers that pointwise values hold are
// computed: how they are bounded is what an equation needs.
func (s *scheduler) openedIndex(cond *ir.UOp) *ir.UOp {
	with := make(map[*ir.UOp]*ir.UOp)
	for _, u := range ir.Toposort(cond) {
		p, ok := s.isRead(u)
		if ok && u.DType.IsInt() && !p.pinned && p.target < 0 && s.isPointwise(p) {
			with[u] = s.instantiate(p, u.Indices())
		}
	}
	return s.substitute(cond, with)
}

// equation is an equality of integers without which a term is the identity of
// its fold, under inner loops.
type equation struct {
	x, y  *ir.UOp
	inner []*ir.UOp // ranges closed between the fold and the equation
}

// equationsOf lists those in the WHEREs of a term and of inner folds of the
// same kind.
func (s *scheduler) equationsOf(term *ir.UOp, fold ir.ReduceArg, inner []*ir.UOp) []equation {
	switch {
	case term.Op == ir.OpWhere && term.Src[2] == s.identityOf(fold, term.DType):
		return append(equations(term.Src[0], inner), s.equationsOf(term.Src[1], fold, inner)...)
	case term.Op == ir.OpCast && term.Src[0].DType == ir.Bool && fold.Op == ir.OpAdd:
		return equations(term.Src[0], inner)
	case carriesGuard(term.Op, fold):
		return s.equationsOf(term.Src[0], fold, inner)
	case term.Op == ir.OpReduce && term.Arg == ir.Arg(fold):
		return s.equationsOf(term.Src[0], fold, append(slices.Clone(inner), term.ReduceRange()))
	}
	return nil
}

// equations lists those that a condition implies.
func equations(cond *ir.UOp, inner []*ir.UOp) []equation {
	var list []equation
	for _, c := range conjuncts(cond, nil) {
		if c.Op == ir.OpCmpEq {
			list = append(list, equation{c.Src[0], c.Src[1], inner})
		}
	}
	return list
}

// solve finds the only value of r for which an equation can hold, free of r and
// of inner ranges. Terms that stay below c may depend on these beside c*r.
func (s *scheduler) solve(e equation, r *ir.UOp) (at *ir.UOp, ok bool) {
	if !s.dependsOn(e.x, r) && !s.dependsOn(e.y, r) {
		return nil, false
	}
	x, y := s.asIndex(e.x), s.asIndex(e.y)
	if x == nil || y == nil {
		return nil, false
	}
	f, ok := s.linear.Of(x).Plus(s.linear.Of(y), -1)
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
		case s.height(t.Atom) > 0:
			return nil, false
		case s.dependsOn(t.Atom, r) || s.dependsOn(t.Atom, e.inner...):
			low.Terms = append(low.Terms, t)
		default:
			rest.Terms = append(rest.Terms, t)
		}
	}
	below := s.bounds.OfForm(low)
	if !below.Finite() || below.Hi-below.Lo >= c {
		return nil, false
	}
	// c*r + low + rest = 0 and 0 <= low-Lo < c, so r = floor((-rest-Lo)/c).
	over, ok := ir.ConstForm(-below.Lo).Plus(rest, -1)
	if !ok {
		return nil, false
	}
	return s.simplify(s.a.Div(over.Build(s.a), s.a.Index(c))), true
}

// asIndex is an integer expression as Idx; nil for one that Idx does not hold.
func (s *scheduler) asIndex(u *ir.UOp) *ir.UOp {
	switch {
	case u.DType == ir.Idx:
		return u
	case u.DType.IsInt() && u.DType != ir.U64:
		return s.simplify(s.a.Cast(u, ir.Idx))
	}
	return nil
}

// plusZero is 0 + u: another value only where u is -0.
func (s *scheduler) plusZero(u *ir.UOp) *ir.UOp {
	switch {
	case isNeverMinusZero(u):
		return u
	case u.Op == ir.OpWhere:
		return s.a.With(u, []*ir.UOp{u.Src[0], s.plusZero(u.Src[1]), s.plusZero(u.Src[2])})
	}
	return s.a.Add(s.zero(u.DType), u)
}

// withoutZero undoes plusZero.
func (s *scheduler) withoutZero(u *ir.UOp) *ir.UOp {
	switch {
	case u.Op == ir.OpAdd && u.Src[0] == s.zero(u.DType):
		return u.Src[1]
	case u.Op == ir.OpWhere:
		return s.a.With(u, []*ir.UOp{u.Src[0], s.withoutZero(u.Src[1]), s.withoutZero(u.Src[2])})
	}
	return u
}

// plainTerm takes 0 + x out of the term of a sum: it begins with +0, so that no
// term's -0 shows.
func (s *scheduler) plainTerm(u *ir.UOp) *ir.UOp {
	if u.Arg.(ir.ReduceArg).Op != ir.OpAdd || !u.DType.IsFloat() {
		return u
	}
	return s.a.With(u, []*ir.UOp{s.withoutZero(u.Src[0]), u.ReduceRange()})
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
