package rewrite

import "tgc/ir"

// Simplifier brings graphs of one arena to a canonical form with every exact
// rule of this package. It remembers what it has simplified.
type Simplifier struct{ engine *Engine }

// NewSimplifier makes a simplifier for an arena.
func NewSimplifier(a *ir.Arena) *Simplifier {
	return &Simplifier{NewEngine(a, Sets()...)}
}

// Do simplifies the graph under u. A RANGE is never replaced, its extent not
// touched. The rules of this package cannot go round in circles (their test
// sets see to that); if they do, it is a bug and Do panics with their names.
func (s *Simplifier) Do(u *ir.UOp) *ir.UOp {
	out, err := s.engine.Do(u)
	if err != nil {
		panic(err)
	}
	return out
}

// Trace has tell called for every firing.
func (s *Simplifier) Trace(tell func(Firing)) { s.engine.Trace = tell }

// Simplify is one Do of a new Simplifier.
func Simplify(a *ir.Arena, u *ir.UOp) *ir.UOp { return NewSimplifier(a).Do(u) }
