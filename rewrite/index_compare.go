package rewrite

import (
	"math"
	"slices"

	"tgc/ir"
)

var indexCompare = NewSet("index/compare",
	"Comparisons and minima of Idx: decided by bounds (symbolic extents too), else one canonical form.",
	Measure{Text: "terms on both sides, then their coefficients"},
	Rule{
		Name: "less",
		Doc:  "x < y by the sign of y - x - 1; otherwise positive terms left, negative right, divided by the common factor: 4*a + b < 8 is a < 2 if 0 <= b < 4; x/c < k is x < c*k; (c*x + y)%c < k is 0 <= y < k if -c+k <= y < c.",
		On:   []ir.Op{ir.OpCmpLt},
		Go:   lessRule,
	},
	Rule{
		Name: "equal",
		Doc:  "x == y by bounds and residues of x - y; otherwise as for less, one side each sign.",
		On:   []ir.Op{ir.OpCmpEq},
		Go:   equalRule,
	},
	Rule{
		Name: "minmax",
		Doc:  "min and max of a flat list: operands that another one beats leave; one order.",
		On:   []ir.Op{ir.OpMin, ir.OpMax},
		Go:   extremumRule,
	},
)

func lessRule(c *Context, u *ir.UOp) *ir.UOp {
	if u.Src[0].DType != ir.Idx {
		return nil
	}
	x, y := c.form(u.Src[0]), c.form(u.Src[1])
	gap, ok1 := y.Plus(x, -1)
	below, ok2 := gap.Plus(ir.ConstForm(1), -1) // y - x - 1 >= 0 is x < y
	above, ok3 := x.Plus(y, -1)
	if !ok1 || !ok2 || !ok3 {
		return nil
	}
	switch {
	case c.nonNegative(below):
		return c.Arena.ConstInt(ir.Bool, 1)
	case c.nonNegative(above):
		return c.Arena.ConstInt(ir.Bool, 0)
	}
	return c.less(above)
}

// less is f < 0 in canonical form.
func (c *Context) less(f ir.LinearForm) *ir.UOp {
	f = c.recombine(f)
	for {
		reduced := c.dropLowDigit(divideLess(f))
		if reduced.Equal(f) {
			break
		}
		f = reduced
	}
	if g, ok := c.clearQuotient(f); ok {
		return c.less(g)
	}
	if low, high, ok := c.clearRemainder(f); ok {
		return c.Arena.And(c.less(low), c.less(high))
	}
	left, right := splitSigns(f)
	return c.compare(ir.OpCmpLt, left, right)
}

// divideLess divides f < 0 by the common factor: f = g*out + rest with
// 0 <= rest < g is negative iff out is.
func divideLess(f ir.LinearForm) ir.LinearForm {
	g := coefficientGCD(f)
	if g <= 1 {
		return f
	}
	out, _ := splitMultiples(f, g)
	return out
}

func coefficientGCD(f ir.LinearForm) int64 {
	g := int64(0)
	for _, t := range f.Terms {
		g = ir.GCD(t.Coef, g)
	}
	return g
}

// dropLowDigit: g*high + low < 0 is high < 0 where floor(low/g) is 0.
func (c *Context) dropLowDigit(f ir.LinearForm) ir.LinearForm {
	for _, t := range f.Terms {
		g := max(t.Coef, -t.Coef)
		if g <= 1 {
			continue
		}
		high, low := splitMultiples(f, g)
		if len(low.Terms) == 0 {
			continue
		}
		if q, ok := c.constQuotient(low, g); ok {
			return c.plus(high, ir.ConstForm(q))
		}
	}
	return f
}

// clearQuotient: x/d + k < 0 is x + k*d < 0, and -(x/d) + k < 0 is
// -x + k*d + d-1 < 0 (x/d > k iff x >= (k+1)*d).
func (c *Context) clearQuotient(f ir.LinearForm) (ir.LinearForm, bool) {
	if len(f.Terms) != 1 || f.Terms[0].Atom.Op != ir.OpFloorDiv {
		return f, false
	}
	t := f.Terms[0]
	d, ok := t.Atom.Src[1].Int()
	if !ok || d <= 0 || t.Coef != 1 && t.Coef != -1 {
		return f, false
	}
	kd, ok := ir.CheckedMul(f.Const, d)
	if !ok {
		return f, false
	}
	if t.Coef < 0 {
		if kd, ok = ir.CheckedAdd(kd, d-1); !ok {
			return f, false
		}
	}
	x := c.form(t.Atom.Src[0])
	cleared, ok1 := ir.ConstForm(kd).Plus(x, t.Coef)
	return cleared, ok1
}

// clearRemainder: (d*z + y)%d + k < 0 is -y-1 < 0 and y + k < 0 where y is so
// close to 0 that no other multiple of d comes in between: -k - d <= y < d.
func (c *Context) clearRemainder(f ir.LinearForm) (low, high ir.LinearForm, ok bool) {
	if len(f.Terms) != 1 || f.Terms[0].Atom.Op != ir.OpFloorMod || f.Terms[0].Coef != 1 {
		return low, high, false
	}
	atom := f.Terms[0].Atom
	d, isConst := atom.Src[1].Int()
	if !isConst || d <= 1 || f.Const >= 0 || f.Const <= -d {
		return low, high, false
	}
	y := nearestModulo(c.form(atom.Src[0]), d)
	for range 2 {
		iv := c.Bounds.OfForm(y)
		if iv.Finite() && iv.Lo >= -f.Const-d && iv.Hi < d {
			low, ok1 := ir.ConstForm(-1).Plus(y, -1)
			high, ok2 := y.Plus(ir.ConstForm(f.Const), 1)
			return low, high, ok1 && ok2
		}
		if y, ok = y.Plus(ir.ConstForm(-d), 1); !ok {
			break
		}
	}
	return low, high, false
}

// nearestModulo is x up to multiples of d: coefficients in -d/2..d/2, the
// constant in 0..d-1.
func nearestModulo(x ir.LinearForm, d int64) ir.LinearForm {
	out := ir.LinearForm{Const: ir.FloorMod(x.Const, d)}
	for _, t := range x.Terms {
		r := ir.FloorMod(t.Coef, d)
		if r > d/2 {
			r -= d
		}
		if r != 0 {
			out.Terms = append(out.Terms, ir.Term{Atom: t.Atom, Coef: r})
		}
	}
	return out
}

// splitSigns writes f as left - right with positive coefficients; the constant
// stands alone on a side where it can, else on the right.
func splitSigns(f ir.LinearForm) (left, right ir.LinearForm) {
	for _, t := range f.Terms {
		if t.Coef > 0 {
			left.Terms = append(left.Terms, t)
		} else {
			right.Terms = append(right.Terms, ir.Term{Atom: t.Atom, Coef: -t.Coef})
		}
	}
	if len(left.Terms) == 0 || f.Const == math.MinInt64 { // -MinInt64 overflows
		left.Const = f.Const
	} else {
		right.Const = -f.Const
	}
	return left, right
}

// compare builds the comparison and folds it.
func (c *Context) compare(op ir.Op, left, right ir.LinearForm) *ir.UOp {
	return c.Arena.Binary(op, left.Build(c.Arena), right.Build(c.Arena))
}

func equalRule(c *Context, u *ir.UOp) *ir.UOp {
	if u.Src[0].DType != ir.Idx {
		return nil
	}
	f, ok := c.form(u.Src[0]).Plus(c.form(u.Src[1]), -1)
	if !ok {
		return nil
	}
	f = c.recombine(f)
	g := coefficientGCD(f)
	no := c.Arena.ConstInt(ir.Bool, 0)
	if g > 1 {
		out, rest := splitMultiples(f, g)
		if rest.Const != 0 {
			return no
		}
		f = out
	}
	if len(f.Terms) > 0 && f.Terms[0].Coef < 0 {
		if f, ok = (ir.LinearForm{}).Plus(f, -1); !ok {
			return nil
		}
	}
	iv := c.Bounds.OfForm(f)
	if iv.Lo > 0 || iv.Hi < 0 || iv.Mult > 1 && iv.Rem != 0 || c.positive(f, 1) || c.positive(f, -1) {
		return no
	}
	left, right := splitSigns(f)
	return c.compare(ir.OpCmpEq, left, right)
}

// positive proves scale*f - 1 >= 0.
func (c *Context) positive(f ir.LinearForm, scale int64) bool {
	g, ok := ir.ConstForm(-1).Plus(f, scale)
	return ok && c.nonNegative(g)
}

// maxOperands bounds the list of a flattened minimum, because every pair is
// compared.
const maxOperands = 8

func extremumRule(c *Context, u *ir.UOp) *ir.UOp {
	if u.DType != ir.Idx {
		return nil
	}
	list := flatten(u, u.Op)
	if len(list) > maxOperands {
		return nil
	}
	ir.SortNodes(list)
	kept := c.unbeaten(u.Op, list)
	out := kept[0]
	for _, x := range kept[1:] {
		out = c.Arena.Make(u.Op, ir.Idx, nil, out, x)
	}
	return out
}

// unbeaten drops each operand that another remaining one makes superfluous.
func (c *Context) unbeaten(op ir.Op, list []*ir.UOp) []*ir.UOp {
	kept := slices.Clone(list)
	beats := func(x, y *ir.UOp) bool {
		if op == ir.OpMax {
			x, y = y, x
		}
		gap, ok := c.form(y).Plus(c.form(x), -1)
		return ok && c.nonNegative(gap)
	}
	for i := 0; i < len(kept); i++ {
		for j := range kept {
			if j != i && beats(kept[j], kept[i]) {
				kept = slices.Delete(kept, i, i+1)
				i--
				break
			}
		}
	}
	return kept
}

// flatten lists the operands of a tree of one op.
func flatten(u *ir.UOp, op ir.Op) []*ir.UOp {
	stack, list := []*ir.UOp{u}, []*ir.UOp(nil)
	for len(stack) > 0 && len(list) <= maxOperands {
		x := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if x.Op == op && x.DType == u.DType {
			stack = append(stack, x.Src[1], x.Src[0])
		} else if !slices.Contains(list, x) {
			list = append(list, x)
		}
	}
	if len(stack) > 0 {
		return append(list, stack...)
	}
	return list
}
