package engine_test

import (
	"slices"
	"strings"
	"testing"

	"tgc/engine"
	"tgc/ir"
	"tgc/ir/program"
	"tgc/target"
	"tgc/tensor"
)

// Kernels of library programs whose plans on a GPU were cliffs: each has the kind of plan that
// it had not, and no more or fewer blocks than that needs.
func TestLibraryPlans(t *testing.T) {
	desc, err := target.Parse("ptx:sm_90a")
	if err != nil {
		t.Fatal(err)
	}
	square := func(g *tensor.Graph, n int) *tensor.Tensor { return input(g, "x", n, n) }
	for _, tt := range []struct {
		name         string
		build        func(g *tensor.Graph) *tensor.Tensor
		want         string // in the last kernel's text of why
		fewest, most int64  // its blocks
	}{
		{"a window of single channels", func(g *tensor.Graph) *tensor.Tensor {
			return input(g, "x", 1, 128, 56, 56).Conv(input(g, "w", 128, 1, 3, 3), nil, tensor.ConvOptions{Padding: []int{1}, Groups: 128})
		}, "a thread each along s2, 7 results with 9 points", 128, 1 << 14},
		{"elements that share what their row folds", func(g *tensor.Graph) *tensor.Tensor {
			y := square(g, 256).Add(input(g, "b", 256))
			return y.Sub(y.LogSumExpKeep(-1))
		}, "threads a reduce", 256, 256},
		{"columns of running sums, which are stored", func(g *tensor.Graph) *tensor.Tensor {
			y := square(g, 256).Cumsum(0)
			return y.Sub(y.MeanKeep(0))
		}, "side by side", 16, 256},
		{"rows of 96 and a stage of a warp each", func(g *tensor.Graph) *tensor.Tensor {
			y := square(g, 96).MatMul(input(g, "w", 96, 96))
			return y.Div(y.SumKeep(-1).AddScalar(1e3)).Pad(1, 1, 0).Cut(tensor.Whole(), tensor.Between(0, 96))
		}, "threads a reduce", 96, 1 << 14},
		{"columns of gathered rows", func(g *tensor.Graph) *tensor.Tensor {
			return square(g, 256).Gather(0, g.Input("i", ir.I32, 256)).Mean(0)
		}, "side by side", 16, 256},
		{"two terms of what is loaded once", func(g *tensor.Graph) *tensor.Tensor {
			x := input(g, "x", 512, 8192)
			high := x.Cast(ir.F16)
			return high.Stack(0, x.Sub(high.Cast(ir.F32)).Cast(ir.F16))
		}, "16 bytes a thread", 8192, 8192},
		{"columns after the largest of each row", func(g *tensor.Graph) *tensor.Tensor {
			y := square(g, 96).MatMul(input(g, "w", 96, 96)).Roll([]int{1, 3}, []int{0, 1})
			return y.Sub(y.MaxKeep(-1)).Softmax(0)
		}, "side by side", 8, 96},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := compileOutput(t, tt.build, desc)
			launch := c.Launches[len(c.Launches)-1]
			k := launch[len(launch)-1].Kernel
			if units := k.Program.Units(); !strings.Contains(k.Why, tt.want) || units < tt.fewest || units > tt.most {
				t.Errorf("%s: %d blocks, %s\nwant %d to %d, %q", k.Name, units, k.Why, tt.fewest, tt.most, tt.want)
			}
		})
	}
}

// An attention that made its values itself, a stage for each of their columns, would make its
// scores again for each: the price counts loops that stages depend on, inside of reduces too.
func TestAttentionReadsItsValues(t *testing.T) {
	desc, err := target.Parse("ptx:sm_90a")
	if err != nil {
		t.Fatal(err)
	}
	g := tensor.NewGraph()
	x := input(g, "x", 128, 128).Add(input(g, "b", 128)).LayerNorm(1, nil, nil, 1e-5)
	split := func(name string) *tensor.Tensor {
		return x.Linear(input(g, name, 128, 128)).Reshape(128, 4, 32).Transpose(0, 1)
	}
	y := split("q").Attention(split("k"), split("v"), tensor.AttentionOptions{})
	g.Output("out", y.Transpose(0, 1).Reshape(128, 128).Linear(input(g, "o", 128, 128)))
	c, err := g.Compile(t.Context(), desc, engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, k := range c.Kernels {
		if !strings.HasPrefix(k.Why, "attention:") {
			continue
		}
		found = true
		for _, u := range ir.Toposort(k.AST) {
			if u.Op == ir.OpStage {
				t.Errorf("%s has a stage: %s", k.Name, k.Why)
			}
		}
	}
	if !found {
		t.Error("no kernel is an attention")
	}
}

// What library programs lose on a CPU of two cores unless it is seen to: rows of a batch that one
// worker would take one after the other since their mean is one point; rows of a running sum that
// each unit of a row would make again, and that lanes would gather; what lanes must run along.
func TestLibraryPlansOnTwoCores(t *testing.T) {
	desc, err := target.Parse("llvm:x86-64-v4")
	if err != nil {
		t.Fatal(err)
	}
	desc.Cost.Workers = 2
	for _, tt := range []struct {
		name  string
		build func(g *tensor.Graph) *tensor.Tensor
		units []int64 // of its kernels
		opts  string  // in the last one's plan
	}{
		{"cross-entropy of a batch", func(g *tensor.Graph) *tensor.Tensor {
			return input(g, "x", 40, 3000).CrossEntropy(g.Input("labels", ir.I32, 40))
		}, []int64{40, 1}, ""},
		{"cross-entropy of a batch of few short rows", func(g *tensor.Graph) *tensor.Tensor {
			return input(g, "x", 4, 30).CrossEntropy(g.Input("labels", ir.I32, 4))
		}, []int64{1}, ""},
		{"moving average", func(g *tensor.Graph) *tensor.Tensor {
			sums := input(g, "x", 64, 1000).Cumsum(1)
			return sums.SliceInts(1, 20, 980).Sub(sums.SliceInts(1, 0, 980))
		}, []int64{128, 64 * 4, 256, 64, 8, 256, 128, 64}, ""},
		{"sum of much", func(g *tensor.Graph) *tensor.Tensor { return input(g, "x", 1<<20).Sum(0) }, []int64{2, 1}, ""},
		{"sum of little", func(g *tensor.Graph) *tensor.Tensor { return input(g, "x", 1<<17).Sum(0) }, []int64{1}, ""},
		{"windows as rows, turned into a panel", func(g *tensor.Graph) *tensor.Tensor {
			rows := input(g, "x", 1, 16, 40, 40).Unfold(2, 3, 1).Unfold(3, 3, 1).Permute(0, 1, 4, 5, 2, 3).Reshape(144, 38*38)
			return input(g, "w", 24, 144).MatMul(rows)
		}, []int64{23}, "STAGE s1; VECTOR s1 64"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := compileOutput(t, tt.build, desc)
			var units []int64
			for _, launch := range c.Launches {
				for _, k := range launch {
					units = append(units, k.Kernel.Program.Units())
					if text := program.Print(k.Kernel.Program); strings.Contains(text, "= gather") {
						t.Errorf("%s gathers\n%s", k.Kernel.Name, text)
					}
				}
			}
			if !slices.Equal(units, tt.units) {
				t.Errorf("units %v, want %v", units, tt.units)
			}
			last := c.Launches[len(c.Launches)-1]
			if text := last[len(last)-1].Kernel.Plan.String(); !strings.Contains(text, tt.opts) {
				t.Errorf("plan %q, want %q", text, tt.opts)
			}
		})
	}
}

// A CPU divides the weights of an attention by their sum where it multiplies them by values, and sums them in a loop
// of its own: in the product's, whose lanes are columns, it would be made one weight after the other.
func TestSumsOfRowsBesideProducts(t *testing.T) {
	desc, err := target.Parse("llvm:x86-64-v4")
	if err != nil {
		t.Fatal(err)
	}
	c := compileOutput(t, func(g *tensor.Graph) *tensor.Tensor {
		of := func(name string) *tensor.Tensor { return input(g, name, 7, 501, 163) } // too long for queries that are lanes
		return of("q").Attention(of("k"), of("v"), tensor.AttentionOptions{})
	}, desc)
	last := c.Kernels[len(c.Kernels)-1]
	sums := make(map[*ir.UOp]int)
	for _, u := range ir.Toposort(last.AST) {
		if u.Op == ir.OpReduce {
			sums[u.ReduceRange()]++
		}
	}
	if len(sums) != 2 || !strings.Contains(last.Plan.String(), "VECTOR r0 16") {
		t.Errorf("%d loops of sums, plan %s, want 2, the first with lanes: %s", len(sums), last.Plan, last.Why)
	}
}

// compileOutput compiles a graph of one result.
func compileOutput(t *testing.T, build func(g *tensor.Graph) *tensor.Tensor, desc *target.Desc) *engine.Compiled {
	t.Helper()
	g := tensor.NewGraph()
	g.Output("out", build(g))
	c, err := g.Compile(t.Context(), desc, engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Rows that lie across what is read or stored are turned in registers: no lane is read or stored by itself.
func TestTurnedRows(t *testing.T) {
	desc, err := target.Parse("llvm:x86-64-v4")
	if err != nil {
		t.Fatal(err)
	}
	for name, build := range map[string]func(x *tensor.Tensor) *tensor.Tensor{
		"sums along rows":        func(x *tensor.Tensor) *tensor.Tensor { return x.Cumsum(1) },
		"sums of turned rows":    func(x *tensor.Tensor) *tensor.Tensor { return x.Transpose(0, 1).Cumsum(1) },
		"sums of turned columns": func(x *tensor.Tensor) *tensor.Tensor { return x.Transpose(0, 1).Cumsum(0) },
		"a turned window": func(x *tensor.Tensor) *tensor.Tensor {
			return x.Reshape(1, 1, 256, 256).MaxPool([]int{3, 3}, tensor.PoolOptions{Stride: []int{1, 1}, Padding: []int{1, 1}}).Reshape(256, 256).Transpose(0, 1)
		},
	} {
		c := compileOutput(t, func(g *tensor.Graph) *tensor.Tensor { return build(input(g, "x", 256, 256)) }, desc)
		for _, k := range c.Kernels {
			if text := program.Print(k.Program); strings.Contains(text, "= gather") || strings.Contains(text, "scatter ") {
				t.Errorf("%s: %s reads or stores lanes one by one, plan %s:\n%s", name, k.Name, k.Plan, text)
			}
		}
	}
}
