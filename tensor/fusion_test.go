package tensor_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tgc/engine"
	"tgc/internal/oracle"
	"tgc/ir"
	"tgc/target"
	"tgc/tensor"
)

var update = flag.Bool("update", false, "rewrite golden files")

// fusionTargets are the columns of the table: a CPU and a GPU.
var fusionTargets = []string{"llvm:x86-64-v3", "ptx:sm_90"}

// fusionExtra are programs that people compare compilers by; shapes are those
// of a small layer.
var fusionExtra = []struct {
	name  string
	build func(in func(shape ...int) *tensor.Tensor) *tensor.Tensor
}{
	{"softmax [64 512]", func(in func(...int) *tensor.Tensor) *tensor.Tensor { return in(64, 512).Softmax(-1) }},
	{"log_softmax [64 512]", func(in func(...int) *tensor.Tensor) *tensor.Tensor { return in(64, 512).LogSoftmax(-1) }},
	{"layer_norm [64 512]", func(in func(...int) *tensor.Tensor) *tensor.Tensor {
		return in(64, 512).LayerNorm(1, in(512), in(512), 1e-5)
	}},
	{"rms_norm [64 512]", func(in func(...int) *tensor.Tensor) *tensor.Tensor { return in(64, 512).RMSNorm(in(512), 1e-5) }},
	{"variance [64 512]", func(in func(...int) *tensor.Tensor) *tensor.Tensor { return in(64, 512).Var(1, -1) }},
	{"matmul, bias, gelu [64 256 512]", func(in func(...int) *tensor.Tensor) *tensor.Tensor {
		return in(64, 256).Linear(in(512, 256)).Add(in(512)).Gelu()
	}},
	{"attention [2 4 128 64]", func(in func(...int) *tensor.Tensor) *tensor.Tensor {
		return in(2, 4, 128, 64).Attention(in(2, 4, 128, 64), in(2, 4, 128, 64), tensor.AttentionOptions{Causal: true})
	}},
	{"attention, grouped [2 8 128 64]", func(in func(...int) *tensor.Tensor) *tensor.Tensor {
		return in(2, 8, 128, 64).Attention(in(2, 2, 128, 64), in(2, 2, 128, 64), tensor.AttentionOptions{Grouped: true})
	}},
	{"conv2d, bias, relu [2 16 32 32]", func(in func(...int) *tensor.Tensor) *tensor.Tensor {
		return in(2, 16, 32, 32).Conv(in(32, 16, 3, 3), in(32), tensor.ConvOptions{Padding: []int{1}}).Relu()
	}},
	{"conv2d, batch norm, relu, max pool", func(in func(...int) *tensor.Tensor) *tensor.Tensor {
		x := in(2, 16, 32, 32).Conv(in(32, 16, 3, 3), nil, tensor.ConvOptions{Padding: []int{1}})
		return x.BatchNorm(in(32), in(32), in(32), in(32), 1e-5).Relu().MaxPool([]int{2, 2}, tensor.PoolOptions{})
	}},
	{"group_norm [2 32 16 16]", func(in func(...int) *tensor.Tensor) *tensor.Tensor {
		return in(2, 32, 16, 16).GroupNorm(8, in(32), in(32), 1e-5)
	}},
	{"mse_loss of linear", func(in func(...int) *tensor.Tensor) *tensor.Tensor {
		return in(64, 256).Linear(in(10, 256)).MSELoss(in(64, 10), tensor.ReduceMean)
	}},
	{"sort [8 64]", func(in func(...int) *tensor.Tensor) *tensor.Tensor {
		values, _ := in(8, 64).Sort(-1, false)
		return values
	}},
	{"argmax [64 512]", func(in func(...int) *tensor.Tensor) *tensor.Tensor { return in(64, 512).Argmax(-1) }},
}

// TestFusionCounts pins how many kernels, in how many launches, the programs of
// the operator vectors and some well-known layers become.
func TestFusionCounts(t *testing.T) {
	var table strings.Builder
	table.WriteString(fusionHeader)
	row := func(name string, build func(g *tensor.Graph) error) {
		fmt.Fprintf(&table, "| %s |", name)
		for _, to := range fusionTargets {
			g := tensor.NewGraph()
			if err := build(g); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			fmt.Fprintf(&table, " %s |", countKernels(t, name, g, to))
		}
		table.WriteString("\n")
	}
	for _, extra := range fusionExtra {
		row(extra.name, func(g *tensor.Graph) error {
			inputs := 0
			out := extra.build(func(shape ...int) *tensor.Tensor {
				inputs++
				return g.Input(fmt.Sprint("in", inputs), ir.F32, shape...)
			})
			g.Output("out", out)
			return g.Err()
		})
	}
	for _, c := range readVectors(t, oracle.Dirs(t, "ops")[0]) {
		if c.group != "programs" {
			continue
		}
		row(c.Name, func(g *tensor.Graph) error {
			_, outputs, err := c.build(g)
			for i, out := range outputs {
				g.Output(fmt.Sprint("out", i), out)
			}
			return err
		})
	}
	path := filepath.Join("..", "docs", "programs.md")
	if *update {
		if err := os.WriteFile(path, []byte(table.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), table.String()); diff != "" {
		t.Errorf("%s changed (-want +got), -update rewrites it:\n%s", path, diff)
	}
}

const fusionHeader = `# Kernels of programs

How many kernels, in how many launches, a program becomes on a CPU
(` + "`llvm:x86-64-v3`" + `) and on a GPU (` + "`ptx:sm_90`" + `): "kernels/launches". Kernels of one launch
start together. Generated: ` + "`go test ./tensor -run FusionCounts -update`" + `. First layers that
people compare compilers by (tinygrad's rules give softmax 3 kernels, attention 5 and layer
normalisation 3), then the programs of the operator vectors.

| program | CPU | GPU |
|---|---|---|
`

// countKernels compiles a graph as far as programs.
func countKernels(t *testing.T, name string, g *tensor.Graph, to string) string {
	t.Helper()
	desc, err := target.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	c, err := g.Compile(t.Context(), desc, engine.Config{})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	kernels := 0
	for _, launch := range c.Schedule.Launches {
		kernels += len(launch.Kernels)
	}
	return fmt.Sprintf("%d/%d", kernels, len(c.Schedule.Launches))
}
