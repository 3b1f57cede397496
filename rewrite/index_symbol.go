package rewrite

import (
	"slices"

	"tgc/ir"
)

// Division by symbolic extents: the dividend is written as q*d + r by
// polynomial division, so that dims cancel exactly or not at all.

// divSymbol is floor(x/d) for a symbolic d >= 1.
func (c *Context) divSymbol(x ir.LinearForm, d *ir.UOp) ir.LinearForm {
	q, r, _ := c.extract(x, c.form(d))
	if c.below(r, c.form(d)) {
		return q
	}
	if high, rest, _, ok := c.splitSymbolDigit(r, c.form(d)); ok {
		return c.plus(q, c.div(high, rest.Build(c.Arena)))
	}
	if len(r.Terms) == 1 && r.Terms[0].Coef == 1 && r.Const == 0 {
		if inner, ok := c.divSymbolAtom(r.Terms[0].Atom, d); ok {
			return c.plus(q, inner)
		}
	}
	return c.plus(q, c.atom(ir.OpFloorDiv, r, d))
}

// modSymbol is x - d*floor(x/d) for a symbolic d >= 1.
func (c *Context) modSymbol(x ir.LinearForm, d *ir.UOp) ir.LinearForm {
	_, r, _ := c.extract(x, c.form(d))
	if c.below(r, c.form(d)) {
		return r
	}
	if high, rest, low, ok := c.splitSymbolDigit(r, c.form(d)); ok {
		factor := c.quotientForm(c.form(d), rest)
		inner := c.mod(high, rest.Build(c.Arena)).Build(c.Arena)
		return c.plus(low, c.form(c.Arena.Mul(inner, factor.Build(c.Arena))))
	}
	if len(r.Terms) == 1 && r.Terms[0].Coef == 1 && r.Const == 0 {
		atom := r.Terms[0].Atom
		if atom.Op == ir.OpFloorMod && c.Bounds.Of(atom.Src[1]).Lo >= 1 && c.divides(c.form(d), c.form(atom.Src[1])) {
			return c.mod(c.form(atom.Src[0]), d)
		}
	}
	return c.atom(ir.OpFloorMod, r, d)
}

// divSymbolAtom divides a single quotient or remainder.
func (c *Context) divSymbolAtom(atom, d *ir.UOp) (ir.LinearForm, bool) {
	if len(atom.Src) != 2 || c.Bounds.Of(atom.Src[1]).Lo < 1 {
		return ir.LinearForm{}, false
	}
	switch atom.Op {
	case ir.OpFloorDiv:
		product := c.form(c.Arena.Mul(atom.Src[1], d)).Build(c.Arena)
		return c.div(c.form(atom.Src[0]), product), true
	case ir.OpFloorMod:
		q, r, _ := c.extract(c.form(atom.Src[1]), c.form(d))
		if v, zero := r.AsConst(); zero && v == 0 {
			return c.mod(c.div(c.form(atom.Src[0]), d), q.Build(c.Arena)), true
		}
	}
	return ir.LinearForm{}, false
}

// divides reports that x is a polynomial multiple of d.
func (c *Context) divides(d, x ir.LinearForm) bool {
	_, r, _ := c.extract(x, d)
	v, ok := r.AsConst()
	return ok && v == 0
}

// quotientForm is x/d for a d that divides x.
func (c *Context) quotientForm(x, d ir.LinearForm) ir.LinearForm {
	if v, ok := d.AsConst(); ok {
		q, _ := splitMultiples(x, v)
		return q
	}
	q, _, _ := c.extract(x, d)
	return q
}

// extract writes x = q*d + r. A d of one term takes out every multiple; a sum
// is divided as a polynomial, and only a division that leaves no term with d's
// leading product counts.
func (c *Context) extract(x, d ir.LinearForm) (q, r ir.LinearForm, exact bool) {
	lead, ok := leadingTerm(d)
	if !ok {
		return ir.LinearForm{}, x, false
	}
	r = x
	for range 2 * len(x.Terms) {
		factor, found := c.firstMultiple(r, lead)
		if !found {
			return q, r, true
		}
		product := c.form(c.Arena.Mul(factor.Build(c.Arena), d.Build(c.Arena)))
		next, ok1 := r.Plus(product, -1)
		sum, ok2 := q.Plus(factor, 1)
		if !ok1 || !ok2 {
			break
		}
		q, r = sum, next
	}
	if _, found := c.firstMultiple(r, lead); found {
		return ir.LinearForm{}, x, false
	}
	return q, r, true
}

// leadingTerm is the term of most factors, the first of them.
func leadingTerm(d ir.LinearForm) (lead ir.Term, ok bool) {
	most := 0
	for _, t := range d.Terms {
		if n := len(ir.Factors(t.Atom)); n > most {
			lead, most = t, n
		}
	}
	return lead, most > 0
}

// firstMultiple finds a term of x that lead divides, and their quotient.
func (c *Context) firstMultiple(x ir.LinearForm, lead ir.Term) (ir.LinearForm, bool) {
	for _, t := range x.Terms {
		if t.Coef%lead.Coef != 0 {
			continue
		}
		if rest, ok := withoutFactors(t.Atom, lead.Atom); ok {
			return c.monomial(rest, t.Coef/lead.Coef), true
		}
	}
	return ir.LinearForm{}, false
}

// withoutFactors removes the factors of part from those of atom.
func withoutFactors(atom, part *ir.UOp) ([]*ir.UOp, bool) {
	rest := ir.Factors(atom)
	for _, f := range ir.Factors(part) {
		i := slices.Index(rest, f)
		if i < 0 {
			return nil, false
		}
		rest = slices.Delete(rest, i, i+1)
	}
	return rest, true
}

// monomial is coef times the product of factors.
func (c *Context) monomial(factors []*ir.UOp, coef int64) ir.LinearForm {
	node := c.Arena.Index(coef)
	for _, f := range factors {
		node = c.Arena.Mul(node, f)
	}
	return c.Linear.Of(node)
}

// splitSymbolDigit finds a factor g of d = g*rest with x = g*high + low and
// 0 <= low < g: then x/d = high/rest.
func (c *Context) splitSymbolDigit(x, d ir.LinearForm) (high, rest, low ir.LinearForm, ok bool) {
	if len(d.Terms) != 1 || d.Const != 0 {
		return
	}
	term := d.Terms[0]
	var candidates []ir.LinearForm
	if term.Coef > 1 {
		for _, g := range append([]int64{term.Coef}, factorsOf(x, term.Coef)...) {
			candidates = append(candidates, ir.ConstForm(g))
		}
	}
	if factors := ir.Factors(term.Atom); len(factors) > 1 || term.Coef != 1 {
		for i, f := range factors {
			candidates = append(candidates, ir.AtomForm(f))
			if i > 0 && i < len(factors)-1 {
				candidates = append(candidates, c.monomial(factors[i:], 1))
			}
		}
	}
	for _, g := range candidates {
		if v, isConst := g.AsConst(); isConst {
			high, low = splitMultiples(x, v)
			if q, ok := c.constQuotient(low, v); !ok || q != 0 {
				continue
			}
			rest, _ = splitMultiples(d, v)
			return high, rest, low, true
		}
		if c.Bounds.OfForm(g).Lo < 1 {
			continue
		}
		high, low, _ = c.extract(x, g)
		rest, _, _ = c.extract(d, g)
		if c.Bounds.OfForm(rest).Lo >= 1 && c.below(low, g) {
			return high, rest, low, true
		}
	}
	return
}

// below proves 0 <= x < d.
func (c *Context) below(x, d ir.LinearForm) bool {
	if c.Bounds.OfForm(x).Lo < 0 {
		return false
	}
	gap, ok := d.Plus(x, -1)
	if !ok {
		return false
	}
	gap, ok = gap.Plus(ir.ConstForm(1), -1)
	return ok && c.nonNegative(gap)
}

// maxSubstitutions bounds the work of one proof.
const maxSubstitutions = 8

// nonNegative proves x >= 0: by bounds, or after replacing atoms that count
// negatively by their largest value, where that is symbolic: RANGE by its
// extent - 1, y%d by d - 1, min(a, b) by a.
func (c *Context) nonNegative(x ir.LinearForm) bool {
	for range maxSubstitutions {
		if c.Bounds.OfForm(x).Lo >= 0 {
			return true
		}
		next, ok := c.raise(x)
		if !ok {
			return false
		}
		x = next
	}
	return false
}

// raise replaces one symbolically bounded atom with a negative coefficient by
// its bound.
func (c *Context) raise(x ir.LinearForm) (ir.LinearForm, bool) {
	for _, t := range x.Terms {
		if t.Coef >= 0 {
			continue
		}
		factors := ir.Factors(t.Atom)
		for i, f := range factors {
			most := c.symbolicMaximum(f)
			if hi := c.Bounds.Of(f).Hi; most == nil && len(factors) > 1 && hi != ir.PosInf && f.Op != ir.OpVar {
				most = c.Arena.Index(hi) // a number, but times something symbolic
			}
			if most == nil {
				continue
			}
			others := c.monomial(append(slices.Clone(factors[:i]), factors[i+1:]...), 1)
			if c.Bounds.OfForm(others).Lo < 0 {
				continue
			}
			bound := c.form(c.Arena.Mul(others.Build(c.Arena), most))
			without, ok1 := x.Plus(ir.AtomForm(t.Atom), -t.Coef)
			sum, ok2 := without.Plus(bound, t.Coef)
			if ok1 && ok2 {
				return sum, true
			}
		}
	}
	return x, false
}

// symbolicMaximum is an expression that an atom never exceeds; nil where there
// is none or bounds already know it as a number.
func (c *Context) symbolicMaximum(atom *ir.UOp) *ir.UOp {
	minusOne := c.Arena.Index(-1)
	switch atom.Op {
	case ir.OpRange:
		if atom.Src[0].Op != ir.OpConst {
			return c.Arena.Add(atom.Src[0], minusOne)
		}
	case ir.OpFloorMod:
		if atom.Src[1].Op != ir.OpConst && c.Bounds.Of(atom.Src[1]).Lo >= 1 {
			return c.Arena.Add(atom.Src[1], minusOne)
		}
	case ir.OpMin:
		if atom.Src[0].Op != ir.OpConst {
			return atom.Src[0]
		}
	}
	return nil
}
