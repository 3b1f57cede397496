package rewrite

import (
	"testing"

	"tgc/ir"
)

// (e*n + p)%(n+d) < count is decided by p - e*d where a whole turn cannot come in
// between: all windows of up to 4 elements over axes of up to 9.
func TestRemainderNearADiagonal(t *testing.T) {
	cleared := 0
	for n := int64(2); n <= 9; n++ {
		for size := int64(2); size <= 4; size++ {
			for dilation := int64(1); dilation <= 3; dilation++ {
				count := n - (size-1)*dilation
				if count < 1 {
					continue
				}
				a := ir.NewArena()
				e, p := a.Range(1, a.Index(size)), a.Range(2, a.Index(n))
				x := a.Binary(ir.OpFloorMod, a.Add(a.Mul(e, a.Index(n)), p), a.Index(n+dilation))
				out := Simplify(a, a.Lt(x, a.Index(count)))
				if !hasOp(out, ir.OpFloorMod) {
					cleared++
				}
				for ev := range size {
					for pv := range n {
						got := evaluate(out, map[*ir.UOp]int64{e: ev, p: pv})
						if want := (ev*n+pv)%(n+dilation) < count; got != want {
							t.Fatalf("n %d, size %d, dilation %d, e %d, p %d: got %v from\n%s", n, size, dilation, ev, pv, got, ir.Text(out))
						}
					}
				}
			}
		}
	}
	if cleared < 40 {
		t.Errorf("%d remainders were cleared, want at least 40", cleared)
	}
}

func hasOp(root *ir.UOp, op ir.Op) bool {
	for _, u := range ir.Toposort(root) {
		if u.Op == op {
			return true
		}
	}
	return false
}

// evaluate computes a condition where ranges have values.
func evaluate(root *ir.UOp, at map[*ir.UOp]int64) bool {
	done := make(map[*ir.UOp]ir.Scalar)
	for _, u := range ir.Toposort(root) {
		if v, ok := at[u]; ok {
			done[u] = ir.IntScalar(v)
			continue
		}
		if v, ok := u.Scalar(); ok {
			done[u] = v
			continue
		}
		args := make([]ir.Scalar, len(u.Src))
		for i, s := range u.Src {
			args[i] = done[s]
		}
		done[u] = ir.EvalScalar(u.Op, u.DType, u.Src[len(u.Src)-1].DType, args)
	}
	return done[root].I != 0
}
