package expr

import (
	"slices"

	"tgc/ir"
)

// choiceNodes bounds into how many nested WHEREs a condition is carried.
const choiceNodes = 64

// choose simplifies a WHERE whose sources are simplified: a decided condition
// and equal arms leave one arm, and inside an arm the condition's outcome is
// known, so that WHEREs below test only what is new. A pad inside a pad, and
// parts put beside each other, come down to one test each.
func (s *Exprs) choose(u *ir.UOp) *ir.UOp {
	cond, yes, no := u.Src[0], u.Src[1], u.Src[2]
	if v, ok := cond.Int(); ok {
		return u.Src[2-min(v, 1)]
	}
	budget := choiceNodes
	yes = s.assuming(yes, Conjuncts(cond, nil), &budget)
	yes = s.divided(yes, cond)
	if cond.Op != ir.OpAnd {
		no = s.assuming(no, []*ir.UOp{s.complement(cond)}, &budget)
	}
	if yes == no {
		return yes
	}
	return s.A.Where(cond, yes, no)
}

// assuming simplifies the WHEREs at the top of u where the facts hold, as many
// as the budget allows: arms may share what is below them.
func (s *Exprs) assuming(u *ir.UOp, facts []*ir.UOp, budget *int) *ir.UOp {
	if u.Op != ir.OpWhere || *budget == 0 {
		return u
	}
	*budget--
	var open *ir.UOp // the part of the condition that the facts do not decide
	for _, c := range Conjuncts(u.Src[0], nil) {
		switch {
		case slices.Contains(facts, c):
			continue
		case slices.Contains(facts, s.complement(c)):
			return s.assuming(u.Src[2], facts, budget)
		case open == nil:
			open = c
		default:
			open = s.A.And(open, c)
		}
	}
	yes, no := s.assuming(u.Src[1], facts, budget), s.assuming(u.Src[2], facts, budget)
	if open == nil || yes == no {
		return yes
	}
	if open == u.Src[0] && yes == u.Src[1] && no == u.Src[2] {
		return u
	}
	return s.A.Where(open, yes, no)
}

// complement is the condition that holds where c does not. Of mathematical
// integers it is a comparison again: not x < y is y-1 < x.
func (s *Exprs) complement(c *ir.UOp) *ir.UOp {
	if c.Op == ir.OpCmpLt && c.Src[0].DType == ir.Idx {
		return s.Simplify(s.A.Lt(s.A.Add(c.Src[1], s.A.Index(-1)), c.Src[0]))
	}
	return s.Simplify(s.A.Unary(ir.OpNot, c))
}
