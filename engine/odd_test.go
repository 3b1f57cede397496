package engine_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"tgc/engine"
	"tgc/ir"
	"tgc/nn"
	"tgc/runtime/cpu"
	"tgc/tensor"
)

// oddProgram is a library program of any size: its sizes, where no split divides
// them, and those that one would pad them to.
type oddProgram struct {
	name        string
	odd, padded []int
	build       func(g *tensor.Graph, n []int) *tensor.Tensor
}

// input is a buffer of floats.
func input(g *tensor.Graph, name string, shape ...int) *tensor.Tensor {
	return g.Input(name, ir.F32, shape...)
}

func matvecOf(dtype ir.DType) func(*tensor.Graph, []int) *tensor.Tensor {
	return func(g *tensor.Graph, n []int) *tensor.Tensor {
		return g.Input("x", dtype, n[1]).Linear(g.Input("w", dtype, n[0], n[1]))
	}
}

// paddedConvolution is 3 x 3 over n[2] x n[2] results, padded by n[3] or of an input that
// is as much larger.
func paddedConvolution(g *tensor.Graph, n []int) *tensor.Tensor {
	side := n[2] + 2 - 2*n[3]
	x, w := input(g, "x", 1, n[0], side, side), input(g, "w", n[1], n[0], 3, 3)
	return x.Conv(w, nil, tensor.ConvOptions{Padding: []int{n[3]}})
}

// attentionOf has n[0] heads, n[1] tokens that see each other, heads of n[2].
func attentionOf(g *tensor.Graph, n []int) *tensor.Tensor {
	q, k, v := input(g, "q", n[0], n[1], n[2]), input(g, "k", n[0], n[1], n[2]), input(g, "v", n[0], n[1], n[2])
	return q.MatMul(k.Transpose(-1, -2)).MulScalar(1 / math.Sqrt(float64(n[2]))).Softmax(-1).MatMul(v)
}

var oddPrograms = []oddProgram{
	{"matvec", []int{4099, 4099}, []int{4128, 4128}, matvecOf(ir.F32)},
	{"matvec-k", []int{4096, 4095}, []int{4096, 4096}, matvecOf(ir.F32)},
	{"matvec-f16", []int{3000, 3001}, []int{3008, 3008}, matvecOf(ir.F16)},
	{"product", []int{127, 1021, 509}, []int{128, 1024, 512}, func(g *tensor.Graph, n []int) *tensor.Tensor {
		return input(g, "x", n[0], n[1]).Linear(input(g, "w", n[2], n[1]))
	}},
	{"product-columns", []int{127, 1021, 509}, []int{128, 1024, 512}, func(g *tensor.Graph, n []int) *tensor.Tensor {
		return input(g, "x", n[0], n[1]).MatMul(input(g, "w", n[1], n[2]))
	}},
	{"middle-max", []int{61, 509, 127}, []int{64, 512, 128}, func(g *tensor.Graph, n []int) *tensor.Tensor {
		return input(g, "x", n...).Max(1)
	}},
	{"column-sums", []int{4096, 333}, []int{4096, 352}, func(g *tensor.Graph, n []int) *tensor.Tensor {
		return input(g, "x", n...).Sum(0)
	}},
	{"row-sums", []int{4099, 333}, []int{4128, 352}, func(g *tensor.Graph, n []int) *tensor.Tensor {
		return input(g, "x", n...).Sum(1)
	}},
	{"softmax", []int{997, 1009}, []int{1024, 1024}, func(g *tensor.Graph, n []int) *tensor.Tensor {
		return input(g, "x", n...).Softmax(1)
	}},
	{"layer-norm", []int{997, 1009}, []int{1024, 1024}, func(g *tensor.Graph, n []int) *tensor.Tensor {
		return nn.LayerNorm(input(g, "x", n...), input(g, "w", n[1]), input(g, "b", n[1]), 1e-5)
	}},
	{"elementwise", []int{1021, 1009}, []int{1024, 1024}, func(g *tensor.Graph, n []int) *tensor.Tensor {
		return input(g, "x", n...).Silu().Mul(input(g, "y", n...))
	}},
	{"convolution", []int{64, 64, 56, 1}, []int{64, 64, 56, 0}, paddedConvolution},
	{"attention", []int{8, 127, 37}, []int{8, 128, 40}, attentionOf},
}

// graph makes the program's graph.
func (p *oddProgram) graph(n []int) *tensor.Graph {
	g := tensor.NewGraph()
	g.Output("out", p.build(g, n))
	return g
}

// BenchmarkOdd runs the programs on one thread of the CPU, at their sizes and at
// padded ones: the best of many runs, in microseconds.
func BenchmarkOdd(b *testing.B) {
	dev, err := cpu.New(b.Context(), cpu.Options{Threads: 1, NoCache: true})
	if errors.Is(err, cpu.ErrNoLLVM) {
		b.Skip(err)
	}
	if err != nil {
		b.Fatal(err)
	}
	defer dev.Close()
	for _, p := range oddPrograms {
		for _, sizes := range [][]int{p.odd, p.padded} {
			b.Run(p.name+"/"+strings.Trim(strings.ReplaceAll(fmt.Sprint(sizes), " ", "x"), "[]"), func(b *testing.B) {
				f, err := tensor.Compile(b.Context(), p.graph(sizes), dev, engine.Config{})
				if err != nil {
					b.Fatal(err)
				}
				defer f.Close()
				for _, k := range f.Step().Compiled.Kernels {
					b.Logf("%s: %s\n    %s", k.Name, k.Why, k.Plan)
				}
				for b.Loop() {
					if err := f.Run(b.Context(), nil); err != nil {
						b.Fatal(err)
					}
				}
				best := time.Duration(math.MaxInt64)
				for range 20 {
					start := time.Now()
					if err := f.Run(b.Context(), nil); err != nil {
						b.Fatal(err)
					}
					best = min(best, time.Since(start))
				}
				b.ReportMetric(float64(best.Nanoseconds())/1e3, "best-us")
			})
		}
	}
}
