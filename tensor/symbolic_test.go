package tensor_test

import (
	"math"
	"testing"

	"tgc/grad"
	"tgc/ir"
	"tgc/tensor"
)

// batched are operations on a batch x [n 4 6] with classes y [n] of 6 and weights w [6 6]: what
// networks are made of.
var batched = map[string]func(x, y, w *tensor.Tensor) *tensor.Tensor{
	"linear":     func(x, _, w *tensor.Tensor) *tensor.Tensor { return x.Linear(w).Relu() },
	"softmax":    func(x, _, _ *tensor.Tensor) *tensor.Tensor { return x.Softmax(0).Add(x.Softmax(-1)) },
	"layer norm": func(x, _, _ *tensor.Tensor) *tensor.Tensor { return x.LayerNorm(1, nil, nil, 1e-5) },
	"mean":       func(x, _, _ *tensor.Tensor) *tensor.Tensor { return x.Mean() },
	"deviation":  func(x, _, _ *tensor.Tensor) *tensor.Tensor { return x.Std(1, 0) },
	"attention":  func(x, _, _ *tensor.Tensor) *tensor.Tensor { return x.Attention(x, x) },
	"convolution": func(x, _, w *tensor.Tensor) *tensor.Tensor {
		return x.Conv(w.Unflatten(0, 1, 6).SliceInts(1, 0, 4), nil)
	},
	"pool":          func(x, _, _ *tensor.Tensor) *tensor.Tensor { return x.MaxPool([]int{2}) },
	"pad":           func(x, _, _ *tensor.Tensor) *tensor.Tensor { return x.PadAll([][2]int{{0, 0}, {1, 0}, {2, 2}}) },
	"sort":          func(x, _, _ *tensor.Tensor) *tensor.Tensor { v, _ := x.Sort(-1, false); return v },
	"best":          func(x, _, _ *tensor.Tensor) *tensor.Tensor { v, _ := x.TopK(2, -1, true); return v },
	"median":        func(x, _, _ *tensor.Tensor) *tensor.Tensor { return x.Median(2) },
	"elements":      func(x, _, _ *tensor.Tensor) *tensor.Tensor { return x.GatherElements(2, x.Abs().Cast(ir.I32)) },
	"lookup":        func(_, y, w *tensor.Tensor) *tensor.Tensor { return w.Gather(0, y) },
	"rows":          func(x, _, _ *tensor.Tensor) *tensor.Tensor { return x.Reshape(-1, 24).Linear(x.Flatten(1, 2)) },
	"flattened":     func(x, _, _ *tensor.Tensor) *tensor.Tensor { return x.Flatten(0, 1).Reshape(-1, 2) },
	"running":       func(x, _, _ *tensor.Tensor) *tensor.Tensor { return x.LogCumSumExp(1).Add(x.LogCumSumExp(0)) },
	"windows":       func(x, _, _ *tensor.Tensor) *tensor.Tensor { return x.Unfold(2, 3, 2) },
	"tensordot":     func(x, _, w *tensor.Tensor) *tensor.Tensor { return x.Tensordot(w, []int{2}, []int{1}) },
	"cross entropy": func(x, y, w *tensor.Tensor) *tensor.Tensor { return x.Mean(1).Linear(w).CrossEntropy(y) },
	"squared":       func(x, _, w *tensor.Tensor) *tensor.Tensor { return x.Linear(w).MSELoss(x) },
	"gradient": func(x, y, w *tensor.Tensor) *tensor.Tensor {
		return grad.Gradients(x.Mean(1).Linear(w).CrossEntropy(y), w)[0]
	},
	"of attention": func(x, _, w *tensor.Tensor) *tensor.Tensor {
		h := x.Linear(w)
		return grad.Gradients(h.Attention(h, h).Square().Mean(), w)[0]
	},
	"of pools": func(x, _, w *tensor.Tensor) *tensor.Tensor {
		return grad.Gradients(x.Linear(w).MaxPool([]int{2}).Mean(), w)[0]
	},
	"of running folds": func(x, _, w *tensor.Tensor) *tensor.Tensor {
		h := x.Linear(w)
		largest, _ := h.Cummax(1)
		return grad.Gradients(h.Cumprod(2).Add(largest).Add(h.LogCumSumExp(2)).Mean(), w)[0]
	},
	"of long running folds": func(x, _, w *tensor.Tensor) *tensor.Tensor {
		h := x.Linear(w)
		largest, _ := h.Cummax(0)
		return grad.Gradients(h.Cumprod(0).Add(largest).Mean(), w)[0]
	},
	"of windows": func(x, _, w *tensor.Tensor) *tensor.Tensor {
		return grad.Gradients(x.Linear(w).Unfold(2, 3, 2).Square().Mean(), w)[0]
	},
	"of sorts": func(x, _, w *tensor.Tensor) *tensor.Tensor { return grad.Gradients(x.Linear(w).Median(2).Mean(), w)[0] },
}

// A batch of symbolic size gives what one of that constant size gives.
func TestSymbolicBatch(t *testing.T) {
	const rows = 3
	run := func(symbolic bool) *tensor.Function {
		g := tensor.NewGraph()
		n := g.Dims(rows)[0]
		vars := make(map[string]int64)
		if symbolic {
			n, vars["n"] = g.Var("n", 1, 8), rows
		}
		x, y, w := g.InputDims("x", ir.F32, n, g.Dims(4)[0], g.Dims(6)[0]), g.InputDims("y", ir.I32, n), g.Input("w", ir.F32, 6, 6)
		for name, build := range batched {
			g.Output(name, build(x, y, w))
		}
		f, err := g.Function(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(f.Close)
		for _, err := range []error{
			tensor.Set(t.Context(), f, "x", f32s(sample(8, rows*24))), tensor.Set(t.Context(), f, "y", []int32{5, 0, 2}),
			tensor.Set(t.Context(), f, "w", f32s(sample(9, 36))), f.Run(t.Context(), vars),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		return f
	}
	constant, symbolic := run(false), run(true)
	for name := range batched {
		want, err := tensor.Get[float32](t.Context(), constant, name)
		got, err2 := tensor.Get[float32](t.Context(), symbolic, name)
		if err != nil || err2 != nil || len(got) != len(want) {
			t.Errorf("%s: %d elements, %v, want %d, %v", name, len(got), err2, len(want), err)
			continue
		}
		for i := range want {
			if math.Abs(float64(got[i]-want[i])) > 2e-6*max(1, math.Abs(float64(want[i]))) {
				t.Errorf("%s: element %d is %v, want %v", name, i, got[i], want[i])
				break
			}
		}
	}
}
