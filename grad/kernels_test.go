package grad_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"tgc/engine"
	"tgc/grad"
	"tgc/ir"
	"tgc/schedule"
	"tgc/target"
	"tgc/tensor"
)

// layers are the functions whose backward kernels are pinned: each returns a
// loss and what it is differentiated by.
var layers = []struct {
	name  string
	build func(g *tensor.Graph) (loss *tensor.Tensor, by list)
}{
	{"linear, relu, mean squared error", func(g *tensor.Graph) (*tensor.Tensor, list) {
		x, target := g.Input("x", ir.F32, 64, 256), g.Input("target", ir.F32, 64, 128)
		w, b := g.Input("w", ir.F32, 128, 256), g.Input("b", ir.F32, 128)
		return x.Linear(w).Add(b).Relu().MSELoss(target, tensor.ReduceMean), list{x, w, b}
	}},
	{"two linear layers, cross entropy", func(g *tensor.Graph) (*tensor.Tensor, list) {
		x, target := g.Input("x", ir.F32, 64, 256), g.Input("target", ir.I32, 64)
		w1, b1 := g.Input("w1", ir.F32, 128, 256), g.Input("b1", ir.F32, 128)
		w2, b2 := g.Input("w2", ir.F32, 10, 128), g.Input("b2", ir.F32, 10)
		logits := x.Linear(w1).Add(b1).Relu().Linear(w2).Add(b2)
		return logits.CrossEntropy(target, tensor.CrossEntropyOptions{}), list{w1, b1, w2, b2}
	}},
	{"softmax, cross entropy", func(g *tensor.Graph) (*tensor.Tensor, list) {
		logits, target := g.Input("logits", ir.F32, 64, 1000), g.Input("target", ir.I32, 64)
		return logits.CrossEntropy(target, tensor.CrossEntropyOptions{}), list{logits}
	}},
	{"layer norm", func(g *tensor.Graph) (*tensor.Tensor, list) {
		x, target := g.Input("x", ir.F32, 64, 512), g.Input("target", ir.F32, 64, 512)
		weight, bias := g.Input("weight", ir.F32, 512), g.Input("bias", ir.F32, 512)
		return x.LayerNorm(1, weight, bias, 1e-5).Mul(target).Sum(), list{x, weight, bias}
	}},
	{"attention", func(g *tensor.Graph) (*tensor.Tensor, list) {
		q, k, v := g.Input("q", ir.F32, 4, 64, 32), g.Input("k", ir.F32, 4, 64, 32), g.Input("v", ir.F32, 4, 64, 32)
		target := g.Input("target", ir.F32, 4, 64, 32)
		return q.Attention(k, v, tensor.AttentionOptions{}).Mul(target).Sum(), list{q, k, v}
	}},
	{"convolution of 3x3", func(g *tensor.Graph) (*tensor.Tensor, list) {
		x, w, target := g.Input("x", ir.F32, 2, 8, 16, 16), g.Input("w", ir.F32, 16, 8, 3, 3), g.Input("target", ir.F32, 2, 16, 16, 16)
		return x.Conv(w, nil, tensor.ConvOptions{Padding: []int{1, 1}}).Mul(target).Sum(), list{x, w}
	}},
	{"convolution with stride", func(g *tensor.Graph) (*tensor.Tensor, list) {
		x, w, target := g.Input("x", ir.F32, 2, 8, 16, 16), g.Input("w", ir.F32, 16, 8, 3, 3), g.Input("target", ir.F32, 2, 16, 8, 8)
		return x.Conv(w, nil, tensor.ConvOptions{Padding: []int{1, 1}, Stride: []int{2, 2}}).Mul(target).Sum(), list{x, w}
	}},
	{"largest of windows", func(g *tensor.Graph) (*tensor.Tensor, list) {
		x, target := g.Input("x", ir.F32, 2, 8, 16, 16), g.Input("target", ir.F32, 2, 8, 8, 8)
		return x.MaxPool([]int{2, 2}, tensor.PoolOptions{}).Mul(target).Sum(), list{x}
	}},
	{"rows of a table", func(g *tensor.Graph) (*tensor.Tensor, list) {
		table, index, target := g.Input("table", ir.F32, 1000, 64), g.Input("index", ir.I32, 64), g.Input("target", ir.F32, 64, 64)
		return table.Gather(0, index).Mul(target).Sum(), list{table}
	}},
	{"elements along an axis", func(g *tensor.Graph) (*tensor.Tensor, list) {
		x, index, target := g.Input("x", ir.F32, 64, 100), g.Input("index", ir.I32, 64, 5), g.Input("target", ir.F32, 64, 5)
		return x.GatherElements(1, index).Mul(target).Sum(), list{x}
	}},
	{"product", func(g *tensor.Graph) (*tensor.Tensor, list) {
		x := g.Input("x", ir.F32, 64, 40)
		return x.Prod(1).Sum(), list{x}
	}},
	{"running sum", func(g *tensor.Graph) (*tensor.Tensor, list) {
		x, target := g.Input("x", ir.F32, 64, 40), g.Input("target", ir.F32, 64, 40)
		return x.Cumsum(1).Mul(target).Sum(), list{x}
	}},
}

var update = flag.Bool("update", false, "rewrite golden files")

// The kernels of a loss and its gradients: how many, in how many launches, what
// they loop over (stores, then folds behind r), and the memory between them. A
// change is a change of what the compiler makes of training steps, for better or
// worse; go test ./grad -run BackwardKernels -v prints the kernels themselves.
func TestBackwardKernels(t *testing.T) {
	path := filepath.Join("testdata", "backward.txtar")
	var got txtar.Archive
	for _, layer := range layers {
		s := backward(t, layer.build)
		t.Logf("%s\n%s", layer.name, s)
		got.Files = append(got.Files, txtar.File{Name: layer.name, Data: []byte(summary(s))})
	}
	text := txtar.Format(&got)
	if *update {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (run with -update)", err)
	}
	if diff := cmp.Diff(string(want), string(text)); diff != "" {
		t.Errorf("%s (-want +got), -update rewrites it:\n%s", path, diff)
	}
}

// backward schedules a loss with its gradients for a CPU.
func backward(t *testing.T, build func(g *tensor.Graph) (*tensor.Tensor, list)) *schedule.Schedule {
	t.Helper()
	g := tensor.NewGraph()
	loss, by := build(g)
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
	return s
}

func summary(s *schedule.Schedule) string {
	var b strings.Builder
	for i, launch := range s.Launches {
		fmt.Fprintf(&b, "launch %d:", i)
		for _, k := range launch.Kernels {
			b.WriteString(" " + k.Name)
		}
		b.WriteString("\n")
	}
	return fmt.Sprintf("%d kernels, %d launches, %d bytes between them\n%s", kernels(s), len(s.Launches), s.ArenaBytes, b.String())
}

func kernels(s *schedule.Schedule) int {
	n := 0
	for _, launch := range s.Launches {
		n += len(launch.Kernels)
	}
	return n
}

// No kernel of a backward pass with a fold is left without a plan: its folds
// would run again for every element that shares them.
func TestBackwardPlans(t *testing.T) {
	desc, err := target.Parse("llvm:x86-64-v4")
	if err != nil {
		t.Fatal(err)
	}
	for _, layer := range layers {
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
		compiled, err := engine.Compile(t.Context(), sink, desc, engine.Config{})
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range compiled.Kernels {
			if k.Plan.String() == "" && strings.Contains(k.Name, "_r_") {
				t.Errorf("%s: %s has no plan: %s", layer.name, k.Name, k.Why)
			}
		}
	}
}
