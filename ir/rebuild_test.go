package ir_test

import (
	"testing"

	"tgc/ir"
)

// TestRebuild: every node once, sources first; what replaces a node is not
// walked; a deep graph does not overflow the stack.
func TestRebuild(t *testing.T) {
	a := ir.NewArena()
	x := a.Load(a.Make(ir.OpParam, ir.F32, ir.ParamArg{}))
	u := x
	const depth = 100_000
	for range depth {
		u = a.Add(u, u)
	}
	visits := 0
	r := ir.Rebuild{Arena: a, Instead: func(u *ir.UOp) *ir.UOp {
		if u == x {
			return a.Const(ir.F32, 2)
		}
		return nil
	}, Visit: func(u *ir.UOp, src []*ir.UOp) *ir.UOp {
		visits++
		if u.Op == ir.OpAdd {
			return a.Mul(src[0], src[1])
		}
		return nil
	}}
	got := r.Do(u)
	if visits != depth {
		t.Errorf("%d visits, want %d", visits, depth)
	}
	for range depth {
		if got.Op != ir.OpMul || got.Src[0] != got.Src[1] {
			t.Fatalf("%s, want a product", ir.NodeText(got))
		}
		got = got.Src[0]
	}
	if !got.IsFloat(2) || r.Of(x) != nil || r.Of(u) == nil {
		t.Errorf("%s at the bottom, want 2", ir.NodeText(got))
	}
	if same := a.Rebuild(u, func(*ir.UOp, []*ir.UOp) *ir.UOp { return nil }); same != u {
		t.Error("a rebuild that changes nothing makes another graph")
	}
}
