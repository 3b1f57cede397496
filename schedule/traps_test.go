package schedule_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"tgc/ir"
	"tgc/nn"
	"tgc/runtime/interp"
	"tgc/schedule"
	"tgc/tensor"
)

// Every trap is the smallest graph in which a plausible wording of a rule goes
// wrong, and what must hold instead. Values are always compared too.

// trap schedules a graph, checks its values and returns schedule and field
// reads.
func trap(t *testing.T, g *tensor.Graph, opt schedule.Options, ints map[string][]int64) (*schedule.Schedule, map[int64]map[string]int64) {
	t.Helper()
	r := newRig(t, g, nil, ints)
	s := r.plan(opt)
	return s, r.check(s, interp.KernelOptions{}, 3e-6)
}

func kernelCount(s *schedule.Schedule) int {
	n := 0
	for _, l := range s.Launches {
		n += len(l.Kernels)
	}
	return n
}

func wantKernels(t *testing.T, s *schedule.Schedule, want int) {
	t.Helper()
	if got := kernelCount(s); got != want {
		t.Errorf("%d kernels, want %d\n%s", got, want, s)
	}
}

func normalised(x *tensor.Tensor) *tensor.Tensor {
	return x.Mul(x.Mul(x).MeanKeep(-1).AddScalar(1e-5).Rsqrt())
}

// 1: a normalised row must be folded into its matvec, though it reads more
// bytes than it has.
func TestTrap01NormFolds(t *testing.T) {
	g := tensor.NewGraph()
	x := nn.RMSNorm(g.Input("x", ir.F32, 64), g.Input("g", ir.F32, 64), 1e-5)
	g.Output("y", x.Linear(g.Input("w", ir.F32, 80, 64)))
	s, _ := trap(t, g, schedule.DefaultOptions(), nil)
	wantKernels(t, s, 1)
}

// 2: an embedding row is decoded once, not once per output row.
func TestTrap02EmbeddingDecodedOnce(t *testing.T) {
	g := tensor.NewGraph()
	tokens := g.Input("tokens", ir.I32, 1)
	embed := g.Packed("embed", "Q6_K", 16, 256)
	x := nn.RMSNorm(embed.Gather(0, tokens), g.Input("g", ir.F32, 256), 1e-5)
	g.Output("y", x.Linear(g.Packed("w", "Q6_K", 32, 256)))
	s, reads := trap(t, g, schedule.DefaultOptions(), map[string][]int64{"tokens": {5}})
	wantKernels(t, s, 2)
	if n := reads[1]["ql"]; n != 256 {
		t.Errorf("%d reads of ql, want 256", n)
	}
}

// 3: look-through must not tear a shared value apart for a constant factor.
func TestTrap03ConstantFactor(t *testing.T) {
	g := tensor.NewGraph()
	p, onehot := g.Input("p", ir.F32, 64, 96), g.Input("onehot", ir.F32, 64, 96)
	d := p.Sub(onehot).MulScalar(1.0 / 64)
	x, w := g.Input("x", ir.F32, 64, 72), g.Input("w", ir.F32, 96, 72)
	g.Output("dw", d.Transpose(0, 1).MatMul(x))
	g.Output("dx", d.MatMul(w))
	s, _ := trap(t, g, schedule.DefaultOptions(), nil)
	wantKernels(t, s, 3)
}

// attention is a small softmax attention with everything in one head.
func attention(g *tensor.Graph, n, d int, exponent func(s, m *tensor.Tensor) *tensor.Tensor) *tensor.Tensor {
	q, k, v := g.Input("q", ir.F32, d), g.Input("k", ir.F32, n, d), g.Input("v", ir.F32, n, d)
	s := k.Mul(q).Sum(-1)
	e := exponent(s, s.MaxKeep(0))
	return e.Mul(e.SumKeep(0).Recip()).Unsqueeze(-1).Mul(v).Sum(0)
}

func softmaxExponent(s, m *tensor.Tensor) *tensor.Tensor { return s.Sub(m).Exp() }

// 4: without R2 the weight of the output holds the tuple's own sum.
func TestTrap04SelfContainedTuple(t *testing.T) {
	g := tensor.NewGraph()
	g.Output("o", attention(g, 6, 4, softmaxExponent))
	opt := schedule.DefaultOptions()
	opt.Off = opt.Off.With("hoist-factors")
	trap(t, g, opt, nil)
}

// 5: which exponents cascade.
func TestTrap05Exponents(t *testing.T) {
	for _, row := range []struct {
		name     string
		exponent func(s, m *tensor.Tensor) *tensor.Tensor
		tuple    bool
	}{
		{"(s-m)/2", func(s, m *tensor.Tensor) *tensor.Tensor { return s.Sub(m).MulScalar(0.5).Exp() }, true},
		{"m-s", func(s, m *tensor.Tensor) *tensor.Tensor { return m.Sub(s).MulScalar(0.1).Exp() }, false},
		{"s+m", func(s, m *tensor.Tensor) *tensor.Tensor { return s.Add(m).MulScalar(0.1).Exp() }, false},
		{"s-2m", func(s, m *tensor.Tensor) *tensor.Tensor { return s.Sub(m.MulScalar(2)).MulScalar(0.1).Exp() }, false},
		{"times s+m", func(s, m *tensor.Tensor) *tensor.Tensor { return s.Sub(m).Exp().Mul(s.Add(m)) }, false},
	} {
		g := tensor.NewGraph()
		g.Output("o", attention(g, 6, 4, row.exponent))
		s, _ := trap(t, g, schedule.DefaultOptions(), nil)
		if got := strings.Contains(s.String(), "TUPLE"); got != row.tuple {
			t.Errorf("%s: cascade %v, want %v\n%s", row.name, got, row.tuple, s)
		}
	}
}

// 6: a maximum over rows and a sum over columns have equal extents only.
func TestTrap06OtherAxis(t *testing.T) {
	g := tensor.NewGraph()
	x, y := g.Input("x", ir.F32, 8, 8), g.Input("y", ir.F32, 8, 8)
	g.Output("a", x.Sub(x.MaxKeep(0)).Exp().Sum(1))
	g.Output("b", x.Sub(y.MaxKeep(1)).Exp().Sum(1))
	s, _ := trap(t, g, schedule.DefaultOptions(), nil)
	if strings.Contains(s.String(), "TUPLE") {
		t.Errorf("cascade over another axis\n%s", s)
	}
}

// 7: the second LayerNorm of a block sums y = x + (at + b) in another order
// after expansion: sums are compared as multisets. Half a mean is no mean.
func TestTrap07Moments(t *testing.T) {
	for _, row := range []struct {
		share float64
		tuple bool
	}{{1, true}, {0.5, false}} {
		g := tensor.NewGraph()
		y := g.Input("x", ir.F32, 32).Add(g.Input("at", ir.F32, 32).Add(g.Input("b", ir.F32, 32)))
		c := y.Sub(y.MeanKeep(0).MulScalar(row.share))
		g.Output("r", c.Mul(c).MeanKeep(0).AddScalar(1e-5).Rsqrt().Mul(c))
		s, _ := trap(t, g, schedule.DefaultOptions(), nil)
		if got := strings.Contains(s.String(), "TUPLE"); got != row.tuple {
			t.Errorf("%g of the mean: tuple %v, want %v\n%s", row.share, got, row.tuple, s)
		}
	}
}

// Maximum and sum of one softmax, both stored, are two stores of one kernel.
func TestJoinedStores(t *testing.T) {
	g := tensor.NewGraph()
	x := g.Input("x", ir.F32, 6, 12)
	top := x.MaxKeep(1)
	g.Output("m", top.Reshape(6))
	g.Output("l", x.Sub(top).Exp().Sum(1))
	s, _ := trap(t, g, schedule.DefaultOptions(), nil)
	wantKernels(t, s, 1)
}

// 8: a reduce that contains another cannot share its loop.
func TestTrap08NestedSameExtent(t *testing.T) {
	g := tensor.NewGraph()
	x := g.Input("x", ir.F32, 32)
	a := x.Mul(x).SumKeep(0)
	d := x.Sub(a)
	g.Output("b", d.Mul(d).Mul(d).Sum(0))
	trap(t, g, schedule.DefaultOptions(), nil)
}

// 9: a matvec must not run inside another one's loop, even for one output row.
func TestTrap09MatvecInMatvec(t *testing.T) {
	g := tensor.NewGraph()
	h := g.Input("x", ir.F32, 64).Linear(g.Input("w1", ir.F32, 96, 64))
	g.Output("y", h.Linear(g.Input("w2", ir.F32, 1, 96).Pad(0, 0, 0)))
	g2 := tensor.NewGraph()
	h = g2.Input("x", ir.F32, 64).Linear(g2.Input("w1", ir.F32, 96, 64))
	g2.Output("y", h.Linear(g2.Input("w2", ir.F32, 48, 96).SliceInts(0, 1, 1)))
	s, _ := trap(t, g2, schedule.DefaultOptions(), nil)
	wantKernels(t, s, 2)
}

// 10: q + flip(q) reads every point twice: q is stored, weights are read once.
func TestTrap10Flip(t *testing.T) {
	g := tensor.NewGraph()
	q := g.Input("x", ir.F32, 512).Linear(g.Packed("w", "Q8_0", 256, 512))
	g.Output("y", q.Add(q.Flip(0)))
	s, reads := trap(t, g, schedule.DefaultOptions(), nil)
	wantKernels(t, s, 2)
	if n := reads[1]["qs"]; n != 256*512 {
		t.Errorf("%d reads of qs, want %d", n, 256*512)
	}
}

// 11: rotary halves written with a concatenation: tiles of two, dead arms left
// out, weights read once.
func TestTrap11RotaryHalves(t *testing.T) {
	for name, half := range map[string]func(q *tensor.Tensor) *tensor.Tensor{
		"halves": func(q *tensor.Tensor) *tensor.Tensor {
			return q.SliceInts(1, 8, 8).Neg().Cat(1, q.SliceInts(1, 0, 8))
		},
		"pairs": func(q *tensor.Tensor) *tensor.Tensor {
			q = q.Reshape(8, 8, 2)
			return q.SliceInts(2, 1, 1).Neg().Cat(2, q.SliceInts(2, 0, 1)).Reshape(8, 16)
		},
	} {
		g := tensor.NewGraph()
		q := g.Input("x", ir.F32, 64).Linear(g.Packed("w", "Q8_0", 128, 64)).Reshape(8, 16)
		cos, sin := g.Input("cos", ir.F32, 16), g.Input("sin", ir.F32, 16)
		g.Output("y", q.Mul(cos).Add(half(q).Mul(sin)))
		s, reads := trap(t, g, schedule.DefaultOptions(), nil)
		wantKernels(t, s, 1)
		if n := reads[1]["qs"]; n != 128*64 {
			t.Errorf("%s: %d reads of qs, want %d", name, n, 128*64)
		}
	}
}

// Pairs of several rows are tiles for as long as their weights are streamed: of floats that are used three
// times by matrix instructions they are not, without such instructions up to four times and more.
func TestRotaryPairsOfRows(t *testing.T) {
	matrices := hopper(t)
	matrices.Profile.MinBlocks = 1
	for _, c := range []struct {
		rows    int
		options schedule.Options
		kernels int
	}{{1, matrices, 1}, {2, matrices, 1}, {3, matrices, 2}, {4, matrices, 2}, {4, schedule.DefaultOptions(), 1}} {
		g := tensor.NewGraph()
		q := g.Input("x", ir.F32, c.rows, 64).Linear(g.Packed("w", "Q8_0", 128, 64)).Reshape(c.rows, 8, 8, 2)
		turned := q.SliceInts(3, 1, 1).Neg().Cat(3, q.SliceInts(3, 0, 1))
		g.Output("y", q.Mul(g.Input("cos", ir.F32, 8, 2)).Add(turned.Mul(g.Input("sin", ir.F32, 8, 2))))
		s, _ := trap(t, g, c.options, nil)
		if n := len(s.Launches); n != c.kernels {
			t.Errorf("%d rows: %d launches, want %d", c.rows, n, c.kernels)
		}
	}
}

// 12: halves and interleaved rows of one matrix, read once each.
func TestTrap12GateUp(t *testing.T) {
	for _, interleaved := range []bool{false, true} {
		g := tensor.NewGraph()
		h := g.Input("x", ir.F32, 64).Linear(g.Packed("w", "Q8_0", 96, 64))
		gate, up := h.SliceInts(0, 0, 48), h.SliceInts(0, 48, 48)
		if interleaved {
			pairs := h.Reshape(48, 2)
			gate, up = pairs.SliceInts(1, 0, 1).Reshape(48), pairs.SliceInts(1, 1, 1).Reshape(48)
		}
		g.Output("y", gate.Silu().Mul(up))
		s, reads := trap(t, g, schedule.DefaultOptions(), nil)
		wantKernels(t, s, 1)
		if n := reads[1]["qs"]; n != 96*64 {
			t.Errorf("%d reads of qs, want %d", n, 96*64)
		}
	}
}

// 13: a sum of the old contents must not move behind the assignment.
func TestTrap13VersionOrder(t *testing.T) {
	g := tensor.NewGraph()
	c, x := g.Input("c", ir.F32, 16), g.Input("x", ir.F32, 16)
	before := c.Sum(0)
	next := c.Assign(x)
	g.Keep(next)
	g.Output("y", before.Add(next.Sum(0)))
	trap(t, g, schedule.DefaultOptions(), nil)
}

// 14: assignments whose regions overlap go through a temporary; point by point
// they stay in place; a stale read is an error that names both versions.
func TestTrap14Assignments(t *testing.T) {
	shift := tensor.NewGraph()
	c := shift.Input("c", ir.F32, 9)
	coords := shift.Iota(ir.I32, shift.Dims(8)[0]).Add(shift.Scalar(ir.I32, 1))
	shift.Keep(c.AssignAt(c.SliceInts(0, 0, 8), coords))
	s, _ := trap(t, shift, schedule.DefaultOptions(), nil)
	wantKernels(t, s, 2)

	flip := tensor.NewGraph()
	c = flip.Input("c", ir.F32, 9)
	flip.Keep(c.Assign(c.Flip(0)))
	s, _ = trap(t, flip, schedule.DefaultOptions(), nil)
	wantKernels(t, s, 2)

	point := tensor.NewGraph()
	c = point.Input("c", ir.F32, 9)
	point.Keep(c.Assign(c.MulScalar(2).AddScalar(1)))
	s, _ = trap(t, point, schedule.DefaultOptions(), nil)
	wantKernels(t, s, 1)

	stale := tensor.NewGraph()
	c = stale.Input("c", ir.F32, 9)
	next := c.Assign(stale.Input("x", ir.F32, 9))
	stale.Keep(next)
	stale.Output("y", c.Mul(next.SumKeep(0)).Max(0))
	sink, err := stale.Sink()
	if err != nil {
		t.Fatal(err)
	}
	a := ir.NewArena()
	_, err = schedule.Run(context.Background(), a, a.Import(sink), schedule.DefaultOptions())
	if err == nil || !strings.Contains(err.Error(), "buffer0@0") || !strings.Contains(err.Error(), "buffer0@1") {
		t.Errorf("stale read: got error %v, want one that names buffer0@0 and buffer0@1", err)
	}
}

// 15: attention reads the row that a sibling of its launch writes: only by R0f,
// in the false arm of a test for that row. What the cache held there is never
// read, whichever kernel runs first.
func TestTrap15ForwardedRow(t *testing.T) {
	for position := range int64(llamaTiny().context) {
		m := zooModel("qwen3")
		g := m.build()
		r := modelRigOf(t, m, g, position)
		for _, b := range g.Buffers() {
			if strings.HasSuffix(b.Name, "c") && len(b.Shape) == 4 { // the caches
				spoilRows(r.buffers[b.ID], m, func(row int) bool { return row >= int(position) })
			}
		}
		s := r.plan(forwardOptions(1 << 20))
		if n := len(s.Launches[1].Kernels); n != 2 || !strings.Contains(s.String(), "==") {
			t.Fatalf("%d kernels with attention, want 2 with a test for the row\n%s", n, s)
		}
		r.check(s, interp.KernelOptions{}, 2e-5)
		r.reverse = true
		r.check(s, interp.KernelOptions{}, 2e-5)
	}
}

// spoilRows fills rows of a cache [B, KV, context, head] with NaN.
func spoilRows(b *interp.KernelBuffer, m arch, spoil func(row int) bool) {
	for i := range b.Data {
		if spoil(i / m.head % m.context) {
			b.Data[i].F = math.NaN()
		}
	}
}

// 16: rows past the last position may be NaN, and weight 0 times NaN is NaN: a
// chunk's values are gated to 0 and its score to the lowest number. Chunks that
// are masked whole, one chunk, and a cache of one row, too.
func TestTrap16GateOfChunks(t *testing.T) {
	for _, edit := range []func(*arch){func(*arch) {}, func(m *arch) { m.batch, m.tokens = 2, 3 }} {
		m := llamaTiny()
		edit(&m)
		for position := range int64(m.context - m.tokens + 1) {
			for _, splits := range []int64{2, 4} {
				g := m.build()
				r := modelRigOf(t, m, g, position)
				for _, b := range g.Buffers() {
					if strings.HasSuffix(b.Name, "c") && len(b.Shape) == 4 {
						spoilRows(r.buffers[b.ID], m, func(row int) bool { return row >= int(position) })
					}
				}
				opt := cacheSplit(true)
				opt.Profile.Parallel, opt.Profile.GridSplits = 64, splits
				s := r.plan(opt)
				if !strings.Contains(s.String(), "cascade3") {
					t.Fatalf("attention is not split\n%s", s)
				}
				got, _ := r.run(s, interp.KernelOptions{})
				for id, b := range got {
					for i, v := range b.Data {
						if shape := g.Buffers()[id].Shape; len(shape) != 4 && math.IsNaN(v.F) {
							t.Fatalf("position %d: buffer %d element %d is NaN\n%s", position, id, i, s)
						}
					}
				}
				r.check(s, interp.KernelOptions{}, 2e-5)
			}
		}
	}
}

// 17: masked prefixes, and a row that is masked whole.
func TestTrap17Masks(t *testing.T) {
	for _, masked := range []int{0, 3, 6} {
		g := tensor.NewGraph()
		o := attention(g, 6, 4, func(s, _ *tensor.Tensor) *tensor.Tensor {
			keep := g.Scalar(ir.I32, float64(masked)).Le(g.Iota(ir.I32, g.Dims(6)[0]))
			s = keep.Where(s, g.Scalar(ir.F32, math.Inf(-1)))
			return s.Sub(s.MaxKeep(0)).Exp()
		})
		g.Output("o", o)
		trap(t, g, schedule.DefaultOptions(), nil)
	}
}

// The minimums of a packed row have no factor at all points of their sum.
func TestSumOfWeights(t *testing.T) {
	for _, format := range []string{"Q4_K", "Q4_1", "Q2_K", "Q6_K", "Q8_0"} {
		g := tensor.NewGraph()
		g.Output("y", g.Packed("w", format, 3, 512).Sum(1))
		trap(t, g, schedule.DefaultOptions(), nil)
	}
}

// A sum of what does not depend on its range counts the points in its own type.
func TestSumOfConstantsKeepsItsType(t *testing.T) {
	for _, dtype := range []ir.DType{ir.F32, ir.F64, ir.F16} {
		g := tensor.NewGraph()
		g.Output("y", g.Input("x", dtype, 1, 3).Expand(40, 3).Sum(0))
		trap(t, g, schedule.DefaultOptions(), nil)
	}
}
