package rewrite

import (
	"fmt"
	"slices"

	"tgc/ir"
)

// Rounding is what a rule does to float results.
type Rounding uint8

// The classes.
const (
	Exact        Rounding = iota // X: the same bits
	Reassociates                 // A: the same real number, rounded in another order
	Drops                        // D: less precise
)

// String returns the letter used in dumps.
func (r Rounding) String() string { return [...]string{"X", "A", "D"}[r] }

// Guard is a condition on a match, with the text that dumps show.
type Guard struct {
	Text  string
	Holds func(m *Match) bool
}

// Rule replaces what From matches by To where the guards hold. A rule whose
// right side needs Go code has On and Go instead of From and To.
type Rule struct {
	Name     string
	Doc      string // the algebra, with its reason
	From     *Pattern
	When     []Guard
	To       *Pattern
	Rounding Rounding

	// On lists the ops that Go looks at. Go returns the replacement of u,
	// whose sources are already simplified, or nil.
	On []ir.Op
	Go func(c *Context, u *ir.UOp) *ir.UOp

	set      *Set
	variants []*Pattern // From in all orders of commutative operations
}

// String is the rule's full name, set/rule.
func (r *Rule) String() string { return r.set.Name + "/" + r.Name }

// Measure is a number that every rule of a set lowers: why it ends.
type Measure struct {
	Text string
	Of   func(root *ir.UOp) int
}

// Set is a named list of rules, tried in order.
type Set struct {
	Name    string
	Doc     string
	Measure Measure
	Rules   []*Rule
}

// NewSet checks that names are unique and that every variable of a result is
// bound, and panics otherwise: a set is a package variable.
func NewSet(name, doc string, measure Measure, rules ...Rule) *Set {
	set := &Set{Name: name, Doc: doc, Measure: measure}
	seen := make(map[string]bool)
	for i := range rules {
		r := &rules[i]
		if r.Name == "" || r.Doc == "" || seen[r.Name] {
			panic(fmt.Sprintf("rewrite: set %s: rule %d (%q) needs a unique name and a doc", name, i, r.Name))
		}
		seen[r.Name] = true
		if (r.Go == nil) == (r.From == nil) || (r.From == nil) != (r.To == nil) || r.Go != nil && len(r.On) == 0 {
			panic(fmt.Sprintf("rewrite: rule %s/%s: has either From and To, or On and Go", name, r.Name))
		}
		r.set = set
		if r.From != nil {
			checkBound(set, r)
			r.variants = variants(r.From)
		}
		set.Rules = append(set.Rules, r)
	}
	return set
}

func checkBound(set *Set, r *Rule) {
	bound := make(map[*Pattern]bool)
	r.From.walk(func(p *Pattern) { bound[p] = true })
	r.To.walk(func(p *Pattern) {
		if p.kind != literal && p.kind != operation && !bound[p] {
			panic(fmt.Sprintf("rewrite: rule %s/%s: %s is not bound by the left side", set.Name, r.Name, p.name))
		}
	})
	if r.From.kind != operation {
		panic(fmt.Sprintf("rewrite: rule %s/%s: the left side must be an operation", set.Name, r.Name))
	}
}

// apply tries the rule at u.
func (r *Rule) apply(c *Context, u *ir.UOp) *ir.UOp {
	if r.Go != nil {
		return r.Go(c, u)
	}
	for _, from := range r.variants {
		m := Match{Context: c, Root: u}
		if !m.match(from, u) || !m.allowed(r.When) {
			continue
		}
		if to := m.build(r.To, u.DType); to != u {
			return to
		}
	}
	return nil
}

func (m *Match) allowed(guards []Guard) bool {
	return !slices.ContainsFunc(guards, func(g Guard) bool { return !g.Holds(m) })
}
