package schedule_test

import (
	"testing"

	"tgc/grad"
	"tgc/ir"
	"tgc/runtime/interp"
	"tgc/schedule"
	"tgc/tensor"
)

// The derivative of sums over windows by their input is one kernel of shifted reads: no window is stored, no remainder
// computed. That of a convolution is a convolution of the padded adjoint.
func TestWindowAdjointsAreShiftedReads(t *testing.T) {
	conv := func(o tensor.ConvOptions) func(x, w *tensor.Tensor) *tensor.Tensor {
		return func(x, w *tensor.Tensor) *tensor.Tensor { return x.Conv(w, nil, o) }
	}
	for _, c := range []struct {
		name    string
		apply   func(x, w *tensor.Tensor) *tensor.Tensor
		kernels int
	}{
		{"conv_input_gradient", conv(tensor.ConvOptions{Padding: []int{1}}), 2},
		{"conv_input_gradient_dilated", conv(tensor.ConvOptions{Padding: []int{1}, Dilation: []int{2}}), 2},
		{"window_sums_gradient", func(x, w *tensor.Tensor) *tensor.Tensor {
			x = x.Pad(2, 1, 1).Pad(3, 1, 1).Unfold(2, 3, 1).Unfold(3, 2, 1) // [N, C, H, W, 3, 2]
			return x.Unsqueeze(1).Mul(w.Reshape(4, 3, 1, 1, 3, 2)).Sum(2, 5, 6)
		}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := tensor.NewGraph()
			x, w := g.Input("x", ir.F32, 2, 3, 8, 9), g.Input("w", ir.F32, 4, 3, 3, 2)
			y := c.apply(x, w)
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
