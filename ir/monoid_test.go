package ir_test

import (
	"testing"

	"tgc/ir"
)

// TestMonoids: what is made with a named monoid is recognised by its combine
// steps, whichever arena holds it; what differs in one step has no name.
func TestMonoids(t *testing.T) {
	a := ir.NewArena()
	k := a.Range(0, a.Index(8))
	x := a.Load(a.Make(ir.OpParam, ir.F32, ir.ParamArg{}, a.Index(8)), k)
	one, zero := a.Const(ir.F32, 1), a.Const(ir.F32, 0)
	scale := a.Const(ir.F32, 1.5)
	softmax := a.Fold(ir.Softmax(scale), []*ir.UOp{x, one, x}, k)
	moments := a.Fold(ir.Moments(), []*ir.UOp{x, zero, one}, k)
	steps := append([]*ir.UOp(nil), moments.ReduceCombine()...)
	steps[1] = steps[0]
	for _, row := range []struct {
		u                        *ir.UOp
		name                     string
		key                      ir.Op
		separable, rescales, own bool
	}{
		{a.Reduce(ir.OpMax, x, k), "max", ir.OpMax, false, false, false},
		{softmax, "softmax", ir.OpMax, true, true, true},
		{moments, "moments", ir.OpInvalid, false, false, false},
		{a.TupleReduce(moments.ReduceValues(), k, moments.ReduceIdentities(), steps), "", ir.OpInvalid, false, false, false},
	} {
		b := ir.NewArena()
		for _, u := range []*ir.UOp{row.u, b.Import(row.u)} {
			in := a
			if u != row.u {
				in = b
			}
			m := in.MonoidOf(u)
			if m.Name != row.name || m.Key != row.key || m.Separable != row.separable || m.Rescales != row.rescales || (m.Scale != nil) != row.own {
				t.Errorf("got %+v, want %+v", m, row)
			}
			if again := in.MonoidOf(u); again != m {
				t.Error("recognised twice")
			}
		}
	}
	if got := a.ReduceIdentity(softmax, 0); got != ir.Softmax(scale).LeastKey(a, ir.F32) {
		t.Errorf("the identity of a maximum is %s", ir.NodeText(got))
	}
	if got := a.ReduceIdentity(a.Reduce(ir.OpMul, x, k), 0); got != one {
		t.Errorf("the identity of a product is %s", ir.NodeText(got))
	}
}
