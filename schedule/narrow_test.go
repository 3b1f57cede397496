package schedule_test

import (
	"slices"
	"strings"
	"testing"

	"tgc/ir"
	"tgc/nn"
	"tgc/runtime/interp"
	"tgc/schedule"
	"tgc/tensor"
)

// A value that is rounded to a half is stored as one; what is read is the same
// with the rule off. A user's output keeps its type.
func TestNarrowStore(t *testing.T) {
	g := tensor.NewGraph()
	x := g.Input("x", ir.F32, 3, 64)
	y := x.Mul(x.Mul(x).Sum(1).Reshape(3, 1)).Cast(ir.F16).Cast(ir.F32)
	w := g.Input("w", ir.F32, 64, 64)
	g.Output("a", y.MatMul(w))
	g.Output("b", y.Sum(0))
	g.Output("y", y)
	r := newRig(t, g, nil, nil)
	for _, on := range []bool{true, false} {
		opt := schedule.DefaultOptions()
		opt.Off = opt.Off.With("inline-pointwise", "broadcast-reduces", "stage-prologues")
		if !on {
			opt.Off = opt.Off.With("store-narrow")
		}
		s := r.plan(opt)
		halves := 0
		for _, b := range s.Buffers {
			if b.DType == ir.F16 && b.UserID < 0 {
				halves++
			}
		}
		if (halves > 0) != on || strings.Contains(s.String(), "narrow") && !on {
			t.Errorf("%d temporaries of halves with the rule %t\n%s", halves, on, s)
		}
		r.check(s, interp.KernelOptions{}, 2e-5)
	}
}

// Rows of a rounded value that memory names are stored narrow, too: what is narrow is read as it is, wherever it is moved.
func TestNarrowRows(t *testing.T) {
	g := tensor.NewGraph()
	x := g.Input("x", ir.F32, 16, 64).Square().Cast(ir.BF16).Cast(ir.F32)
	g.Output("y", x.Gather(0, g.Input("rows", ir.I32, 24)).MatMul(g.Input("w", ir.F32, 64, 32)))
	r := newRig(t, g, nil, map[string][]int64{"rows": slices.Repeat([]int64{3, 15, 0}, 8)})
	opt := schedule.DefaultOptions()
	opt.Off = opt.Off.With("inline-pointwise", "broadcast-reduces", "stage-prologues", "fuse-points")
	s := r.plan(opt)
	narrow := 0
	for _, b := range s.Buffers {
		switch {
		case b.UserID >= 0:
		case b.DType == ir.BF16:
			narrow++
		default:
			t.Errorf("a temporary of %s", b.DType)
		}
	}
	if narrow != 2 {
		t.Errorf("%d temporaries of bf16, want the values and their rows\n%s", narrow, s)
	}
	r.check(s, interp.KernelOptions{}, 2e-5)
}

// Packed weights that are rounded stay packed: no kernel stores what they decode to.
func TestRoundedWeightsStayPacked(t *testing.T) {
	g := tensor.NewGraph()
	w := g.Packed("w", "Q4_K", 32, 256).Cast(ir.BF16).Cast(ir.F32)
	g.Output("y", g.Input("x", ir.BF16, 24, 256).Cast(ir.F32).Linear(w))
	s, reads := trap(t, g, schedule.DefaultOptions(), nil)
	wantKernels(t, s, 1)
	if n := reads[0]["qs"]; n < 24*32*256 {
		t.Errorf("%d reads of weights, want one for each product: %d", n, 24*32*256)
	}
}

// Rows that are rounded to halves for matrix instructions are stored as halves, however few and cheap they are to make again.
func TestRowsOfHalvesAreStored(t *testing.T) {
	for _, rows := range []int{16, 17} {
		g := tensor.NewGraph()
		half := func(x *tensor.Tensor) *tensor.Tensor { return x.Cast(ir.BF16).Cast(ir.F32) }
		x := half(nn.RMSNorm(g.Input("x", ir.F32, rows, 64), g.Input("weight", ir.F32, 64), 1e-5))
		for _, name := range []string{"q", "k", "v"} {
			g.Output(name, x.Linear(half(g.Packed("w"+name, "Q8_0", 32, 64))))
		}
		r := newRig(t, g, nil, nil)
		s := r.plan(hopper(t))
		if !slices.ContainsFunc(s.Buffers, func(b schedule.Buffer) bool { return b.UserID < 0 && b.DType == ir.BF16 }) {
			t.Errorf("%d rows are not stored as halves\n%s", rows, s)
		}
		r.check(s, interp.KernelOptions{}, 2e-5)
	}
}

// A fold that is rounded to halves is stored over its own axes, in whatever
// positions it is read: its kernel has the loops that it has without the rounding.
func TestRoundedFoldKeepsItsAxes(t *testing.T) {
	loops := func(rounded bool) []int64 {
		g := tensor.NewGraph()
		x, w := g.Input("x", ir.F32, 4, 6, 32), g.Input("w", ir.F32, 4, 8, 32)
		heads := x.MatMul(w.Transpose(1, 2)) // [heads, queries, columns]
		rows := heads.Permute(1, 0, 2).Flip(0).Reshape(6, 32)
		if rounded {
			rows = rows.Cast(ir.F16).Cast(ir.F32)
		}
		g.Output("y", rows.MatMul(g.Input("v", ir.F32, 32, 16)))
		r := newRig(t, g, nil, nil)
		opt := schedule.DefaultOptions()
		opt.Off = opt.Off.With("inline-pointwise", "broadcast-reduces", "fuse-tile-epilogues", "stage-prologues")
		s := r.plan(opt)
		r.check(s, interp.KernelOptions{}, 2e-5)
		store := s.Launches[0].Kernels[0].AST.Src[0]
		if half := store.Src[0].DType == ir.F16; half != rounded {
			t.Errorf("stored as %s, rounded %t\n%s", store.Src[0].DType, rounded, s)
		}
		var extents []int64
		for _, loop := range store.Ranges() {
			n, _ := loop.Src[0].Int()
			extents = append(extents, n)
		}
		return extents
	}
	if plain, rounded := loops(false), loops(true); !slices.Equal(plain, rounded) {
		t.Errorf("loops of the rounded fold: %d, want %d", rounded, plain)
	}
}
