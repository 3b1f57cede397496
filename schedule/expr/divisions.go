package expr

import "tgc/ir"

// divisionNodes bounds how much of an arm is looked at.
const divisionNodes = 256

// interval is what a condition says of a linear form: lo <= terms <= hi.
type interval struct {
	terms  ir.LinearForm // without a constant
	lo, hi int64
}

// divided simplifies quotients and remainders in an arm by what its condition
// says: where 0 <= y < c, (c*m + y)/c is m and (c*m + y)%c is y. The adjoint of
// reading sliding windows comes down to shifted reads that way. A y of one range
// stays: r%c is cheap, and the other arm may share what depends on it.
func (s *Exprs) divided(arm, cond *ir.UOp) *ir.UOp {
	divisions := s.divisionsIn(arm)
	if len(divisions) == 0 {
		return arm
	}
	known := s.intervalsOf(cond)
	with := make(map[*ir.UOp]*ir.UOp)
	for _, u := range divisions {
		for _, iv := range known {
			if v := s.divideWithin(u, iv); v != nil {
				with[u] = v
				break
			}
		}
	}
	if len(with) == 0 {
		return arm
	}
	return s.Substitute(arm, with)
}

// divisionsIn lists the quotients and remainders by constants in an expression.
func (s *Exprs) divisionsIn(root *ir.UOp) (list []*ir.UOp) {
	var seen ir.Visited
	seen.Add(root)
	todo := []*ir.UOp{root}
	for len(todo) > 0 && seen.Len() < divisionNodes {
		u := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if (u.Op == ir.OpFloorDiv || u.Op == ir.OpFloorMod) && u.DType == ir.Idx {
			if d, ok := u.Src[1].Int(); ok && d > 1 {
				list = append(list, u)
			}
		}
		for _, x := range u.Src {
			if seen.Add(x) {
				todo = append(todo, x)
			}
		}
	}
	return list
}

// intervalsOf are the bounds that the comparisons of a condition set, each for
// its terms and for their negation.
func (s *Exprs) intervalsOf(cond *ir.UOp) (list []interval) {
	var below []ir.LinearForm // each is negative
	for _, c := range Conjuncts(cond, nil) {
		if c.Op != ir.OpCmpLt || c.Src[0].DType != ir.Idx {
			continue
		}
		if f, ok := s.Linear.Of(c.Src[0]).Plus(s.Linear.Of(c.Src[1]), -1); ok && len(f.Terms) > 1 {
			below = append(below, f)
		}
	}
	for _, f := range below {
		terms := ir.LinearForm{Terms: f.Terms}
		iv := interval{terms: terms, lo: s.Bounds.OfForm(terms).Lo, hi: -f.Const - 1}
		minus, ok := (ir.LinearForm{}).Plus(terms, -1)
		if !ok {
			continue
		}
		for _, g := range below {
			if (ir.LinearForm{Terms: g.Terms}).Equal(minus) {
				iv.lo = max(iv.lo, g.Const+1)
			}
		}
		if b := s.Bounds.OfForm(terms); b.Finite() && iv.lo <= iv.hi {
			list = append(list, iv, interval{terms: minus, lo: -iv.hi, hi: -iv.lo})
		}
	}
	return list
}

// divideWithin is a quotient or remainder of x = d*m + terms + c where the
// interval leaves one value q of (terms + c)/d: m + q, or terms + c - d*q. Nil
// when it does not.
func (s *Exprs) divideWithin(u *ir.UOp, iv interval) *ir.UOp {
	d, _ := u.Src[1].Int()
	rest, ok := s.Linear.Of(u.Src[0]).Plus(iv.terms, -1)
	if !ok {
		return nil
	}
	whole := ir.LinearForm{}
	for _, t := range rest.Terms {
		if t.Coef%d != 0 {
			return nil
		}
		whole.Terms = append(whole.Terms, ir.Term{Atom: t.Atom, Coef: t.Coef / d})
	}
	q := ir.FloorDiv(iv.lo+rest.Const, d)
	if q != ir.FloorDiv(iv.hi+rest.Const, d) {
		return nil
	}
	if u.Op == ir.OpFloorDiv {
		whole.Const = q
		return s.Simplify(whole.Build(s.A))
	}
	low, ok := iv.terms.Plus(ir.ConstForm(rest.Const-d*q), 1)
	if !ok {
		return nil
	}
	return s.Simplify(low.Build(s.A))
}

// Conjuncts lists the conditions that all hold where cond holds.
func Conjuncts(cond *ir.UOp, list []*ir.UOp) []*ir.UOp {
	if cond.Op != ir.OpAnd {
		return append(list, cond)
	}
	return Conjuncts(cond.Src[1], Conjuncts(cond.Src[0], list))
}
