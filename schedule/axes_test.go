package schedule_test

import (
	"slices"
	"testing"

	"tgc/ir"
	"tgc/runtime/interp"
	"tgc/schedule"
	"tgc/tensor"
)

// Rows whose groups were normalised are read as rows, and what was exchanged between
// neighbours is stored as rows: no kernel of a CPU takes a position of a buffer apart in
// groups that are no vectors, and every store has a loop that is as long as a vector.
func TestGroupsAreReadAsRows(t *testing.T) {
	for name, program := range map[string]func(x *tensor.Tensor) *tensor.Tensor{
		"groups": func(x *tensor.Tensor) *tensor.Tensor {
			y := x.Reshape(6, 4, 10).LayerNorm(1, nil, nil, 1e-5).Reshape(6, 40).Contiguous()
			return y.MatMul(y.Transpose(0, 1))
		},
		"groups of groups": func(x *tensor.Tensor) *tensor.Tensor {
			y := x.Reshape(6, 2, 4, 5).LayerNorm(1, nil, nil, 1e-5).Reshape(6, 40)
			return y.MatMul(y.Transpose(0, 1))
		},
		"pairs": func(x *tensor.Tensor) *tensor.Tensor {
			for range 2 {
				y := x.Reshape(6, 20, 2)
				low, high := y.SliceInts(2, 0, 1), y.SliceInts(2, 1, 1)
				x = low.Minimum(high).Cat(2, low.Maximum(high)).Reshape(6, 40)
			}
			return x.Div(x.SumKeep(1).AddScalar(100))
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := tensor.NewGraph()
			g.Output("y", program(g.Input("x", ir.F32, 6, 40)))
			r := newRig(t, g, nil, nil)
			opt := schedule.CPUOptions()
			s := r.plan(opt)
			r.check(s, interp.KernelOptions{}, 1e-5)
			for _, l := range s.Launches {
				for _, k := range l.Kernels {
					checkRows(t, k.Name, k.AST, opt.Profile.Lanes)
				}
			}
		})
	}
}

// checkRows looks for reads of groups, and for maps that leave lanes empty.
func checkRows(t *testing.T, name string, sink *ir.UOp, lanes int64) {
	t.Helper()
	reduces := false
	for _, u := range ir.Toposort(sink) {
		reduces = reduces || u.Op == ir.OpReduce
		if u.Op != ir.OpLoad || u.Src[0].Op != ir.OpParam || len(u.Indices()) < 2 {
			continue
		}
		index := u.Indices()
		high, low := index[len(index)-2], index[len(index)-1]
		if high.Op == ir.OpFloorDiv && low.Op == ir.OpFloorMod && high.Src[0] == low.Src[0] {
			t.Errorf("%s reads %s", name, ir.Text(u))
		}
	}
	for _, store := range sink.Src {
		loops := store.Ranges()
		if n, _ := loops[len(loops)-1].Src[0].Int(); !reduces && n < lanes {
			t.Errorf("%s stores runs of %d", name, n)
		}
	}
}

// A row that begins elsewhere, or whose elements are repeated, is stored for the reduces that
// read it, whose lanes want neighbours; threads of a GPU read it where it is.
func TestTurnedRowsAreStored(t *testing.T) {
	for name, turn := range map[string]func(x *tensor.Tensor) *tensor.Tensor{
		"gathered": func(x *tensor.Tensor) *tensor.Tensor {
			return x.GatherElements(1, x.Graph().Input("at", ir.I32, 200, 200))
		},
		"ring":     func(x *tensor.Tensor) *tensor.Tensor { return x.Roll([]int{3}, []int{1}) },
		"repeated": func(x *tensor.Tensor) *tensor.Tensor { return x.SliceInts(1, 0, 50).RepeatInterleave(1, 4) },
	} {
		g := tensor.NewGraph()
		g.Output("y", turn(g.Input("x", ir.F32, 200, 200)).LayerNorm(1, nil, nil, 1e-5))
		r := newRig(t, g, nil, nil)
		if n := turnedReads(r.plan(schedule.CPUOptions())); n != 1 {
			t.Errorf("%s: %d kernels of a CPU read what is turned, want 1", name, n)
		}
		gpu := r.plan(schedule.DefaultOptions())
		if n := turnedReads(gpu); n != 1 || len(gpu.Launches) != 1 {
			t.Errorf("%s: %d of the kernels of %d launches of a GPU read what is turned, want all of one", name, n, len(gpu.Launches))
		}
	}
}

// turnedReads counts the kernels that take a position apart, or read where memory says.
func turnedReads(s *schedule.Schedule) (kernels int) {
	for _, l := range s.Launches {
		for _, k := range l.Kernels {
			if slices.ContainsFunc(ir.Toposort(k.AST), func(u *ir.UOp) bool {
				return u.Op == ir.OpFloorMod || u.Op == ir.OpFloorDiv || u.Op == ir.OpCast && u.DType == ir.Idx
			}) {
				kernels++
			}
		}
	}
	return kernels
}
