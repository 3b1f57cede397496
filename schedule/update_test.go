package schedule_test

import (
	"testing"

	"tgc/ir"
	"tgc/runtime/interp"
	"tgc/schedule"
	"tgc/tensor"
)

// The step of an optimiser is one kernel, with the temporaries that its stores share;
// but not with what is read at another point, which another thread may have overwritten,
// nor with what stands behind another kernel that needs one of its stores.
func TestUpdates(t *testing.T) {
	const n = 64
	for _, c := range []struct {
		name    string
		kernels int
		step    func(m, w, a, b, c *tensor.Tensor) []*tensor.Tensor
	}{
		{"shared temporary", 1, func(m, w, a, b, c *tensor.Tensor) []*tensor.Tensor {
			shared := a.Mul(b).Add(c)
			mean := m.Assign(m.MulScalar(0.5).Add(shared))
			return []*tensor.Tensor{mean, w.Assign(w.Sub(mean.Mul(shared)))}
		}},
		{"temporary at another point", 2, func(m, w, a, b, c *tensor.Tensor) []*tensor.Tensor {
			shared := a.Mul(b).Add(c)
			mean := m.Assign(m.MulScalar(0.5).Add(shared))
			return []*tensor.Tensor{mean, w.Assign(w.Sub(mean.Mul(shared.Flip(0))))}
		}},
		{"overwritten at another point", 2, func(m, w, a, b, c *tensor.Tensor) []*tensor.Tensor {
			before := m.Flip(0).Mul(b).Add(a)
			mean := m.Assign(m.MulScalar(0.5).Add(b))
			return []*tensor.Tensor{mean, w.Assign(w.Sub(mean.Mul(before))), c.Assign(c.Mul(mean.Add(before)))}
		}},
		{"read at another point", 2, func(m, w, a, b, c *tensor.Tensor) []*tensor.Tensor {
			mean := m.Assign(m.MulScalar(0.5).Add(a))
			return []*tensor.Tensor{mean, w.Assign(w.Sub(mean.Flip(0).Mul(b)))}
		}},
		{"read before at another point", 2, func(m, w, a, b, c *tensor.Tensor) []*tensor.Tensor {
			other := w.Flip(0)
			mean := m.Assign(m.MulScalar(0.5).Add(other))
			return []*tensor.Tensor{mean, w.Assign(w.Sub(mean.Mul(b)))}
		}},
		{"behind a sum", 3, func(m, w, a, b, c *tensor.Tensor) []*tensor.Tensor {
			mean := m.Assign(m.MulScalar(0.5).Add(a))
			length := mean.Mul(mean).Sum(0)
			return []*tensor.Tensor{mean, w.Assign(w.Sub(mean.Mul(length)))}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := tensor.NewGraph()
			in := make(map[string]*tensor.Tensor)
			for _, name := range []string{"m", "w", "a", "b", "c"} {
				in[name] = g.Input(name, ir.F32, n)
			}
			for _, stored := range c.step(in["m"], in["w"], in["a"], in["b"], in["c"]) {
				g.Keep(stored)
			}
			r := newRig(t, g, nil, nil)
			s := r.plan(schedule.DefaultOptions())
			if kernelCount(s) != c.kernels {
				t.Errorf("%d kernels, want %d\n%s", kernelCount(s), c.kernels, s)
			}
			r.check(s, interp.KernelOptions{}, 2e-5)
		})
	}
}

// A sum over what is overwritten is stored first, however cheap it is: the store's
// other points would read what is new.
func TestSumsOfWhatIsOverwritten(t *testing.T) {
	for name, value := range map[string]func(x *tensor.Tensor) *tensor.Tensor{
		"row":    func(x *tensor.Tensor) *tensor.Tensor { return x.Sub(x.SumKeep(1)) },
		"column": func(x *tensor.Tensor) *tensor.Tensor { return x.Mul(x.Max(0).Unsqueeze(0)) },
		"both":   func(x *tensor.Tensor) *tensor.Tensor { return x.Softmax(1).Add(x.SumKeep(0)) },
		"flip":   func(x *tensor.Tensor) *tensor.Tensor { return x.Flip(0).Sub(x) },
	} {
		t.Run(name, func(t *testing.T) {
			g := tensor.NewGraph()
			x := g.Input("x", ir.F32, 4, 64)
			g.Keep(x.Assign(value(x)))
			r := newRig(t, g, nil, nil)
			s := r.plan(schedule.DefaultOptions())
			if kernelCount(s) < 2 {
				t.Errorf("one kernel reads what it overwrites\n%s", s)
			}
			r.check(s, interp.KernelOptions{}, 2e-5)
		})
	}
}
