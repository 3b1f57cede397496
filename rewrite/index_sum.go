package rewrite

import "tgc/ir"

var indexSum = NewSet("index/sum",
	"Idx sums, differences and products become linear forms: every atom once, larger coefficients first, the constant last.",
	Measure{Text: "terms of the linear form, then distance from the canonical order"},
	Rule{
		Name: "linear",
		Doc:  "c1*x + y + c2*x = (c1+c2)*x + y, products distribute; c*(x/c) + x%c = x; x - c*(x/c) = x%c.",
		On:   []ir.Op{ir.OpAdd, ir.OpSub, ir.OpMul, ir.OpNeg},
		Go:   sumRule,
	},
)

func sumRule(c *Context, u *ir.UOp) *ir.UOp {
	if u.DType != ir.Idx {
		return nil
	}
	form := c.Linear.Of(u)
	if len(form.Terms) == 1 && form.Terms[0] == (ir.Term{Atom: u, Coef: 1}) {
		return nil
	}
	return c.recombine(c.dropConstants(form)).Build(c.Arena)
}

// dropConstants replaces atoms with one possible value, such as a RANGE of
// extent 1.
func (c *Context) dropConstants(f ir.LinearForm) ir.LinearForm {
	for i := 0; i < len(f.Terms); i++ {
		t := f.Terms[i]
		v, ok := c.Bounds.Of(t.Atom).Const()
		if !ok {
			continue
		}
		without, ok1 := f.Plus(ir.AtomForm(t.Atom), -t.Coef)
		sum, ok2 := without.Plus(ir.ConstForm(v), t.Coef)
		if ok1 && ok2 {
			f = sum
			i--
		}
	}
	return f
}

// recombine undoes digit splits: c*(x/c) + x%c = x, and the remainder out of
// x - c*(x/c). It changes the form only where that leaves fewer terms.
func (c *Context) recombine(f ir.LinearForm) ir.LinearForm {
	if len(f.Terms) < 2 {
		return f
	}
	for again := true; again; {
		again = false
		for _, t := range f.Terms {
			if g, ok := c.recombineAt(f, t); ok {
				f, again = g, true
				break
			}
		}
	}
	return f
}

func (c *Context) recombineAt(f ir.LinearForm, t ir.Term) (ir.LinearForm, bool) {
	if t.Atom.Op != ir.OpFloorMod && t.Atom.Op != ir.OpFloorDiv {
		return f, false
	}
	x, d := t.Atom.Src[0], t.Atom.Src[1]
	// k*(x - d*(x/d) - x%d) = 0 is added, k chosen so that the term vanishes.
	k := t.Coef
	if t.Atom.Op == ir.OpFloorDiv {
		step, ok := d.Int()
		if !ok || step == 0 || t.Coef%step != 0 {
			return f, false
		}
		k = -t.Coef / step
	} else if len(f.Terms) < 2 {
		return f, false
	}
	zero, ok := c.divisionIdentity(x, d)
	if !ok {
		return f, false
	}
	sum, ok := f.Plus(zero, k)
	return sum, ok && len(sum.Terms) < len(f.Terms)
}

// divisionIdentity is x - d*(x/d) - x%d, a form of value 0 for any d but 0 (a
// remainder by 0 is 0: there the form would be x).
func (c *Context) divisionIdentity(x, d *ir.UOp) (ir.LinearForm, bool) {
	if iv := c.Bounds.Of(d); iv.Lo <= 0 && iv.Hi >= 0 {
		return ir.LinearForm{}, false
	}
	key := [2]*ir.UOp{x, d}
	if form, ok := c.quotients[key]; ok {
		return form, true
	}
	quotient := c.Arena.Mul(c.div(c.form(x), d).Build(c.Arena), d)
	form, ok1 := c.form(x).Plus(c.form(quotient), -1)
	form, ok2 := form.Plus(c.mod(c.form(x), d), -1)
	if !ok1 || !ok2 {
		return ir.LinearForm{}, false
	}
	if c.quotients == nil {
		c.quotients = make(map[[2]*ir.UOp]ir.LinearForm)
	}
	c.quotients[key] = form
	return form, true
}

// form is the linear form of a simplified node.
func (c *Context) form(u *ir.UOp) ir.LinearForm { return c.dropConstants(c.Linear.Of(u)) }
