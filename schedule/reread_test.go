package schedule_test

import (
	"slices"
	"testing"

	"tgc/ir"
	"tgc/runtime/interp"
	"tgc/schedule"
	"tgc/tensor"
)

// On a CPU the softmax of a stored row reads it twice, and so it does scores that are
// computed on the way, as long as they are not too many to be stored; a GPU keeps one tuple.
func TestSoftmaxOfStoredRows(t *testing.T) {
	few := schedule.CPUOptions()
	few.Profile.StoredScores = 4199 // of 4200
	for _, c := range []struct {
		name   string
		opt    schedule.Options
		stored bool
		tuples int
	}{
		{"CPU, stored", schedule.CPUOptions(), true, 0},
		{"CPU, computed", schedule.CPUOptions(), false, 0},
		{"CPU, too many computed", few, false, 1},
		{"GPU, computed", schedule.DefaultOptions(), false, 1},
		{"GPU, stored", schedule.DefaultOptions(), true, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := tensor.NewGraph()
			scores := g.Input("q", ir.F32, 60, 1, 8).Mul(g.Input("k", ir.F32, 70, 8)).Sum(-1)
			if c.stored {
				scores = scores.Contiguous()
			}
			g.Output("y", scores.Softmax(-1).MatMul(g.Input("v", ir.F32, 70, 3)))
			r := newRig(t, g, nil, nil)
			s := r.plan(c.opt)
			r.check(s, interp.KernelOptions{}, 1e-6)
			tuples := 0
			for _, l := range s.Launches {
				for _, k := range l.Kernels {
					if slices.ContainsFunc(ir.Toposort(k.AST), func(u *ir.UOp) bool {
						return u.Op == ir.OpReduce && u.Arg.(ir.ReduceArg).N > 1
					}) {
						tuples++
					}
				}
			}
			if tuples != c.tuples {
				t.Errorf("%d kernels with tuples, want %d:\n%s", tuples, c.tuples, s)
			}
		})
	}
}
