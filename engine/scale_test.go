//go:build unix

package engine_test

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"tgc/engine"
	"tgc/ir"
	"tgc/nn"
	"tgc/target"
	"tgc/tensor"
)

// scaleGraphs are graphs of any size: how the time to compile them grows is what
// BenchmarkScale shows. A row adds one unit to a value of width 64.
var scaleGraphs = []struct {
	name string
	unit func(g *tensor.Graph, i int, x *tensor.Tensor) *tensor.Tensor
}{
	{"chain", func(_ *tensor.Graph, i int, x *tensor.Tensor) *tensor.Tensor {
		return x.MulScalar(0.5 + float64(i%7)/16).AddScalar(float64(i % 5))
	}},
	{"elementwise", func(_ *tensor.Graph, i int, x *tensor.Tensor) *tensor.Tensor {
		return x.MulScalar(0.5 + float64(i%7)/16).AddScalar(float64(i % 5)).Maximum(x.Neg())
	}},
	{"sums", func(_ *tensor.Graph, _ int, x *tensor.Tensor) *tensor.Tensor {
		return x.Sub(x.SumKeep(1).MulScalar(1.0 / 64)).Silu()
	}},
	{"layers", func(g *tensor.Graph, i int, x *tensor.Tensor) *tensor.Tensor {
		y := nn.RMSNorm(x, g.Input(fmt.Sprintf("gamma%d", i), ir.F32, 64), 1e-5)
		y = y.Linear(g.Input(fmt.Sprintf("up%d", i), ir.F32, 128, 64)).Silu()
		return x.Add(y.Linear(g.Input(fmt.Sprintf("down%d", i), ir.F32, 64, 128)))
	}},
	{"parameters", func(g *tensor.Graph, i int, x *tensor.Tensor) *tensor.Tensor {
		// Steps of an optimiser: buffers assigned one by one, from what is shared.
		w, m := g.Input(fmt.Sprintf("w%d", i), ir.F32, 64), g.Input(fmt.Sprintf("m%d", i), ir.F32, 64)
		grad := w.MulScalar(0.25).Add(x.Sum(0))
		next := m.Assign(m.MulScalar(0.9).Add(grad.MulScalar(0.1)))
		g.Keep(next)
		g.Keep(w.Assign(w.Sub(next.MulScalar(0.01))))
		return x
	}},
}

// scaleGraph repeats a unit until the graph has so many nodes.
func scaleGraph(tb testing.TB, unit func(*tensor.Graph, int, *tensor.Tensor) *tensor.Tensor, nodes int) *ir.UOp {
	g := tensor.NewGraph()
	x := g.Input("x", ir.F32, 8, 64)
	y := x
	step := 0
	for i := 0; ; i++ {
		y = unit(g, i, y)
		if i == 7 { // long enough to know how many nodes a unit has
			step = countNodes(tb, g, y) / 8
		}
		if i >= 7 && (i+1)*step >= nodes {
			break
		}
	}
	g.Output("y", y)
	sink, err := g.Sink()
	if err != nil {
		tb.Fatal(err)
	}
	return sink
}

func countNodes(tb testing.TB, g *tensor.Graph, y *tensor.Tensor) int {
	if sink, err := g.Sink(); err == nil && len(sink.Src) > 0 {
		return len(ir.Toposort(sink))
	}
	if err := g.Err(); err != nil {
		tb.Fatal(err)
	}
	return len(ir.Toposort(y.Node()))
}

// cpuSeconds is what the process has computed so far, the collector included:
// unlike the clock it does not count waiting for other processes.
func cpuSeconds(tb testing.TB) float64 {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		tb.Fatal(err)
	}
	return float64(used.Utime.Nano()+used.Stime.Nano()) / 1e9
}

// BenchmarkScale compiles graphs of 2,500 to 20,000 nodes to programs. Twice the
// nodes should take about twice the time: the figure is per node.
func BenchmarkScale(b *testing.B) {
	desc, err := target.Parse("llvm:x86-64-v4")
	if err != nil {
		b.Fatal(err)
	}
	for _, row := range scaleGraphs {
		for _, nodes := range []int{2500, 5000, 10_000, 20_000} {
			b.Run(fmt.Sprintf("%s/%d", row.name, nodes), func(b *testing.B) {
				sink := scaleGraph(b, row.unit, nodes)
				n := len(ir.Toposort(sink))
				b.ReportAllocs()
				before := cpuSeconds(b)
				for b.Loop() {
					if _, err := engine.Compile(b.Context(), sink, desc, engine.Config{}); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(1e6*(cpuSeconds(b)-before)/float64(b.N)/float64(n), "cpu-us/node")
			})
		}
	}
}
