package tensor_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"tgc/engine"
	"tgc/ir"
	"tgc/target"
	"tgc/tensor"
)

// kernelCases are operations that must stay index expressions: what is copied
// to memory, divided or tested too much shows in their kernels.
var kernelCases = []struct {
	name  string
	build func(g *tensor.Graph, in func(shape ...int) *tensor.Tensor) *tensor.Tensor
}{
	{"cut backwards", func(_ *tensor.Graph, in func(...int) *tensor.Tensor) *tensor.Tensor {
		return in(10).Cut(tensor.From(8).By(-3))
	}},
	{"unfold", func(_ *tensor.Graph, in func(...int) *tensor.Tensor) *tensor.Tensor { return in(20).Unfold(0, 4, 3) }},
	{"unfold apart", func(_ *tensor.Graph, in func(...int) *tensor.Tensor) *tensor.Tensor { return in(20).Unfold(0, 3, 4) }},
	{"diagonal", func(_ *tensor.Graph, in func(...int) *tensor.Tensor) *tensor.Tensor {
		return in(5, 8).Diagonal(1, 0, 1)
	}},
	{"roll", func(_ *tensor.Graph, in func(...int) *tensor.Tensor) *tensor.Tensor {
		return in(10).Roll([]int{3}, []int{0})
	}},
	{"cat of three", func(_ *tensor.Graph, in func(...int) *tensor.Tensor) *tensor.Tensor {
		return in(10).Cat(0, in(5), in(7))
	}},
	{"pad with a value", func(_ *tensor.Graph, in func(...int) *tensor.Tensor) *tensor.Tensor {
		return in(10).PadAll([][2]int{{2, 3}}, tensor.PadOptions{Value: 7})
	}},
	{"pad by reflection", func(_ *tensor.Graph, in func(...int) *tensor.Tensor) *tensor.Tensor {
		return in(10).PadAll([][2]int{{2, 3}}, tensor.PadOptions{Mode: tensor.PadReflect})
	}},
	{"gather elements", func(g *tensor.Graph, in func(...int) *tensor.Tensor) *tensor.Tensor {
		return in(5, 8, 3).GatherElements(1, g.Input("i", ir.I64, 5, 4, 3))
	}},
	{"gather by coordinates", func(g *tensor.Graph, in func(...int) *tensor.Tensor) *tensor.Tensor {
		return in(5, 8, 3).GatherND(g.Input("i", ir.U8, 6), g.Input("j", ir.U8, 6))
	}},
	{"convolution", func(_ *tensor.Graph, in func(...int) *tensor.Tensor) *tensor.Tensor {
		return in(2, 8, 16, 16).Conv(in(4, 8, 3, 3), in(4), tensor.ConvOptions{Padding: []int{1}})
	}},
	{"convolution, strided and grouped", func(_ *tensor.Graph, in func(...int) *tensor.Tensor) *tensor.Tensor {
		return in(2, 8, 16, 16).Conv(in(4, 4, 3, 3), nil, tensor.ConvOptions{Stride: []int{2}, Dilation: []int{2}, Groups: 2})
	}},
	{"max pool", func(_ *tensor.Graph, in func(...int) *tensor.Tensor) *tensor.Tensor {
		return in(2, 16, 16).MaxPool([]int{3, 3}, tensor.PoolOptions{Padding: []int{1}, Stride: []int{2}})
	}},
	{"linear interpolation", func(_ *tensor.Graph, in func(...int) *tensor.Tensor) *tensor.Tensor {
		return in(1, 2, 5).Interpolate(tensor.Linear, 8)
	}},
	{"linear interpolation, doubled", func(_ *tensor.Graph, in func(...int) *tensor.Tensor) *tensor.Tensor {
		return in(1, 2, 5).Interpolate(tensor.Linear, 10)
	}},
}

func TestMovementStaysMovement(t *testing.T) {
	desc, err := target.Parse("llvm:x86-64-v3")
	if err != nil {
		t.Fatal(err)
	}
	var got txtar.Archive
	for _, c := range kernelCases {
		g := tensor.NewGraph()
		names := "xwb"
		out := c.build(g, func(shape ...int) *tensor.Tensor {
			name := names[:1]
			names = names[1:]
			return g.Input(name, ir.F32, shape...)
		})
		g.Output("y", out)
		sink, err := g.Sink()
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		compiled, err := engine.Compile(t.Context(), sink, desc, engine.Config{Verify: true})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		_, text, _ := strings.Cut(compiled.Schedule.String(), "\n")
		got.Files = append(got.Files, txtar.File{Name: c.name, Data: []byte(text)})
	}
	path := filepath.Join("testdata", "kernels.txtar")
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
		t.Errorf("%s changed (-want +got), -update rewrites it:\n%s", path, diff)
	}
}

// A GPU stores rows that are columns of memory as rows where they are folded and stored again, and there are
// many; sums of columns and few elements are read where they lie.
func TestRowsThatAreColumns(t *testing.T) {
	desc, err := target.Parse("ptx:sm_90")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		n, kernels int
		build      func(x *tensor.Tensor) *tensor.Tensor
	}{
		{256, 2, func(x *tensor.Tensor) *tensor.Tensor { return x.Softmax(-1) }},
		{128, 1, func(x *tensor.Tensor) *tensor.Tensor { return x.Softmax(-1) }},
		{256, 1, func(x *tensor.Tensor) *tensor.Tensor { return x.Sum(-1) }},
		{256, 1, func(x *tensor.Tensor) *tensor.Tensor { return x.MatMul(x) }},
	} {
		g := tensor.NewGraph()
		g.Output("y", c.build(g.Input("x", ir.F32, c.n, c.n).Transpose(0, 1)))
		compiled, err := g.Compile(t.Context(), desc, engine.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if got := len(compiled.Kernels); got != c.kernels {
			t.Errorf("%d x %d: %d kernels, want %d", c.n, c.n, got, c.kernels)
		}
	}
}
