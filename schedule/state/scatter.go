package state

import (
	"tgc/ir"
	"tgc/ir/analyse"
)

// termOps is what adding one term of a scatter costs besides its elements: instructions
// that no lanes share and that wait for each other.
const termOps = 16

// scatterOf is the fold of a kernel whose terms one pass adds where they belong, and the
// loop over the points; nil for none.
func (s *State) scatterOf(body *ir.UOp, loops []*ir.UOp) (*analyse.Scatter, *ir.UOp) {
	if s.Height(body) == 0 || s.FactsOf(body).State {
		return nil, nil
	}
	for _, k := range loops {
		n, constant := k.Src[0].Int()
		if !constant || n < analyse.ScatterPoints {
			continue
		}
		if f, ok := analyse.ScatterOf(s.A, s.Bounds, body, k); ok && f.Fold.DType == body.DType {
			return f, k
		}
	}
	return nil, nil
}

// scatterTerms counts a scatter: every term once, for each of the other loops.
func (p *pricer) scatterTerms() {
	s := p.scatter
	term := &level{times: 1, reuse: 1}
	for _, r := range s.Loops {
		term = p.inside(s.Fold, term, []*ir.UOp{r}, 1, false)
	}
	p.add(term, termOps)
	p.visit(s.At, term)
	element := term
	for _, r := range ir.WithoutRanges(p.loops, []*ir.UOp{p.point}) {
		element = p.inside(s.Fold, element, []*ir.UOp{r}, 1, false)
	}
	p.add(element, 1+loadOps+storeOps)
	for _, c := range s.Cond {
		p.visit(c, element)
	}
	p.visit(s.Term, element)
}
