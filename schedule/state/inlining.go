package state

import (
	"slices"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/schedule/expr"
)

// Replacement is what comes in the place of the reads of a value.
type Replacement struct {
	// with is the expression for one read in a consumer. Its closed ranges have
	// names up to height, besides those of the read's own index.
	With   func(c *Value, load *ir.UOp) *ir.UOp
	Height func(c *Value) int
}

// AsBody replaces a read of p by its body.
func (s *Graph) AsBody(p *Value) Replacement {
	return Replacement{
		With:   func(_ *Value, load *ir.UOp) *ir.UOp { return s.Instantiate(p, load.Indices()) },
		Height: func(*Value) int { return s.Height(p.Body) },
	}
}

// NoHeight is for replacements without closed ranges.
func NoHeight(*Value) int { return 0 }

// InlineAt replaces the reads of p in c. The reduces and stages around a read
// get the canonical names of their new heights on the way down, before the
// expression is put in: its own names are all smaller, so that nothing is
// captured, every node is built once however deep it is, and equal reduces
// are one node.
func (s *Graph) InlineAt(c, p *Value, by Replacement) *ir.UOp {
	t := &inliner{
		s: s.Exprs, target: p.Node, height: by.Height(c),
		replace: func(load *ir.UOp) *ir.UOp { return by.With(c, load) },
	}
	body := t.do(c.Body, new(inlineScope))
	return s.MergeTuples([]*ir.UOp{body})[0]
}

type inliner struct {
	s       *expr.Exprs
	target  *ir.UOp // the VALUE node
	replace func(load *ir.UOp) *ir.UOp
	height  int             // of what replace makes
	reached ir.NodeMap[int] // see reach
}

// inlineScope is a binder on the way down whose ranges change their names, with
// the results that depend on them; the outermost has none.
type inlineScope struct {
	around   *inlineScope
	from, to []*ir.UOp
	done     ir.NodeMap[*ir.UOp]
}

// untouched is the reach of an expression without a read to be replaced.
const untouched = -1

// reach is the height that u will have, or untouched.
func (t *inliner) reach(u *ir.UOp) int {
	if len(u.Src) == 0 {
		return untouched
	}
	if h, ok := t.reached.Get(u); ok {
		return h
	}
	h, hit := 0, false
	for _, src := range u.Src {
		r := t.reach(src)
		hit = hit || r != untouched || src == t.target
		h = max(h, r, t.s.Height(src))
	}
	switch {
	case !hit:
		h = untouched
	case u.Op == ir.OpLoad && u.Src[0] == t.target:
		h = max(h, t.height)
	case u.Op == ir.OpReduce || u.Op == ir.OpStage:
		h = t.inside(u) + len(expr.BinderRanges(u))
	}
	t.reached.Set(u, h)
	return h
}

// inside is the height that what a binder evaluates will have.
func (t *inliner) inside(u *ir.UOp) int {
	values := u.Src[:1]
	if u.Op == ir.OpReduce {
		values = u.ReduceValues()
	}
	h := 0
	for _, v := range values {
		if r := t.reach(v); r != untouched {
			h = max(h, r)
		} else {
			h = max(h, t.s.Height(v))
		}
	}
	return h
}

func (t *inliner) do(u *ir.UOp, at *inlineScope) *ir.UOp {
	if len(u.Src) == 0 {
		return u
	}
	for at.around != nil && !t.mentions(u, at.from) {
		at = at.around
	}
	if i := slices.Index(at.from, u); i >= 0 {
		return at.to[i]
	}
	holds := t.reach(u) != untouched
	if at.around == nil && !holds {
		return u
	}
	if r, ok := at.done.Get(u); ok {
		return r
	}
	binder := holds && (u.Op == ir.OpReduce || u.Op == ir.OpStage)
	inner := at
	if binder {
		inner = t.open(u, at)
	}
	src := lists.Map(u.Src, func(x *ir.UOp) *ir.UOp { return t.do(x, inner) })
	r := t.s.A.With(u, src)
	switch {
	case binder && r.Op == ir.OpReduce:
		r = t.s.CloseReduce(r) // the name is right already, unless something folded away
	case binder:
		r = t.s.CloseStage(r)
	case holds && r.Op == ir.OpLoad && r.Src[0] == t.target:
		r = t.replace(r)
	}
	r = t.s.SimplifyNode(r)
	at.done.Set(u, r)
	return r
}

// open names the ranges of a binder that holds a read.
func (t *inliner) open(u *ir.UOp, at *inlineScope) *inlineScope {
	in := &inlineScope{around: at}
	h := t.inside(u)
	for i, r := range expr.BinderRanges(u) {
		in.from = append(in.from, r)
		in.to = append(in.to, t.s.A.Range(h+1+i, t.do(r.Src[0], at)))
	}
	return in
}

// mentions reports that one of the ranges occurs in u, also in components of
// tuples that no projection in u shows.
func (t *inliner) mentions(u *ir.UOp, ranges []*ir.UOp) bool {
	return slices.ContainsFunc(t.s.Mentions.Of(u), func(r *ir.UOp) bool { return slices.Contains(ranges, r) })
}
