package ir

import (
	"cmp"
	"slices"
)

// Term is Coef * Atom. An atom is an Idx node that is no sum and no multiple:
// a leaf, a division, a minimum, or a product of such atoms.
type Term struct {
	Atom *UOp
	Coef int64
}

// LinearForm is Const plus the sum of its Terms: distinct atoms with nonzero
// coefficients, sorted by Compare of the atoms. Two Idx expressions that are
// equal as polynomials over their atoms have equal forms.
type LinearForm struct {
	Terms []Term
	Const int64
}

// The sizes past which a sum is left as an atom: forms stay small, so work per
// node is bounded.
const (
	maxTerms      = 64
	maxProduct    = 16 // terms of an expanded product
	maxAtomFactor = 8  // factors of a product atom
)

// Linear is the linear form of one Idx expression.
func Linear(a *Arena, u *UOp) LinearForm { return NewLinearizer(a).Of(u) }

// Linearizer computes and remembers linear forms.
type Linearizer struct {
	arena *Arena
	forms NodeMap[LinearForm]
}

// NewLinearizer makes an empty memo over an arena.
func NewLinearizer(a *Arena) *Linearizer {
	return &Linearizer{arena: a}
}

// Of is the linear form of an Idx node.
func (l *Linearizer) Of(u *UOp) LinearForm {
	todo := []*UOp{u}
	for len(todo) > 0 {
		top := todo[len(todo)-1]
		if l.forms.Has(top) {
			todo = todo[:len(todo)-1]
			continue
		}
		ready := true
		if isLinearOp(top) {
			for _, s := range top.Src {
				if !l.forms.Has(s) {
					todo = append(todo, s)
					ready = false
				}
			}
		}
		if ready {
			l.forms.Set(top, l.compute(top))
			todo = todo[:len(todo)-1]
		}
	}
	return l.known(u)
}

func (l *Linearizer) known(u *UOp) LinearForm {
	form, _ := l.forms.Get(u)
	return form
}

func isLinearOp(u *UOp) bool {
	switch u.Op {
	case OpAdd, OpSub, OpMul, OpNeg:
		return u.DType == Idx
	}
	return false
}

func (l *Linearizer) compute(u *UOp) LinearForm {
	if v, ok := u.Int(); ok {
		return LinearForm{Const: v}
	}
	if isLinearOp(u) {
		x := l.known(u.Src[0])
		var form LinearForm
		var ok bool
		switch u.Op {
		case OpAdd:
			form, ok = x.Plus(l.known(u.Src[1]), 1)
		case OpSub:
			form, ok = x.Plus(l.known(u.Src[1]), -1)
		case OpNeg:
			form, ok = LinearForm{}.Plus(x, -1)
		case OpMul:
			form, ok = l.product(u, x, l.known(u.Src[1]))
		}
		if ok {
			return form
		}
	}
	return LinearForm{Terms: []Term{{u, 1}}}
}

// Plus is f + scale*g; ok is false when a coefficient overflows or the sum is
// too long.
func (f LinearForm) Plus(g LinearForm, scale int64) (sum LinearForm, ok bool) {
	scaled, ok := CheckedMul(g.Const, scale)
	if !ok {
		return sum, false
	}
	if sum.Const, ok = CheckedAdd(f.Const, scaled); !ok {
		return sum, false
	}
	if len(f.Terms)+len(g.Terms) > maxTerms {
		return sum, false
	}
	sum.Terms = make([]Term, 0, len(f.Terms)+len(g.Terms))
	i, j := 0, 0
	for i < len(f.Terms) || j < len(g.Terms) {
		side := 0
		switch {
		case i == len(f.Terms):
			side = 1
		case j == len(g.Terms):
			side = -1
		default:
			side = Compare(f.Terms[i].Atom, g.Terms[j].Atom)
		}
		var term Term
		if side <= 0 {
			term = f.Terms[i]
			i++
		}
		if side >= 0 {
			term.Atom = g.Terms[j].Atom
			scaled, ok := CheckedMul(g.Terms[j].Coef, scale)
			if !ok {
				return sum, false
			}
			if term.Coef, ok = CheckedAdd(term.Coef, scaled); !ok {
				return sum, false
			}
			j++
		}
		if term.Coef != 0 {
			sum.Terms = append(sum.Terms, term)
		}
	}
	return sum, true
}

// product expands x*y; products of atoms become product atoms.
func (l *Linearizer) product(u *UOp, x, y LinearForm) (LinearForm, bool) {
	if c, ok := y.AsConst(); ok {
		return LinearForm{}.Plus(x, c)
	}
	if c, ok := x.AsConst(); ok {
		return LinearForm{}.Plus(y, c)
	}
	if (len(x.Terms)+1)*(len(y.Terms)+1) > maxProduct+1 {
		return LinearForm{}, false
	}
	sum, ok := LinearForm{}.Plus(x, y.Const)
	if !ok {
		return sum, false
	}
	for _, t := range y.Terms {
		row := LinearForm{Terms: make([]Term, 0, len(x.Terms)+1)}
		for _, s := range x.Terms {
			atom, ok := l.productAtom(s.Atom, t.Atom)
			if !ok {
				return sum, false
			}
			coef, ok := CheckedMul(s.Coef, t.Coef)
			if !ok {
				return sum, false
			}
			row.Terms = append(row.Terms, Term{atom, coef})
		}
		if x.Const != 0 {
			coef, ok := CheckedMul(x.Const, t.Coef)
			if !ok {
				return sum, false
			}
			row.Terms = append(row.Terms, Term{t.Atom, coef})
		}
		row.sort()
		if sum, ok = sum.Plus(row, 1); !ok {
			return sum, false
		}
	}
	return sum, true
}

func (f LinearForm) sort() {
	slices.SortFunc(f.Terms, func(s, t Term) int { return Compare(s.Atom, t.Atom) })
}

// productAtom is the canonical product of two atoms: sorted factors, left-deep.
func (l *Linearizer) productAtom(x, y *UOp) (*UOp, bool) {
	factors := append(Factors(x), Factors(y)...)
	if len(factors) > maxAtomFactor {
		return nil, false
	}
	SortNodes(factors)
	atom := factors[0]
	for _, f := range factors[1:] {
		atom = l.arena.Make(OpMul, Idx, nil, atom, f)
		// A product atom is its own form, so that it is not expanded again.
		l.forms.Set(atom, LinearForm{Terms: []Term{{atom, 1}}})
	}
	return atom, true
}

// Factors are the factors of a left-deep product atom.
func Factors(atom *UOp) []*UOp {
	var list []*UOp
	for atom.Op == OpMul && atom.DType == Idx && len(list) < maxAtomFactor {
		list = append(list, atom.Src[1])
		atom = atom.Src[0]
	}
	list = append(list, atom)
	slices.Reverse(list)
	return list
}

// AsConst reports a form without terms.
func (f LinearForm) AsConst() (int64, bool) { return f.Const, len(f.Terms) == 0 }

// Coef is the coefficient of an atom; 0 when it is absent.
func (f LinearForm) Coef(atom *UOp) int64 {
	for _, t := range f.Terms {
		if t.Atom == atom {
			return t.Coef
		}
	}
	return 0
}

// Equal reports the same terms and constant.
func (f LinearForm) Equal(g LinearForm) bool {
	return f.Const == g.Const && slices.Equal(f.Terms, g.Terms)
}

// Build makes the canonical expression of the form: terms of larger
// coefficient (in absolute value) first, then by atom; the constant last.
func (f LinearForm) Build(a *Arena) *UOp {
	terms := slices.Clone(f.Terms)
	slices.SortStableFunc(terms, func(s, t Term) int {
		return cmp.Compare(absWord(t.Coef), absWord(s.Coef))
	})
	var sum *UOp
	for _, t := range terms {
		node := t.Atom
		if t.Coef != 1 {
			node = a.Make(OpMul, Idx, nil, node, a.Index(t.Coef))
		}
		if sum == nil {
			sum = node
		} else {
			sum = a.Make(OpAdd, Idx, nil, sum, node)
		}
	}
	switch {
	case sum == nil:
		return a.Index(f.Const)
	case f.Const != 0:
		return a.Make(OpAdd, Idx, nil, sum, a.Index(f.Const))
	}
	return sum
}

func absWord(v int64) uint64 {
	if v < 0 {
		return -uint64(v)
	}
	return uint64(v)
}

// AtomForm is the form of one atom.
func AtomForm(atom *UOp) LinearForm { return LinearForm{Terms: []Term{{atom, 1}}} }

// ConstForm is the form of a constant.
func ConstForm(v int64) LinearForm { return LinearForm{Const: v} }
