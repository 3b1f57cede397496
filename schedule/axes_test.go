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
	type T = tensor.Tensor
	for name, row := range map[string]struct {
		turn   func(x *T) *T
		turned int // kernels of a CPU that still have turned reads
	}{
		"gathered": {func(x *T) *T { return x.GatherElements(1, x.Graph().Input("at", ir.I32, 200, 200)) }, 1},
		"ring":     {func(x *T) *T { return x.Roll([]int{3}, []int{1}) }, 0}, // a choice of loads: cut-loops
		"repeated": {func(x *T) *T { return x.SliceInts(1, 0, 50).RepeatInterleave(1, 4) }, 1},
	} {
		g := tensor.NewGraph()
		g.Output("y", row.turn(g.Input("x", ir.F32, 200, 200)).LayerNorm(1, nil, nil, 1e-5))
		r := newRig(t, g, nil, nil)
		cpu := r.plan(schedule.CPUOptions())
		if n := turnedReads(cpu); n != row.turned || kernelCount(cpu) < 2 {
			t.Errorf("%s: %d of %d kernels of a CPU read what is turned, want %d, and rows stored before it", name, n, kernelCount(cpu), row.turned)
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

// What is read over and over, or around an end, is read side by side along lanes of a CPU: positions turn at loops' ends, or
// where another load is chosen. Short digits stay: lanes are a multiple of them.
func TestPositionsTurnBetweenLanes(t *testing.T) {
	type T = tensor.Tensor
	for _, row := range []struct {
		name   string
		build  func(x, y *T) *T
		turned int
	}{
		{"repeated", func(x, _ *T) *T { return x.Repeat(2, 3) }, 0},
		{"Kronecker", func(x, y *T) *T { return x.Kron(y) }, 0},
		{"rolled columns", func(x, _ *T) *T { return x.Roll([]int{5}, []int{1}) }, 0},
		{"rolled rows", func(x, _ *T) *T { return x.Roll([]int{5}, []int{0}) }, 1}, // lanes do not divide
		{"circular pad", func(x, _ *T) *T {
			return x.PadAll([][2]int{{0, 0}, {3, 3}}, tensor.PadOptions{Mode: tensor.PadCircular})
		}, 0},
		{"wide circular pad", func(x, _ *T) *T {
			return x.PadAll([][2]int{{0, 0}, {33, 33}}, tensor.PadOptions{Mode: tensor.PadCircular})
		}, 0},
		{"beside its neighbours", func(x, _ *T) *T { return x.Sub(x.Roll([]int{1}, []int{1})).Add(x.Roll([]int{-1}, []int{1})) }, 0},
		{"interleaved", func(x, _ *T) *T { return x.RepeatInterleave(1, 3) }, 1},
		{"two digits", func(x, y *T) *T { return x.Repeat(1, 6).Add(x.SliceInts(1, 0, 22).Repeat(1, 9)) }, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			g := tensor.NewGraph()
			g.Output("y", row.build(g.Input("x", ir.F32, 19, 33), g.Input("y", ir.F32, 9, 17)))
			r := newRig(t, g, nil, nil)
			s := r.plan(schedule.CPUOptions())
			if n := turnedReads(s); n != row.turned {
				t.Errorf("%d kernels read what is turned, want %d\n%s", n, row.turned, s)
			}
			r.check(s, interp.KernelOptions{}, 1e-6)
		})
	}
}

// Of rows long enough, what reads across a position that turns reads it stored side by side, and what turns
// between blocks of a fold is one position.
func TestLongRowsTurnBetweenLanes(t *testing.T) {
	type T = tensor.Tensor
	for _, row := range []struct {
		name    string
		build   func(x *T) *T
		kernels int
		turned  int
	}{
		{"rolled and turned", func(x *T) *T { return x.Roll([]int{3}, []int{1}).Transpose(0, 1) }, 2, 0},
		{"running sums, rolled", func(x *T) *T { return x.Cumsum(1).Roll([]int{3}, []int{1}) }, 4, 0},
		{"rolled, running sums", func(x *T) *T { return x.Roll([]int{3}, []int{1}).Cumsum(1) }, 4, 2}, // quotients of whole blocks
	} {
		t.Run(row.name, func(t *testing.T) {
			g := tensor.NewGraph()
			g.Output("y", row.build(g.Input("x", ir.F32, 256, 256)))
			r := newRig(t, g, nil, nil)
			s := r.plan(schedule.CPUOptions())
			if n, kernels := turnedReads(s), kernelCount(s); n != row.turned || kernels != row.kernels {
				t.Errorf("%d of %d kernels read what is turned, want %d of %d\n%s", n, kernels, row.turned, row.kernels, s)
			}
			r.check(s, interp.KernelOptions{}, 1e-5)
		})
	}
}
