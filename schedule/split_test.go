package schedule_test

import (
	"testing"

	"tgc/grad"
	"tgc/ir"
	"tgc/runtime/interp"
	"tgc/schedule"
	"tgc/tensor"
)

// splitOptions split every reduce that can be, in up to n chunks.
func splitOptions(n int64) schedule.Options {
	opt := schedule.DefaultOptions()
	opt.Profile.Parallel, opt.Profile.GridSplits, opt.Profile.GridChunk, opt.Profile.LaunchEdge = 1<<30, n, 1, 0
	return opt
}

// cacheSplit splits the attention of the tiny models only: it is the one reduce
// in a kernel with few points.
func cacheSplit(stage bool) schedule.Options {
	opt := schedule.DefaultOptions()
	opt.Profile.Parallel, opt.Profile.GridSplits, opt.Profile.GridChunk, opt.Profile.LaunchEdge = 16, 4, 2, 0
	if !stage {
		opt.Profile.StageWork, opt.Profile.StageOps = 300, 0
	}
	return opt
}

// R8 on the decode layer: the parts of attention are one kernel of three
// stores, the combination is staged in front of the output projection, or a
// kernel of its own.
func TestGridSplitLayer(t *testing.T) {
	for _, row := range []struct {
		stage             bool
		kernels, launches int
	}{{true, 7, 5}, {false, 8, 6}} {
		m := llamaTiny()
		for position := range int64(m.context) {
			r := modelRig(t, m, position)
			s := r.plan(cacheSplit(row.stage))
			if kernelCount(s) != row.kernels || len(s.Launches) != row.launches {
				t.Fatalf("%d kernels in %d launches, want %d in %d\n%s", kernelCount(s), len(s.Launches), row.kernels, row.launches, s)
			}
			r.check(s, interp.KernelOptions{}, 2e-5)
		}
	}
}

// A sum that stands in an arm of a WHERE has no parts: where the other arm is taken,
// it would read past the end of what it sums.
func TestSumsInArmsStayWhole(t *testing.T) {
	g := tensor.NewGraph()
	g.Output("y", g.Input("x", ir.F32, 2, 64).Sum(1).Pad(0, 1, 3))
	r := newRig(t, g, nil, nil)
	r.check(r.plan(splitOptions(4)), interp.KernelOptions{}, 2e-5)
}

// A long sum over columns becomes pieces of equal length, as long as the limit allows
// or shorter, whatever its length.
func TestSumsInPieces(t *testing.T) {
	opt := schedule.CPUOptions()
	opt.Profile.SumPiece, opt.Profile.PanelRows = 4, 1
	for _, c := range []struct{ k, pieces int }{{4, 1}, {5, 1}, {8, 2}, {10, 5}, {21, 7}, {23, 1}, {30, 10}} {
		g := tensor.NewGraph()
		x, w := g.Input("x", ir.F32, 3, c.k), g.Input("w", ir.F32, c.k, 8)
		g.Output("y", x.MatMul(w))
		r := newRig(t, g, nil, nil)
		s := r.plan(opt)
		if kernelCount(s) != c.pieces {
			t.Errorf("a sum of %d is %d kernels, want %d", c.k, kernelCount(s), c.pieces)
		}
		r.check(s, interp.KernelOptions{}, 2e-5)
	}
}

// Parts of a mean with its squares and their number have the loops of the rows all three:
// one kernel makes them.
func TestPartsOfMoments(t *testing.T) {
	for _, n := range []int{64, 67} {
		g := tensor.NewGraph()
		g.Output("y", g.Input("x", ir.F32, 3, n).LayerNorm(1, nil, nil, 1e-5))
		r := newRig(t, g, nil, nil)
		s := r.plan(splitOptions(4))
		if kernelCount(s) != 2 {
			t.Errorf("%d kernels, want the parts and what they are for\n%s", kernelCount(s), s)
		}
		r.check(s, interp.KernelOptions{}, 2e-5)
	}
}

// Rows that are few and long are cut into parts of both the maximum and the sum, which read them once; no cluster shares a row of which
// nothing is weighed.
func TestLongRowsOfSoftmaxAreCut(t *testing.T) {
	for _, shape := range [][]int{{3, 100000}, {1, 1 << 18}} {
		g := tensor.NewGraph()
		g.Output("y", g.Input("x", ir.F32, shape...).Softmax(-1))
		r := newRig(t, g, nil, nil)
		s := r.plan(hopper(t))
		if len(s.Launches) != 2 {
			t.Errorf("%v: %d launches, want the parts and what is made of them\n%s", shape, len(s.Launches), s)
		}
		parts := int64(1)
		for _, r := range s.Launches[0].Kernels[0].AST.Src[0].Ranges() {
			n, _ := r.Src[0].Int()
			parts *= n
		}
		if parts < 16*int64(shape[0]) {
			t.Errorf("%v: %d parts\n%s", shape, parts, s)
		}
		r.check(s, interp.KernelOptions{}, 2e-5)
	}
}

// Long products of few results are parts, whole tiles of each, that are added up: of sums of sums, which go on inside
// of a part, by equal numbers of points; of others with what is left over in a part of its own, or where they are added
// up. Products of many results, or short ones, are whole; so is every one where the target has no matrix instructions.
func TestLongProductsAreParts(t *testing.T) {
	opt := schedule.DefaultOptions()
	opt.Profile.MatrixTokens, opt.Profile.Workers, opt.Profile.LaunchEdge = 8, 8, 1<<10
	product := func(m, k, n int) func(g *tensor.Graph) *tensor.Tensor {
		return func(g *tensor.Graph) *tensor.Tensor {
			return g.Input("x", ir.F32, m, k).MatMul(g.Input("w", ir.F32, k, n))
		}
	}
	weights := func(n, side int) func(g *tensor.Graph) *tensor.Tensor {
		return func(g *tensor.Graph) *tensor.Tensor {
			x, w, dy := g.Input("x", ir.F32, n, 11, side, side), g.Input("w", ir.F32, 9, 11, 1, 1), g.Input("dy", ir.F32, n, 9, side, side)
			return grad.Of([]*tensor.Tensor{x.Conv(w, nil)}, []*tensor.Tensor{dy}, []*tensor.Tensor{w})[0]
		}
	}
	for _, c := range []struct {
		name    string
		build   func(g *tensor.Graph) *tensor.Tensor
		kernels int
	}{
		{"equal parts", product(9, 768, 10), 2},
		{"one point left over", product(9, 769, 10), 2},
		{"a part of what is left over", product(9, 1100, 10), 3},
		{"short", product(9, 500, 10), 1},
		{"many results", product(9, 768, 64*8), 1},
		{"few rows, by points", product(4, 768, 10), 2},
		{"sums of sums", weights(4, 20), 2},
		{"sums of sums in a prime number", weights(3, 20), 2},
		{"two of them", func(g *tensor.Graph) *tensor.Tensor { return product(9, 768, 10)(g).Add(weights(4, 20)(g).Sum()) }, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := tensor.NewGraph()
			g.Output("y", c.build(g))
			r := newRig(t, g, nil, nil)
			s := r.plan(opt)
			if kernelCount(s) != c.kernels {
				t.Errorf("%d kernels, want %d\n%s", kernelCount(s), c.kernels, s)
			}
			r.check(s, interp.KernelOptions{}, 2e-5)
			if whole := r.plan(schedule.DefaultOptions()); c.name == "equal parts" && kernelCount(whole) != 1 {
				t.Errorf("without matrix instructions\n%s", whole)
			}
		})
	}
}
