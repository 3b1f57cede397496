package schedule_test

import (
	"testing"

	"tgc/grad"
	"tgc/ir"
	"tgc/runtime/interp"
	"tgc/schedule"
	"tgc/tensor"
)

// The derivative of a convolution by its input is one kernel of shifted reads:
// no window is stored, no remainder computed.
func TestWindowAdjointsAreShiftedReads(t *testing.T) {
	for _, c := range []struct {
		name            string
		stride, dilated int
		kernels         int
	}{
		{"conv_input_gradient", 1, 1, 1},
		{"conv_input_gradient_dilated", 1, 2, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := tensor.NewGraph()
			x, w := g.Input("x", ir.F32, 2, 3, 8, 9), g.Input("w", ir.F32, 4, 3, 3, 2)
			y := x.Conv(w, nil, tensor.ConvOptions{Padding: []int{1}, Stride: []int{c.stride}, Dilation: []int{c.dilated}})
			dy := g.Input("dy", ir.F32, 2, 4, y.Extent(2), y.Extent(3))
			g.Output("dx", grad.Of([]*tensor.Tensor{y}, []*tensor.Tensor{dy}, []*tensor.Tensor{x})[0])
			r := newRig(t, g, nil, nil)
			s := r.plan(schedule.CPUOptions())
			r.check(s, interp.KernelOptions{}, 1e-6)
			kernels := 0
			for _, l := range s.Launches {
				kernels += len(l.Kernels)
				for _, k := range l.Kernels {
					for _, u := range ir.Toposort(k.AST) {
						if u.Op == ir.OpFloorMod || u.Op == ir.OpFloorDiv || u.Op == ir.OpStage {
							t.Errorf("kernel %s has a %s", k.Name, u.Op)
						}
					}
				}
			}
			if kernels != c.kernels {
				t.Errorf("%d kernels, want %d", kernels, c.kernels)
			}
			golden(t, c.name, s.String())
		})
	}
}
