package schedule_test

import (
	"strings"
	"testing"

	"tgc/ir"
	"tgc/runtime/interp"
	"tgc/schedule"
	"tgc/tensor"
)

// A value that is rounded to a half is stored as one; what is read is the same
// with the rule off. A user's output keeps its type.
func TestNarrowStore(t *testing.T) {
	g := tensor.NewGraph()
	x := g.Input("x", ir.F32, 3, 64)
	y := x.Mul(x.Mul(x).Sum(1).Reshape(3, 1)).Cast(ir.F16).Cast(ir.F32)
	w := g.Input("w", ir.F32, 64, 64)
	g.Output("a", y.MatMul(w))
	g.Output("b", y.Sum(0))
	g.Output("y", y)
	r := newRig(t, g, nil, nil)
	for _, on := range []bool{true, false} {
		opt := schedule.DefaultOptions()
		opt.Rules = opt.Rules.Without(schedule.Inline, schedule.Broadcast, schedule.StagePrologue)
		if !on {
			opt.Rules = opt.Rules.Without(schedule.NarrowStore)
		}
		s := r.plan(opt)
		halves := 0
		for _, b := range s.Buffers {
			if b.DType == ir.F16 && b.UserID < 0 {
				halves++
			}
		}
		if (halves > 0) != on || strings.Contains(s.String(), "narrow") && !on {
			t.Errorf("%d temporaries of halves with the rule %t\n%s", halves, on, s)
		}
		r.check(s, interp.KernelOptions{}, 2e-5)
	}
}
