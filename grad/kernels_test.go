package grad_test

import (
	"fmt"
	"strings"
	"testing"

	"tgc/grad"
	"tgc/ir"
	"tgc/schedule"
	"tgc/tensor"
)

// layers are the functions whose backward kernels are pinned: each returns a
// loss and what it is differentiated by.
var layers = []struct {
	name  string
	build func(g *tensor.Graph) (loss *tensor.Tensor, by list)
}{
	{"linear, relu, mean squared error", func(g *tensor.Graph) (*tensor.Tensor, list) {
		x, target := g.Input("x", ir.F32, 32, 64), g.Input("target", ir.F32, 32, 16)
		w, b := g.Input("w", ir.F32, 16, 64), g.Input("b", ir.F32, 16)
		h := x.Linear(w).Add(b).Maximum(g.Scalar(ir.F32, 0))
		d := h.Sub(target)
		return d.Mul(d).Sum().MulScalar(1. / 512), list{x, w, b}
	}},
	{"softmax, cross entropy", func(g *tensor.Graph) (*tensor.Tensor, list) {
		logits, target := g.Input("logits", ir.F32, 32, 100), g.Input("target", ir.I32, 32)
		shifted := logits.Sub(logits.MaxKeep(1))
		logp := shifted.Sub(shifted.Exp().SumKeep(1).Log())
		hit := target.Unsqueeze(1).Eq(g.Iota(ir.I32, logits.Dim(1)))
		return hit.Where(logp, g.Scalar(ir.F32, 0)).Sum().MulScalar(-1. / 32), list{logits}
	}},
	{"layer norm", func(g *tensor.Graph) (*tensor.Tensor, list) {
		x, target := g.Input("x", ir.F32, 32, 64), g.Input("target", ir.F32, 32, 64)
		gamma, beta := g.Input("gamma", ir.F32, 64), g.Input("beta", ir.F32, 64)
		centred := x.Sub(x.MeanKeep(1))
		y := centred.Mul(centred.Mul(centred).MeanKeep(1).AddScalar(1e-5).Rsqrt()).Mul(gamma).Add(beta)
		return y.Mul(target).Sum(), list{x, gamma, beta}
	}},
	{"attention", func(g *tensor.Graph) (*tensor.Tensor, list) {
		shape := []int{2, 32, 16}
		q, k, v, target := g.Input("q", ir.F32, shape...), g.Input("k", ir.F32, shape...), g.Input("v", ir.F32, shape...), g.Input("target", ir.F32, shape...)
		p := q.MatMul(k.Transpose(1, 2)).MulScalar(0.25).Softmax(2)
		return p.MatMul(v).Mul(target).Sum(), list{q, k, v}
	}},
	{"convolution of 3x3", func(g *tensor.Graph) (*tensor.Tensor, list) {
		x, w, target := g.Input("x", ir.F32, 2, 3, 8, 8), g.Input("w", ir.F32, 4, 3, 3, 3), g.Input("target", ir.F32, 2, 4, 8, 8)
		windows := x.Pad(2, 1, 1).Pad(3, 1, 1).Unfold(2, 3, 1).Unfold(3, 3, 1) // N C H W 3 3
		y := windows.Unsqueeze(1).Mul(w.Reshape(1, 4, 3, 1, 1, 3, 3)).Sum(2, 5, 6)
		return y.Mul(target).Sum(), list{x, w}
	}},
	{"rows of a table", func(g *tensor.Graph) (*tensor.Tensor, list) {
		table, index, target := g.Input("table", ir.F32, 100, 16), g.Input("index", ir.I32, 32), g.Input("target", ir.F32, 32, 16)
		return table.Gather(0, index).Mul(target).Sum(), list{table}
	}},
}

func TestBackwardKernels(t *testing.T) {
	for _, layer := range layers {
		t.Run(layer.name, func(t *testing.T) {
			g := tensor.NewGraph()
			loss, by := layer.build(g)
			g.Output("loss", loss)
			for i, d := range grad.Of(list{loss}, nil, by) {
				g.Output(fmt.Sprint("d", i), d)
			}
			sink, err := g.Sink()
			if err != nil {
				t.Fatal(err)
			}
			a := ir.NewArena()
			s, err := schedule.Run(t.Context(), a, a.Import(sink), schedule.CPUOptions())
			if err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			fmt.Fprintln(&b, s)
			_ = b.String()
		})
	}
}
