package schedule_test

import (
	"strings"
	"testing"

	"tgc/ir"
	"tgc/runtime/interp"
	"tgc/schedule"
	"tgc/tensor"
)

// Heads that are merged behind a product have loops of their own in its kernel, as if they were not: rows share what is
// read of one head. What shares nothing along one digit of what is stored, or has few columns, keeps its loops.
func TestMergedAxesHaveLoops(t *testing.T) {
	type T = tensor.Tensor
	for _, c := range []struct {
		name  string
		build func(in func(...int) *T) *T
		loops int // of the last kernel
	}{
		{"heads", func(in func(...int) *T) *T {
			return in(8, 19, 33).MatMul(in(8, 33, 24)).Transpose(0, 1).Reshape(19, 192)
		}, 3},
		{"heads with a bias", func(in func(...int) *T) *T {
			return in(8, 19, 33).MatMul(in(8, 33, 24)).Transpose(0, 1).Reshape(19, 192).Add(in(192))
		}, 3},
		{"one query of each head", func(in func(...int) *T) *T {
			return in(8, 1, 33).MatMul(in(8, 33, 24)).Transpose(0, 1).Reshape(1, 192)
		}, 1},
		{"groups of sums", func(in func(...int) *T) *T { return in(8, 24, 33).Sum(2).Reshape(192) }, 1},
		{"pairs", func(in func(...int) *T) *T { return in(8, 19, 33).MatMul(in(8, 33, 2)).Transpose(0, 1).Reshape(19, 16) }, 2},
	} {
		for name, opt := range map[string]schedule.Options{"CPU": schedule.CPUOptions(), "GPU": schedule.DefaultOptions()} {
			t.Run(c.name+" "+name, func(t *testing.T) {
				g := tensor.NewGraph()
				n := 0
				g.Output("y", c.build(func(shape ...int) *T {
					n++
					return g.Input(strings.Repeat("x", n), ir.F32, shape...)
				}))
				r := newRig(t, g, nil, nil)
				s := r.plan(opt)
				last := s.Launches[len(s.Launches)-1].Kernels[0]
				if loops := last.AST.Src[0].Ranges(); len(loops) != c.loops {
					t.Errorf("%d loops, want %d\n%s", len(loops), c.loops, s)
				}
				r.check(s, interp.KernelOptions{}, 1e-5)
			})
		}
	}
}

// Merged heads that are stored into the first columns of wider rows keep the rows' length.
func TestMergedAxesOfWiderRows(t *testing.T) {
	for name, opt := range map[string]schedule.Options{"CPU": schedule.CPUOptions(), "GPU": schedule.DefaultOptions()} {
		g := tensor.NewGraph()
		y := g.Input("x", ir.F32, 8, 19, 33).MatMul(g.Input("w", ir.F32, 8, 33, 24)).Transpose(0, 1).Reshape(19, 192)
		rows, columns := g.Iota(ir.I32, g.Dims(19)[0]).Unsqueeze(1), g.Iota(ir.I32, g.Dims(192)[0]).Unsqueeze(0)
		g.Output("y", g.Input("b", ir.F32, 19, 300).AssignAt(y, rows, columns))
		r := newRig(t, g, nil, nil)
		s := r.plan(opt)
		if loops := s.Launches[0].Kernels[0].AST.Src[0].Ranges(); len(loops) != 2 {
			t.Errorf("%s: %d loops, want rows and columns\n%s", name, len(loops), s)
		}
		r.check(s, interp.KernelOptions{}, 1e-5)
	}
}

// Three planes are too few columns for tiles of matrix instructions: positions keep their loops, in every compilation.
func TestFewColumnsKeepLoops(t *testing.T) {
	for range 40 { // of which maps go through their keys in some order
		g := tensor.NewGraph()
		g.Output("y", g.Input("x", ir.F32, 1, 64, 20, 20).Conv(g.Input("w", ir.F32, 3, 64, 3, 3), nil, tensor.ConvOptions{}))
		opt := schedule.DefaultOptions()
		opt.Profile.MatrixTokens = 8
		s := newRig(t, g, nil, nil).plan(opt)
		if loops := s.Launches[0].Kernels[0].AST.Src[0].Ranges(); len(loops) != 3 {
			t.Fatalf("%d loops, want planes, rows and columns\n%s", len(loops), s)
		}
	}
}
