package rewrite

import (
	"slices"

	"tgc/ir"
)

var indexDiv = NewSet("index/div",
	"Floor division and remainder of Idx by digits: multiples leave, common factors cancel, digits below a factor drop out.",
	Measure{Text: "the dividend's terms and coefficients, then the divisor"},
	Rule{
		Name: "div",
		Doc:  "(c*x + y)/c = x + y/c; ((c+1)*x)/c = x if 0 <= x < c; (g*x + y)/(g*c) = x/c if 0 <= y < g; (x/a)/b = x/(a*b); (x%(a*b))/a = (x/a)%b; 0 if 0 <= x < c. c may be symbolic.",
		On:   []ir.Op{ir.OpFloorDiv},
		Go:   divRule,
	},
	Rule{
		Name: "mod",
		Doc:  "(c*x + y)%c = y%c; (g*x + y)%(g*c) = g*(x%c) + y if 0 <= y < g; (x%(a*b))%a = x%a; x if 0 <= x < c. c may be symbolic.",
		On:   []ir.Op{ir.OpFloorMod},
		Go:   modRule,
	},
)

func divRule(c *Context, u *ir.UOp) *ir.UOp {
	if u.DType != ir.Idx {
		return nil
	}
	return c.recombine(c.div(c.form(u.Src[0]), u.Src[1])).Build(c.Arena)
}

func modRule(c *Context, u *ir.UOp) *ir.UOp {
	if u.DType != ir.Idx {
		return nil
	}
	return c.recombine(c.mod(c.form(u.Src[0]), u.Src[1])).Build(c.Arena)
}

// div is floor(x/d) of a simplified form.
func (c *Context) div(x ir.LinearForm, d *ir.UOp) ir.LinearForm {
	if v, ok := c.form(d).AsConst(); ok {
		switch {
		case v == 0:
			return ir.LinearForm{}
		case v > 0:
			return c.divConst(x, v)
		}
	} else if c.Bounds.Of(d).Lo >= 1 {
		return c.divSymbol(x, d)
	}
	return c.atom(ir.OpFloorDiv, x, d)
}

// mod is x - d*floor(x/d) of a simplified form.
func (c *Context) mod(x ir.LinearForm, d *ir.UOp) ir.LinearForm {
	if v, ok := c.form(d).AsConst(); ok {
		switch {
		case v == 0:
			return ir.LinearForm{}
		case v > 0:
			return c.modConst(x, v)
		}
	} else if c.Bounds.Of(d).Lo >= 1 {
		return c.modSymbol(x, d)
	}
	return c.atom(ir.OpFloorMod, x, d)
}

// atom is the form of a division or remainder that stays; constants fold.
func (c *Context) atom(op ir.Op, x ir.LinearForm, d *ir.UOp) ir.LinearForm {
	node := c.Arena.Binary(op, x.Build(c.Arena), d)
	if v, ok := node.Int(); ok {
		return ir.ConstForm(v)
	}
	return c.dropConstants(ir.AtomForm(node))
}

// divConst is floor(x/d), d > 0.
func (c *Context) divConst(x ir.LinearForm, d int64) ir.LinearForm {
	if d == 1 {
		return x
	}
	out, rest := splitMultiples(x, d)
	// q is floor(rest/d) where it is one number everywhere.
	if q, ok := c.constQuotient(rest, d); ok {
		return c.plus(out, ir.ConstForm(q))
	}
	if whole, ok := c.splitWhole(rest, d); ok {
		return c.plus(out, whole)
	}
	if inner, factor, ok := c.splitDigit(rest, d); ok {
		return c.plus(out, c.divConst(inner, d/factor))
	}
	if inner, ok := c.divAtom(rest, d); ok {
		return c.plus(out, inner)
	}
	return c.plus(out, c.atom(ir.OpFloorDiv, rest, c.Arena.Index(d)))
}

// plus is f+g; where that overflows or grows too long, the sum is an atom.
func (c *Context) plus(f, g ir.LinearForm) ir.LinearForm {
	if sum, ok := f.Plus(g, 1); ok {
		return sum
	}
	return ir.AtomForm(c.Arena.Make(ir.OpAdd, ir.Idx, nil, f.Build(c.Arena), g.Build(c.Arena)))
}

// splitMultiples writes x as d*out + rest: every term and the part of the
// constant that d divides, so that 0 <= rest.Const < d.
func splitMultiples(x ir.LinearForm, d int64) (out, rest ir.LinearForm) {
	for _, t := range x.Terms {
		if t.Coef%d == 0 {
			out.Terms = append(out.Terms, ir.Term{Atom: t.Atom, Coef: t.Coef / d})
		} else {
			rest.Terms = append(rest.Terms, t)
		}
	}
	out.Const, rest.Const = ir.FloorDiv(x.Const, d), ir.FloorMod(x.Const, d)
	return out, rest
}

// splitWhole takes the whole part out of every coefficient, x = d*whole + part,
// when what is left is then decided: q = floor(part/d) is one number.
func (c *Context) splitWhole(x ir.LinearForm, d int64) (whole ir.LinearForm, ok bool) {
	part := ir.LinearForm{Const: x.Const}
	for _, t := range x.Terms {
		if q := ir.FloorDiv(t.Coef, d); q != 0 {
			whole.Terms = append(whole.Terms, ir.Term{Atom: t.Atom, Coef: q})
		}
		if r := ir.FloorMod(t.Coef, d); r != 0 {
			part.Terms = append(part.Terms, ir.Term{Atom: t.Atom, Coef: r})
		}
	}
	if len(whole.Terms) == 0 {
		return whole, false
	}
	q, ok := c.constQuotient(part, d)
	whole.Const = q
	return whole, ok
}

// constQuotient is floor(x/d) when bounds leave one value.
func (c *Context) constQuotient(x ir.LinearForm, d int64) (int64, bool) {
	iv := c.Bounds.OfForm(x)
	if !iv.Finite() {
		return 0, false
	}
	q := ir.FloorDiv(iv.Lo, d)
	return q, q == ir.FloorDiv(iv.Hi, d)
}

// splitDigit finds a factor g of d, the largest first, such that x = g*inner +
// low and floor(low/g) is one number, already added to inner: then x/d =
// inner/(d/g).
func (c *Context) splitDigit(x ir.LinearForm, d int64) (inner ir.LinearForm, factor int64, ok bool) {
	for _, g := range factorsOf(x, d) {
		high, low := splitMultiples(x, g)
		if q, ok := c.constQuotient(low, g); ok {
			return c.plus(high, ir.ConstForm(q)), g, true
		}
	}
	return x, 1, false
}

// factorsOf lists the common divisors of d with single coefficients, and those
// of pairs, except 1 and d itself; largest first.
func factorsOf(x ir.LinearForm, d int64) []int64 {
	var list []int64
	add := func(g int64) {
		if g > 1 && g < d && !slices.Contains(list, g) {
			list = append(list, g)
		}
	}
	for i, t := range x.Terms {
		g := ir.GCD(t.Coef, d)
		add(g)
		if len(x.Terms) <= 8 {
			for _, s := range x.Terms[:i] {
				add(ir.GCD(g, s.Coef))
			}
		}
	}
	all := d
	for _, t := range x.Terms {
		all = ir.GCD(all, t.Coef)
	}
	add(all)
	slices.SortFunc(list, func(p, q int64) int { return int(min(max(q-p, -1), 1)) })
	return list
}

// divAtom divides a single quotient or remainder (plus a constant).
func (c *Context) divAtom(x ir.LinearForm, d int64) (ir.LinearForm, bool) {
	if len(x.Terms) != 1 || x.Terms[0].Coef != 1 {
		return x, false
	}
	atom := x.Terms[0].Atom
	switch atom.Op {
	case ir.OpFloorDiv: // (z/b + k)/d = (z + k*b)/(b*d)
		b, isConst := atom.Src[1].Int()
		if !isConst {
			if x.Const != 0 || c.Bounds.Of(atom.Src[1]).Lo < 1 {
				return x, false
			}
			return c.div(c.form(atom.Src[0]), c.scaled(atom.Src[1], d)), true
		}
		bd, ok1 := ir.CheckedMul(b, d)
		kb, ok2 := ir.CheckedMul(x.Const, b)
		z, ok3 := c.form(atom.Src[0]).Plus(ir.ConstForm(kb), 1)
		if b > 0 && ok1 && ok2 && ok3 {
			return c.divConst(z, bd), true
		}
	case ir.OpFloorMod: // (z%m)/d = (z/d)%(m/d)
		m, ok := atom.Src[1].Int()
		if ok && m > 0 && m%d == 0 && x.Const == 0 {
			return c.modConst(c.divConst(c.form(atom.Src[0]), d), m/d), true
		}
	}
	return x, false
}

// scaled is u*k as a simplified node.
func (c *Context) scaled(u *ir.UOp, k int64) *ir.UOp {
	return c.form(c.Arena.Mul(u, c.Arena.Index(k))).Build(c.Arena)
}

// modConst is x%d, d > 0.
func (c *Context) modConst(x ir.LinearForm, d int64) ir.LinearForm {
	if d == 1 {
		return ir.LinearForm{}
	}
	if q, ok := c.constQuotient(x, d); ok {
		if rest, ok := x.Plus(ir.ConstForm(d), -q); ok {
			return rest
		}
	}
	x = reduceModulo(x, d)
	if q, ok := c.constQuotient(x, d); ok {
		return c.plus(x, ir.ConstForm(-q*d))
	}
	if g, high, low, ok := c.digitModulo(x, d); ok {
		if sum, ok := low.Plus(c.modConst(high, d/g), g); ok {
			return sum
		}
	}
	if unwrapped, ok := c.unwrapModulo(x, d); ok {
		return c.modConst(unwrapped, d)
	}
	return c.atom(ir.OpFloorMod, x, c.Arena.Index(d))
}

// reduceModulo drops multiples of d and reduces coefficients toward zero.
func reduceModulo(x ir.LinearForm, d int64) ir.LinearForm {
	out := ir.LinearForm{Const: ir.FloorMod(x.Const, d)}
	for _, t := range x.Terms {
		if r := t.Coef % d; r != 0 {
			out.Terms = append(out.Terms, ir.Term{Atom: t.Atom, Coef: r})
		}
	}
	return out
}

// digitModulo writes x as g*high + low with 0 <= low < g, g a factor of d:
// then x%d = g*(high%(d/g)) + low.
func (c *Context) digitModulo(x ir.LinearForm, d int64) (g int64, high, low ir.LinearForm, ok bool) {
	for _, g := range factorsOf(x, d) {
		high, low := splitMultiples(x, g)
		if q, ok := c.constQuotient(low, g); ok {
			high = c.plus(high, ir.ConstForm(q))
			low, ok = low.Plus(ir.ConstForm(g), -q)
			return g, high, low, ok
		}
	}
	return 0, x, x, false
}

// unwrapModulo replaces k*(z%m) by k*z where d divides k*m: inside a remainder
// by d the inner one does nothing.
func (c *Context) unwrapModulo(x ir.LinearForm, d int64) (ir.LinearForm, bool) {
	for _, t := range x.Terms {
		if t.Atom.Op != ir.OpFloorMod {
			continue
		}
		m, ok := t.Atom.Src[1].Int()
		if !ok || m <= 0 {
			continue
		}
		if km, ok := ir.CheckedMul(t.Coef, m); !ok || km%d != 0 {
			continue
		}
		without, ok1 := x.Plus(ir.AtomForm(t.Atom), -t.Coef)
		sum, ok2 := without.Plus(c.form(t.Atom.Src[0]), t.Coef)
		if ok1 && ok2 {
			return sum, true
		}
	}
	return x, false
}
