package schedule_test

import (
	"testing"

	"tgc/ir"
	"tgc/runtime/interp"
	"tgc/schedule"
	"tgc/tensor"
)

// On a CPU a value is stored where its reader has no lanes for what is then done there, or
// would gather an element several times; it is fused where lanes take it as it lies.
func TestLanesDecideWhatIsStored(t *testing.T) {
	type build = func(g *tensor.Graph, x *tensor.Tensor) *tensor.Tensor
	pool := func(x *tensor.Tensor, n int) *tensor.Tensor {
		rows, columns := x.Extent(0), x.Extent(1)
		y := x.Reshape(1, 1, rows, columns).MaxPool([]int{n, n}, tensor.PoolOptions{Stride: []int{n}})
		return y.Reshape(rows/n, columns/n)
	}
	for _, c := range []struct {
		name    string
		kernels int
		build   build
	}{
		{"lanes along a short product leave its epilogue without", 2, func(g *tensor.Graph, x *tensor.Tensor) *tensor.Tensor {
			return x.Linear(g.Input("w", ir.F32, 64, 64)).Erf()
		}},
		{"of a long one the epilogue is little", 1, func(g *tensor.Graph, x *tensor.Tensor) *tensor.Tensor {
			return x.Reshape(16, 256).Linear(g.Input("w", ir.F32, 64, 256)).Relu()
		}},
		{"lanes along its columns take the epilogue", 1, func(g *tensor.Graph, x *tensor.Tensor) *tensor.Tensor {
			return x.MatMul(g.Input("w", ir.F32, 64, 64)).Erf()
		}},
		{"windows of windows are apart", 2, func(_ *tensor.Graph, x *tensor.Tensor) *tensor.Tensor { return pool(pool(x, 2), 4) }},
		{"repeated elements are stored before a row is read twice", 3, func(_ *tensor.Graph, x *tensor.Tensor) *tensor.Tensor {
			y := pool(x, 2).RepeatInterleave(0, 2).RepeatInterleave(1, 2)
			return y.Sub(y.MeanKeep(-1))
		}},
		{"a flipped row is stored before it is a column", 2, func(_ *tensor.Graph, x *tensor.Tensor) *tensor.Tensor {
			return x.Flip(1).Transpose(0, 1)
		}},
		{"rows that a buffer names are stored before they are columns", 2, func(g *tensor.Graph, x *tensor.Tensor) *tensor.Tensor {
			return x.Gather(0, tensor.FromSlice(g, make([]int32, 64), 64)).Transpose(0, 1)
		}},
		{"what stays in reach of a tile is turned where it is read", 1, func(_ *tensor.Graph, x *tensor.Tensor) *tensor.Tensor {
			return x.AddScalar(1).Transpose(0, 1).Sqrt()
		}},
		{"columns turned in tiles may be read twice", 1, func(_ *tensor.Graph, x *tensor.Tensor) *tensor.Tensor {
			y := x.Transpose(0, 1)
			return y.Cut(tensor.Between(1, 64)).Sub(y.Cut(tensor.Between(0, 63)))
		}},
		{"a product with an outer product needs one row of sums", 3, func(g *tensor.Graph, x *tensor.Tensor) *tensor.Tensor {
			return x.Sum(-1).Unsqueeze(1).Mul(x.Sum(0).Unsqueeze(0)).MatMul(g.Input("w", ir.F32, 64, 64))
		}},
		{"lanes along a row do not help sums of columns, one for each row", 3, func(_ *tensor.Graph, x *tensor.Tensor) *tensor.Tensor {
			y := x.Transpose(0, 1)
			return y.Sum(-1).Unsqueeze(1).Mul(y.Sum(0).Unsqueeze(0))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := tensor.NewGraph()
			g.Output("y", c.build(g, g.Input("x", ir.F32, 64, 64)))
			opt := schedule.CPUOptions()
			opt.Profile.Lanes, opt.Profile.Launch = 16, 2048
			r := newRig(t, g, nil, nil)
			s := r.plan(opt)
			r.check(s, interp.KernelOptions{}, 1e-5)
			n := 0
			for _, l := range s.Launches {
				n += len(l.Kernels)
			}
			if n != c.kernels {
				t.Errorf("%d kernels, want %d:\n%s", n, c.kernels, s)
			}
		})
	}
}
