package schedule_test

import (
	"context"
	"math"
	"testing"

	"pgregory.net/rapid"

	"tgc/ir"
	"tgc/runtime/interp"
	"tgc/schedule"
	"tgc/tensor"
)

// graphMaker draws random small tensor graphs.
type graphMaker struct {
	t    *rapid.T
	g    *tensor.Graph
	pool []*tensor.Tensor
}

func (m *graphMaker) int(lo, hi int, label string) int {
	return rapid.IntRange(lo, hi).Draw(m.t, label)
}

func (m *graphMaker) pick(label string) *tensor.Tensor {
	return m.pool[m.int(0, len(m.pool)-1, label)]
}

func (m *graphMaker) add(x *tensor.Tensor) {
	n := 1
	for i := range x.Rank() {
		n *= x.Extent(i)
	}
	if x.Rank() <= 4 && n <= 256 {
		m.pool = append(m.pool, x)
	}
}

// step adds one random tensor.
func (m *graphMaker) step() {
	x := m.pick("x")
	rank := x.Rank()
	axis := func() int { return m.int(0, rank-1, "axis") }
	switch m.int(0, 15, "op") {
	case 0, 1:
		if y := m.broadcastable(x); y != nil {
			m.add([]func(*tensor.Tensor) *tensor.Tensor{x.Add, x.Sub, x.Mul, x.Maximum}[m.int(0, 3, "binary")](y))
		}
	case 2:
		m.add([]func() *tensor.Tensor{x.Neg, x.Abs, x.Sigmoid, x.Sin}[m.int(0, 3, "unary")]())
	case 3, 4:
		if rank > 0 {
			m.add(x.SumKeep(axis()))
		}
	case 5:
		if rank > 0 {
			m.add(x.Max(axis()))
		}
	case 6:
		if rank > 0 {
			m.add(x.Softmax(axis()))
		}
	case 7:
		if rank > 0 {
			k := axis()
			scale := x.Mul(x).MeanKeep(k).AddScalar(0.1).Rsqrt()
			m.add(x.Mul(scale))
		}
	case 8:
		if rank > 1 {
			m.add(x.Transpose(0, rank-1))
		}
	case 9:
		if rank > 1 {
			n := x.Extent(0) * x.Extent(1)
			shape := []int{n}
			for i := 2; i < rank; i++ {
				shape = append(shape, x.Extent(i))
			}
			m.add(x.Reshape(shape...))
		}
	case 10:
		if rank > 0 {
			k := axis()
			n := x.Extent(k)
			lo := m.int(0, n-1, "lo")
			m.add(x.SliceInts(k, lo, m.int(1, n-lo, "len")))
		}
	case 11:
		if rank > 0 {
			m.add(x.Pad(axis(), m.int(0, 1, "before"), m.int(0, 2, "after")))
		}
	case 12:
		if rank > 0 {
			m.add(x.Flip(axis()))
		}
	case 13:
		if rank > 0 {
			w := m.g.Input("w", ir.F32, m.int(1, 4, "rows"), x.Extent(-1))
			m.add(x.Linear(w))
		}
	case 14:
		if rank > 0 && x.Extent(-1)%2 == 0 {
			n := x.Extent(-1) / 2
			a, b := x.SliceInts(-1, 0, n), x.SliceInts(-1, n, n)
			m.add(a.Sub(b).Cat(-1, a.Add(b)))
		}
	case 15:
		if rank > 0 && rank < 4 {
			m.add(x.Sub(x.MeanKeep(axis())))
		}
	}
}

// broadcastable finds a tensor that joins x.
func (m *graphMaker) broadcastable(x *tensor.Tensor) *tensor.Tensor {
	for range 4 {
		y := m.pick("y")
		ok := y.Rank() <= x.Rank()
		for i := 1; ok && i <= y.Rank(); i++ {
			a, b := x.Extent(-i), y.Extent(-i)
			ok = a == b || a == 1 || b == 1
		}
		if ok {
			return y
		}
	}
	return nil
}

func randomGraph(t *rapid.T) *tensor.Graph {
	m := &graphMaker{t: t, g: tensor.NewGraph()}
	for range m.int(1, 3, "inputs") {
		shape := make([]int, m.int(1, 3, "rank"))
		for i := range shape {
			shape[i] = m.int(1, 6, "extent")
		}
		m.add(m.g.Input("in", ir.F32, shape...))
	}
	for range m.int(2, 12, "steps") {
		m.step()
	}
	m.g.Output("last", m.pool[len(m.pool)-1])
	if rapid.Bool().Draw(t, "two") {
		m.g.Output("other", m.pick("output"))
	}
	return m.g
}

// Every subset of the rules gives the values of the unfused graph, in float64
// to the rounding of the largest intermediate value.
func TestRandomGraphs(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		g := randomGraph(rt)
		if g.Err() != nil {
			rt.Fatalf("%v", g.Err())
		}
		r := newRig(t, g, nil, nil)
		r.fail = rt.Fatalf
		plain := r.plan(plainOptions())
		want, _ := r.run(plain, interp.KernelOptions{Float64: true})
		opt := schedule.DefaultOptions()
		opt.Profile.MinBlocks = 1
		opt.Rules = schedule.AllRules
		if rapid.Bool().Draw(rt, "subset") {
			opt.Rules = schedule.RuleSet(rapid.Uint32().Draw(rt, "rules")) & schedule.AllRules
		}
		fused := r.plan(opt)
		got, _ := r.run(fused, interp.KernelOptions{Float64: true})
		limit := 1e-9 * r.largest
		for id := range want {
			for i := range want[id].Data {
				w, v := want[id].Data[i].F, got[id].Data[i].F
				if math.IsNaN(w) || w == v {
					continue
				}
				if d := math.Abs(w - v); !(d <= limit) {
					rt.Fatalf("rules %s: buffer %d element %d is %v, want %v (largest value %g)\nplain:\n%s\nfused:\n%s", opt.Rules, id, i, v, w, r.largest, plain, fused)
				}
			}
		}
	})
}

// Determinism: the same text twenty times.
func TestDeterministic(t *testing.T) {
	sink, err := llamaTiny().build().Sink()
	if err != nil {
		t.Fatal(err)
	}
	first := ""
	for i := range 20 {
		a := ir.NewArena()
		s, err := schedule.Run(context.Background(), a, a.Import(sink), schedule.DefaultOptions())
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = s.String()
		} else if s.String() != first {
			t.Fatalf("run %d differs:\n%s\nfirst:\n%s", i, s, first)
		}
	}
}
