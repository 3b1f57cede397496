package schedule_test

import (
	"slices"
	"testing"

	"tgc/ir"
	"tgc/runtime/interp"
	"tgc/schedule"
	"tgc/tensor"
)

// On a CPU the softmax of a stored row reads it twice, and so it does scores that are
// computed on the way, as long as they are not too many to be stored and lanes do not hold the queries; a GPU keeps one tuple.
func TestSoftmaxOfStoredRows(t *testing.T) {
	few := schedule.CPUOptions()
	few.Profile.StoredScores = 4199 // of 4200
	lanes := schedule.CPUOptions()
	lanes.Profile.LaneOutputs = 128
	for _, c := range []struct {
		name   string
		opt    schedule.Options
		stored bool
		rows   int // queries; 4,200 scores
		output int // elements of a result
		tuples int
	}{
		{"CPU, stored", schedule.CPUOptions(), true, 60, 3, 0},
		{"CPU, computed", schedule.CPUOptions(), false, 60, 3, 0},
		{"CPU, computed for long results", lanes, false, 60, 130, 0},
		{"CPU, computed for queries in lanes", lanes, false, 60, 3, 1},
		{"CPU, computed for few queries", lanes, false, 3, 3, 0},
		{"CPU, too many computed", few, false, 60, 130, 1},
		{"GPU, computed", schedule.DefaultOptions(), false, 60, 3, 1},
		{"GPU, stored", schedule.DefaultOptions(), true, 60, 3, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := tensor.NewGraph()
			scores := g.Input("q", ir.F32, c.rows, 1, 8).Mul(g.Input("k", ir.F32, 4200/c.rows, 8)).Sum(-1)
			if c.stored {
				scores = scores.Contiguous()
			}
			g.Output("y", scores.Softmax(-1).MatMul(g.Input("v", ir.F32, 4200/c.rows, c.output)))
			r := newRig(t, g, nil, nil)
			s := r.plan(c.opt)
			r.check(s, interp.KernelOptions{}, 1e-6)
			if tuples := tupleKernels(s); tuples != c.tuples {
				t.Errorf("%d kernels with tuples, want %d:\n%s", tuples, c.tuples, s)
			}
		})
	}
}

// A GPU stores scores of queries that are too long for the registers of a warp of matrix instructions.
func TestScoresOfLongQueriesAreStored(t *testing.T) {
	for _, c := range []struct{ elements, tuples int }{{64, 1}, {152, 1}, {160, 0}, {256, 0}} {
		g := tensor.NewGraph()
		input := func(name string) *tensor.Tensor { return g.Input(name, ir.F32, 1, 64, c.elements) }
		g.Output("y", input("q").Attention(input("k"), input("v"), tensor.AttentionOptions{Causal: true}))
		r := newRig(t, g, nil, nil)
		s := r.plan(hopper(t))
		if c.elements == 160 {
			r.check(s, interp.KernelOptions{}, 2e-5)
		}
		if tuples := tupleKernels(s); tuples != c.tuples {
			t.Errorf("%d elements: %d kernels with tuples, want %d:\n%s", c.elements, tuples, c.tuples, s)
		}
	}
}

// On a CPU so does the softmax of elements that cost more than an exponential: they are
// stored, as is what has a factor for each group of a row.
func TestSoftmaxOfCostlyElements(t *testing.T) {
	for name, build := range map[string]func(x *tensor.Tensor) *tensor.Tensor{
		"pointwise": (*tensor.Tensor).Erf,
		"groups": func(x *tensor.Tensor) *tensor.Tensor {
			y := x.Reshape(16, 4, 16)
			return y.Sub(y.MeanKeep(-1)).Reshape(16, 64)
		},
	} {
		for _, c := range []struct {
			opt    schedule.Options
			tuples int
		}{{schedule.CPUOptions(), 0}, {schedule.DefaultOptions(), 1}} {
			g := tensor.NewGraph()
			g.Output("y", build(g.Input("x", ir.F32, 16, 64)).Softmax(-1))
			r := newRig(t, g, nil, nil)
			s := r.plan(c.opt)
			r.check(s, interp.KernelOptions{}, 1e-6)
			if n := tupleKernels(s); min(n, 1) != c.tuples {
				t.Errorf("%s: %d kernels with tuples, want %d:\n%s", name, n, c.tuples, s)
			}
		}
	}
}

// tupleKernels is the number of kernels with tuples.
func tupleKernels(s *schedule.Schedule) int {
	n := 0
	for _, l := range s.Launches {
		for _, k := range l.Kernels {
			if slices.ContainsFunc(ir.Toposort(k.AST), func(u *ir.UOp) bool {
				return u.Op == ir.OpReduce && u.Arg.(ir.ReduceArg).N > 1
			}) {
				n++
			}
		}
	}
	return n
}
