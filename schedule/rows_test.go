package schedule_test

import (
	"slices"
	"testing"

	"tgc/ir"
	"tgc/ir/analyse"
	"tgc/runtime/interp"
	"tgc/schedule"
	"tgc/tensor"
)

// A fold of a row that is read along the row joins the kernel of the row, for
// inputs of any size, as does a row that is made for it alone on a GPU; one that is read along a product's
// columns does not, and on a GPU neither where a row is shorter than the threads that would share it. A softmax of what lies in memory
// goes over its rows twice on a CPU: one exponential for each element, and a store, cost
// less than the two of a tuple.
func TestRowsJoinTheirFolds(t *testing.T) {
	for name, c := range map[string]struct {
		build    func(x, y *tensor.Tensor) *tensor.Tensor // x is [24 256], y [256 40]
		gpu, cpu int                                      // kernels
	}{
		"softmax":          {func(x, _ *tensor.Tensor) *tensor.Tensor { return x.Softmax(-1) }, 1, 2},
		"layer norm":       {func(x, _ *tensor.Tensor) *tensor.Tensor { return x.LayerNorm(1, nil, nil, 1e-5) }, 1, 1},
		"position":         {func(x, _ *tensor.Tensor) *tensor.Tensor { return x.Argmax(-1) }, 1, 1},
		"uneven rows":      {func(x, _ *tensor.Tensor) *tensor.Tensor { return x.SliceInts(1, 3, 250).Softmax(-1) }, 1, 2},
		"short rows":       {func(x, _ *tensor.Tensor) *tensor.Tensor { return x.SliceInts(1, 3, 100).Softmax(-1) }, 2, 2},
		"rows of rows":     {func(x, _ *tensor.Tensor) *tensor.Tensor { y := x.Softmax(-1); return y.Sub(y.MaxKeep(-1)) }, 1, 2},
		"made rows":        {func(x, _ *tensor.Tensor) *tensor.Tensor { return x.Gelu().Softmax(-1) }, 1, 2},
		"product":          {func(x, y *tensor.Tensor) *tensor.Tensor { return x.Sub(x.MaxKeep(-1)).MatMul(y) }, 2, 2},
		"folds of columns": {func(x, _ *tensor.Tensor) *tensor.Tensor { return x.Div(x.MaxKeep(0)) }, 2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			g := tensor.NewGraph()
			g.Output("z", c.build(g.Input("x", ir.F32, 24, 256), g.Input("y", ir.F32, 256, 40)))
			r := newRig(t, g, nil, nil)
			for _, to := range []struct {
				opt  schedule.Options
				want int
			}{{schedule.DefaultOptions(), c.gpu}, {schedule.CPUOptions(), c.cpu}} {
				s := r.plan(to.opt)
				kernels := 0
				for _, l := range s.Launches {
					kernels += len(l.Kernels)
				}
				if kernels != to.want {
					t.Errorf("%d kernels, want %d\n%s", kernels, to.want, s)
				}
				r.check(s, interp.KernelOptions{}, 2e-5)
			}
		})
	}
}

// Rows that are rounded to halves are stored, so what their norm folds is computed in
// their kernel, though it is light.
func TestRoundedRowsJoinTheirNorm(t *testing.T) {
	g := tensor.NewGraph()
	x := g.Input("a", ir.F32, 20, 4).MatMul(g.Input("b", ir.F32, 4, 1024))
	rounded := x.Mul(x.Mul(x).Sum(1).Rsqrt().Reshape(20, 1)).Cast(ir.F16).Cast(ir.F32)
	g.Output("y", rounded.MatMul(g.Input("w", ir.F32, 1024, 288)))
	r := newRig(t, g, nil, nil)
	s := r.plan(schedule.DefaultOptions())
	if len(s.Launches) != 3 {
		t.Errorf("%d launches, want the input, its rows and the product\n%s", len(s.Launches), s)
	}
	r.check(s, interp.KernelOptions{}, 2e-5)
}

// What is folded of a long row is little work for a point, but too much for every block to make
// all of it: it joins the kernel of the rows all the same.
func TestLongRowsJoinTheirNorm(t *testing.T) {
	for name, opt := range map[string]schedule.Options{"GPU": schedule.DefaultOptions(), "CPU": schedule.CPUOptions()} {
		g := tensor.NewGraph()
		g.Output("y", g.Input("a", ir.F32, 72, 384).Add(g.Input("b", ir.F32, 72, 384)).RMSNorm(nil, 1e-5))
		r := newRig(t, g, nil, nil)
		s := r.plan(opt)
		if len(s.Launches) != 1 {
			t.Errorf("%s: %d launches, want 1\n%s", name, len(s.Launches), s)
		}
		r.check(s, interp.KernelOptions{}, 2e-5)
	}
}

// Products for matrix instructions read what is stored and store what they make, also where
// both operands are as large: a block that makes rows of a product, or rows for one, has none, nor has
// a kernel that folds rows beside it.
func TestProductsForMatrixInstructionsStandAlone(t *testing.T) {
	type T = tensor.Tensor
	for name, build := range map[string]func(x, w *T) *T{
		"before a norm": func(x, w *T) *T { return x.Linear(w).RMSNorm(nil, 1e-5) },
		"behind a norm": func(x, w *T) *T { return x.Div(x.SumKeep(-1).AddScalar(1e3)).Linear(w) },
		"behind a layer norm of what is stored": func(x, w *T) *T {
			return x.Gelu().Contiguous().LayerNorm(1, nil, nil, 1e-5).Linear(w)
		},
		"several behind a row that is made": func(x, w *T) *T {
			y := x.Linear(w).Gelu().LayerNorm(1, nil, nil, 1e-5)
			return y.Linear(w).Mul(y.MatMul(w))
		},
		"of a softmax with itself": func(x, _ *T) *T {
			y := x.Contiguous().Softmax(-1)
			return y.Linear(y)
		},
	} {
		g := tensor.NewGraph()
		g.Output("y", build(g.Input("x", ir.F32, 256, 256), g.Input("w", ir.F32, 256, 256)))
		s := newRig(t, g, nil, nil).plan(hopper(t))
		for _, l := range s.Launches {
			for _, k := range l.Kernels {
				if products, others := foldsOf(k.AST); products > 0 && others > 0 {
					t.Errorf("%s: %d products and %d other folds and stages in a kernel\n%s", name, products, others, s)
				}
			}
		}
		if (name == "before a norm" || name == "behind a norm") && len(s.Launches) != 2 {
			t.Errorf("%s: %d launches, want 2\n%s", name, len(s.Launches), s)
		}
	}
}

// foldsOf counts products of matrices in a kernel, and what else it folds or stages.
func foldsOf(sink *ir.UOp) (products, others int) {
	for _, u := range ir.Toposort(sink) {
		switch {
		case analyse.IsSum(u) && u.Src[0].Op == ir.OpMul && u.Src[0].Src[0] != u.Src[0].Src[1]:
			products++
		case u.Op == ir.OpReduce, u.Op == ir.OpStage:
			others++
		}
	}
	return products, others
}

// A block of a GPU makes no column of a matrix for a fold of it, cheap as its elements are: they lie apart.
func TestColumnsAreNotStaged(t *testing.T) {
	g := tensor.NewGraph()
	x := g.Input("x", ir.F32, 256, 256).Contiguous().Add(g.Input("y", ir.F32, 256, 256)).Contiguous()
	shifted := x.Pad(1, 1, 0).Cut(tensor.Whole(), tensor.Between(0, 256))
	g.Output("z", shifted.Cumsum(0).Add(shifted))
	r := newRig(t, g, nil, nil)
	s := r.plan(hopper(t))
	for _, l := range s.Launches {
		for _, k := range l.Kernels {
			if slices.ContainsFunc(ir.Toposort(k.AST), func(u *ir.UOp) bool { return u.Op == ir.OpStage }) {
				t.Errorf("a column is staged\n%s", s)
			}
		}
	}
	r.check(s, interp.KernelOptions{}, 2e-5)
}
