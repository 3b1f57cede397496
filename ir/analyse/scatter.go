package analyse

import (
	"slices"

	"tgc/ir"
)

// ScatterPoints is the least number of points of k for which that is worth it: a term is
// added by scalar instructions that depend on the one before, where points look at terms
// in lanes. 2^20 terms on one core with AVX-512: 22 ms for 256 points in lanes, 1.6 added.
const ScatterPoints = 32

// Scatter is a fold each of whose terms counts at one point of a range k,
//
//	REDUCE(op, WHERE(k == at(j) & cond, term(j, k), identity); j)
//
// so that all points together need one pass over j: each term is added where it
// belongs.
type Scatter struct {
	Fold  *ir.UOp   // the outermost REDUCE
	Loops []*ir.UOp // its ranges and those of the REDUCEs inside it, outer first
	At    *ir.UOp   // Idx; depends on all loops and not on k
	Cond  []*ir.UOp // what else must hold
	Term  *ir.UOp

	// Where k counts in steps, Stride*k = Whole: At is the quotient, and among Cond is that
	// nothing remains.
	Whole  *ir.UOp
	Stride int64
}

// ScatterOf finds the scatter of what a store writes along range k: the only fold or
// stage outside of all others.
func ScatterOf(a *ir.Arena, bounds *ir.Bounds, value, k *ir.UOp) (*Scatter, bool) {
	var fold *ir.UOp
	for _, u := range outermostBinders(value) {
		if fold != nil || u.Op == ir.OpStage || IsTuple(u) {
			return nil, false
		}
		fold = u
	}
	if fold == nil || !Uses(fold, k) {
		return nil, false
	}
	s := &Scatter{Fold: fold}
	term := fold
	for ; term.Op == ir.OpReduce && term.Arg == fold.Arg; term = term.Src[0] {
		if Uses(term.ReduceRange().Src[0], k) {
			return nil, false
		}
		s.Loops = append(s.Loops, term.ReduceRange())
	}
	conds := s.guard(a, term)
	for i, c := range conds {
		if s.Whole, s.Stride = pointOf(a, bounds, c, k); s.Whole == nil || !s.movesWithLoops() {
			continue
		}
		s.At, s.Cond = s.Whole, slices.Delete(conds, i, i+1)
		if s.Stride > 1 {
			n := a.Index(s.Stride)
			s.At, s.Cond = a.Div(s.Whole, n), append(s.Cond, a.Eq(a.Mod(s.Whole, n), a.Index(0)))
		}
		return s, true
	}
	return nil, false
}

// guard takes a term apart into what must hold for it to count, and what counts.
func (s *Scatter) guard(a *ir.Arena, term *ir.UOp) []*ir.UOp {
	op := s.Fold.Arg.(ir.ReduceArg).Op
	switch {
	case term.Op == ir.OpWhere && term.Src[2] == a.FoldIdentity(op, term.DType):
		s.Term = term.Src[1]
		return slices.Clone(operands(term.Src[0], ir.OpAnd, nil))
	case term.Op == ir.OpCast && term.Src[0].DType == ir.Bool && op == ir.OpAdd && term.DType != ir.Bool:
		s.Term = a.Const(term.DType, 1)
		return slices.Clone(operands(term.Src[0], ir.OpAnd, nil))
	}
	return nil
}

// movesWithLoops reports a point that depends on every loop: an element is then read and
// written in the innermost one.
func (s *Scatter) movesWithLoops() bool {
	return !slices.ContainsFunc(s.Loops, func(r *ir.UOp) bool { return !Uses(s.Whole, r) })
}

// pointOf solves an equation stride*k == whole for what does not depend on k; nil where
// that is not its form.
func pointOf(a *ir.Arena, bounds *ir.Bounds, c, k *ir.UOp) (whole *ir.UOp, stride int64) {
	if c.Op != ir.OpCmpEq {
		return nil, 0
	}
	x, y := asIndex(a, bounds, c.Src[0]), asIndex(a, bounds, c.Src[1])
	if x == nil || y == nil {
		return nil, 0
	}
	form, ok := ir.Linear(a, x).Plus(ir.Linear(a, y), -1)
	if ok && form.Coef(k) > 0 {
		form, ok = ir.LinearForm{}.Plus(form, -1)
	}
	if !ok || form.Coef(k) >= 0 {
		return nil, 0
	}
	stride = -form.Coef(k)
	if form, ok = form.Plus(ir.AtomForm(k), stride); !ok {
		return nil, 0
	}
	if whole = form.Build(a); Uses(whole, k) {
		return nil, 0
	}
	return whole, stride
}

// asIndex is an integer as Idx; nil for one that Idx does not hold.
func asIndex(a *ir.Arena, bounds *ir.Bounds, u *ir.UOp) *ir.UOp {
	switch {
	case u.DType == ir.Idx:
		return u
	case !u.DType.IsInt() || u.DType == ir.U64:
		return nil
	case u.Op == ir.OpCast && (u.Src[0].DType == ir.Idx || u.Src[0].DType.IsInt() && u.Src[0].DType != ir.U64):
		if lo, hi := u.DType.IntRange(); bounds.Of(u.Src[0]).Within(lo, hi) {
			return asIndex(a, bounds, u.Src[0])
		}
	}
	if v, ok := u.Int(); ok {
		return a.Index(v)
	}
	return a.Cast(u, ir.Idx)
}

// outermostBinders lists the REDUCEs and STAGEs that are inside no other one.
func outermostBinders(value *ir.UOp) []*ir.UOp {
	var out []*ir.UOp
	ir.Walk(func(u *ir.UOp) []*ir.UOp {
		if u.Op == ir.OpReduce || u.Op == ir.OpStage {
			out = append(out, u)
			return nil
		}
		return u.Src
	}, value)
	return out
}
