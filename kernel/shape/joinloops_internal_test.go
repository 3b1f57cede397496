package shape

import (
	"testing"

	"tgc/ir"
	"tgc/kernel/plan"
)

// Two loops are joined only where each runs in or around the other and nothing else: one
// that is around another sum, too, or inside one, or in none, would lose its terms.
func TestJoinableLoops(t *testing.T) {
	a := ir.NewArena()
	outer, inner, other := a.Range(0, a.Index(3)), a.Range(1, a.Index(4)), a.Range(2, a.Index(4))
	st := &State{Arena: a}
	st.roles = map[*ir.UOp]plan.Role{outer: plan.Serial, inner: plan.Serial, other: plan.Serial}
	sum := func(x *ir.UOp, r *ir.UOp) *ir.UOp { return a.Reduce(ir.OpAdd, x, r) }
	term := func(loops ...*ir.UOp) *ir.UOp {
		x := loops[0]
		for _, r := range loops[1:] {
			x = a.Add(x, r)
		}
		return a.Cast(x, ir.F32)
	}
	both := sum(sum(term(outer, inner), inner), outer)
	for what, c := range map[string]struct {
		with *ir.UOp
		want bool
	}{
		"alone":                   {both, true},
		"the same loops twice":    {sum(sum(a.Cast(a.Mul(outer, inner), ir.F32), inner), outer), true},
		"around another sum, too": {sum(sum(term(outer, other), other), outer), false},
		"inside another sum, too": {sum(sum(term(inner, other), inner), other), false},
		"inner alone":             {sum(term(inner), inner), false},
		"outer around no sum":     {sum(term(outer), outer), false},
	} {
		r, in := st.joinable(a.Make(ir.OpSink, ir.Void, nil, a.Binary(ir.OpAdd, both, c.with)))
		if got := r == outer && in == inner; got != c.want {
			t.Errorf("%s: %v, %v", what, r, in)
		}
	}
}
