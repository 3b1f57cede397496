package engine_test

import (
	"strings"
	"testing"

	"tgc/engine"
	"tgc/ir"
	"tgc/target"
	"tgc/tensor"
)

// Plans of single operations that were several times as slow with others.
func TestPlansOfSingleOps(t *testing.T) {
	desc, err := target.Parse("llvm:x86-64-v4")
	if err != nil {
		t.Fatal(err)
	}
	in := func(g *tensor.Graph, name string, shape ...int) *tensor.Tensor {
		return g.Input(name, ir.F32, shape...)
	}
	for _, c := range []struct {
		name  string
		build func(g *tensor.Graph) *tensor.Tensor
		want  string // of the plan of some kernel
	}{
		{"one maximum for 256 elements", func(g *tensor.Graph) *tensor.Tensor {
			return in(g, "w", 256, 1024).MatMul(in(g, "x", 1024, 1)).Squeeze(1).LogSoftmax(0)
		}, "VECTOR r0 16; UNROLL r0 16; TILE r0"},
		{"a product of little memory and many uses", func(g *tensor.Graph) *tensor.Tensor {
			return in(g, "x", 512, 16).MatMul(in(g, "y", 512, 16).Transpose(0, 1))
		}, "STAGE s1; VECTOR s1 16; UPCAST s1 4"},
		{"columns turned for a few uses less than terms", func(g *tensor.Graph) *tensor.Tensor {
			return in(g, "x", 64, 37).MatMul(in(g, "y", 512, 37).Transpose(0, 1))
		}, "STAGE s1; VECTOR s1"},
		{"all of 80 columns at once", func(g *tensor.Graph) *tensor.Tensor {
			return in(g, "x", 512, 512).MatMul(in(g, "y", 512, 80))
		}, "VECTOR s1 16; UPCAST s1 5; UPCAST s0 4"},
		{"a window of 7 x 7", func(g *tensor.Graph) *tensor.Tensor {
			return in(g, "x", 1, 8, 62, 62).Conv(in(g, "w", 8, 1, 7, 7), nil, tensor.ConvOptions{Groups: 8})
		}, "32; UNROLL r0 7; UNROLL r1 7"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := tensor.NewGraph()
			g.Output("y", c.build(g))
			compiled, err := g.Compile(t.Context(), desc, engine.Config{Verify: true})
			if err != nil {
				t.Fatal(err)
			}
			var plans []string
			for _, k := range compiled.Kernels {
				plans = append(plans, k.Plan.String())
			}
			if !strings.Contains(strings.Join(plans, "\n"), c.want) {
				t.Errorf("want %q among %q", c.want, plans)
			}
		})
	}
}

// A product of floats whose panels would cost more than warps that share a sum and load for themselves.
func TestPlanOfFloatProductOnGPU(t *testing.T) {
	desc, err := target.Parse("ptx:sm_90")
	if err != nil {
		t.Fatal(err)
	}
	g := tensor.NewGraph()
	g.Output("y", g.Input("x", ir.F32, 512, 512).MatMul(g.Input("w", ir.F32, 512, 512)))
	compiled, err := g.Compile(t.Context(), desc, engine.Config{Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	if p := compiled.Kernels[0].Plan.String(); !strings.Contains(p, "GROUP r0 4") || strings.Contains(p, "STAGE") {
		t.Errorf("plan %s, want warps that share a sum", p)
	}
}
