package schedule_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	_ "tgc/internal/rarecollection"
	_ "tgc/internal/steadyseed"
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
	switch m.int(0, 21, "op") {
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
			centred := x.Sub(x.MeanKeep(k))
			m.add(centred.Mul(centred).MeanKeep(k).AddScalar(0.1).Rsqrt().Mul(centred))
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
			m.add(a.MulScalar(2))
			m.add(b.Neg())
		}
	case 16:
		if rank > 0 {
			m.add(x.Gather(axis(), m.g.Input("ints", ir.I32, m.int(1, 3, "indices"))))
		}
	case 17:
		if rank > 0 {
			m.add(x.Cumsum(axis()))
		}
	case 18:
		m.add(m.attend())
	case 19:
		w := m.g.Packed("w", []string{"Q8_0", "Q4_0", "Q4_1"}[m.int(0, 2, "format")], m.int(1, 4, "rows"), 64)
		in := m.g.Input("x64", ir.F32, 64)
		if rapid.Bool().Draw(m.t, "norm") {
			in = normalised(in)
		}
		m.add(in.Linear(w))
	case 20:
		if rank > 0 {
			m.assign(x)
		}
	case 21:
		if rank > 0 {
			m.add(x.Cast(ir.F16).Cast(ir.F32))
		}
	case 15:
		if rank > 0 && rank < 4 {
			m.add(x.Sub(x.MeanKeep(axis())))
		}
	}
}

// attend is attention of a row over a symbolic number of cache rows.
func (m *graphMaker) attend() *tensor.Tensor {
	d := m.int(1, 4, "d")
	zero := m.g.Dims(0)[0]
	n := m.g.Var("length", 1, 8)
	rows := func(name string) *tensor.Tensor { return m.g.Input(name, ir.F32, 8, d).Slice(0, zero, n) }
	q := m.g.Input("q", ir.F32, d)
	s := rows("k").Mul(q).Sum(-1).MulScalar(0.3)
	if rapid.Bool().Draw(m.t, "mask") {
		last := m.g.Iota(ir.I32, n).Le(m.g.Scalar(ir.I32, 2))
		s = last.Where(s, m.g.Scalar(ir.F32, math.Inf(-1)))
	}
	return s.Softmax(0).Unsqueeze(-1).Mul(rows("v")).Sum(0)
}

// assign writes x into rows of a larger buffer, perhaps with what was there.
func (m *graphMaker) assign(x *tensor.Tensor) {
	shape := make([]int, x.Rank())
	for i := range shape {
		shape[i] = x.Extent(i)
	}
	rows := shape[0]
	shape[0] += m.int(0, 2, "more")
	state := m.g.Input("state", ir.F32, shape...)
	if rapid.Bool().Draw(m.t, "old") {
		m.add(state)
	}
	offset := m.int(0, shape[0]-rows, "offset")
	if rapid.Bool().Draw(m.t, "update") {
		from := m.int(0, shape[0]-rows, "from")
		x = x.Add(state.SliceInts(0, from, rows))
	}
	coords := make([]*tensor.Tensor, len(shape))
	for i := range coords {
		dims := make([]int, len(shape))
		for k := range dims {
			dims[k] = 1
		}
		dims[i] = x.Extent(i)
		coords[i] = m.g.Iota(ir.I32, m.g.Dims(x.Extent(i))[0]).Reshape(dims...)
	}
	coords[0] = coords[0].Add(m.g.Scalar(ir.I32, float64(offset)))
	next := state.AssignAt(x, coords...)
	m.g.Keep(next)
	m.add(next)
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

// drawRules draws rules to switch off.
func drawRules(t *rapid.T) (off schedule.RuleSet) {
	bits := rapid.Uint64().Draw(t, "rules off")
	for i, r := range schedule.Rules() {
		if bits>>i&1 == 1 {
			off = off.With(r)
		}
	}
	return off
}

// Every subset of the rules gives the values of the unfused graph, in float64
// to the rounding of the largest intermediate value.
func TestRandomGraphs(t *testing.T) {
	fired := make(map[string]int)
	defer func() {
		for _, r := range schedule.Rules() {
			t.Logf("%s fired %d times", r, fired[string(r)])
		}
	}()
	rapid.Check(t, func(rt *rapid.T) {
		g := randomGraph(rt)
		if g.Err() != nil {
			rt.Fatalf("%v", g.Err())
		}
		r := newRig(t, g, map[string]int64{"length": rapid.Int64Range(1, 8).Draw(rt, "length")}, map[string][]int64{"ints": {2, -1, 9}})
		hazards := false
		r.fail = func(format string, args ...any) {
			if text := fmt.Sprintf(format, args...); strings.Contains(text, "hazard") {
				hazards = true
			} else {
				rt.Fatal(text)
			}
		}
		plain := r.plan(plainOptions())
		if hazards {
			return // reads a version that was overwritten: an error in every setting
		}
		r.fail = rt.Fatalf
		want, _ := r.run(plain, interp.KernelOptions{})
		for id, array := range r.reference() {
			for i, w := range array.Data {
				if g := want[id].Data[i]; !(math.Abs(g.F-w.F) <= 1e-6*r.largest) && !math.IsNaN(w.F) {
					rt.Fatalf("unfused: buffer %d element %d is %v, want %v\n%s", id, i, g.F, w.F, plain)
				}
			}
		}
		want, _ = r.run(plain, interp.KernelOptions{Float64: true})
		opt := schedule.DefaultOptions()
		opt.Profile.MinBlocks = 1
		opt.Off = nil
		if n := rapid.Int64Range(1, 5).Draw(rt, "splits"); n > 1 {
			opt = splitOptions(n)
			opt.Off, opt.Profile.MinBlocks = nil, 1
		}
		r.reverse = true
		if rapid.Bool().Draw(rt, "subset") {
			opt.Off = drawRules(rt)
		}
		fused := r.plan(opt)
		for _, record := range fused.Records {
			fired[record.Pass]++
		}
		got, _ := r.run(fused, interp.KernelOptions{Float64: true})
		limit := 1e-9 * r.largest
		for id := range want {
			for i := range want[id].Data {
				w, v := want[id].Data[i].F, got[id].Data[i].F
				if math.IsNaN(w) || w == v {
					continue
				}
				if d := math.Abs(w - v); !(d <= limit) {
					rt.Fatalf("without %s: buffer %d element %d is %v, want %v (largest value %g)\nplain:\n%s\nfused:\n%s", opt.Off, id, i, v, w, r.largest, plain, fused)
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
