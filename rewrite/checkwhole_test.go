package rewrite

import "tgc/ir"

// CheckWhole samples expressions, rewrites them with the sets together and
// checks the value and that a second run changes nothing.
func CheckWhole(t reporter, tries int, sets ...*Set) {
	for try := range tries {
		s := NewSampler(uint64(try) + 1<<32)
		before := s.Expression(3)
		after, _, err := Apply(s.Arena, before, sets...)
		if err != nil {
			t.Fatalf("%s: %v", show(before), err)
		}
		again, counts, err := Apply(s.Arena, after, sets...)
		if err != nil {
			t.Fatalf("%s: %v", show(after), err)
		}
		if again != after {
			t.Fatalf("not idempotent:\n%s\n%s\n%s\nby %s", show(before), show(after), show(again), counts[0].Rule)
		}
		leaves := leavesOf(s.Arena.Make(ir.OpSink, ir.Void, nil, before, after))
		for range 6 {
			e, ok := randomEnv(s, leaves)
			if !ok {
				continue
			}
			if x, y := eval(before, e), eval(after, e); !same(x, y) && !overflows(before, e) {
				t.Fatalf("sample %d: %s = %v\nbecomes %s = %v\nwhere %s", try, show(before), x, show(after), y, showEnv(leaves, e))
			}
		}
	}
}

// overflows reports an Idx so large that EvalScalar, which wraps, may part
// from the mathematical integer that Idx means.
func overflows(root *ir.UOp, e env) bool {
	for _, u := range ir.Toposort(root) {
		if u.DType == ir.Idx {
			if v := eval(u, e).I; v > 1<<40 || v < -1<<40 {
				return true
			}
		}
	}
	return false
}
