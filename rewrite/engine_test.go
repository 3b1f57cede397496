package rewrite

import (
	"errors"
	"strings"
	"testing"

	"tgc/ir"
)

// There and back: two rules that undo each other.
func TestCycleNamesItsRules(t *testing.T) {
	x, y := Any("x", Floats), Any("y", Floats)
	set := NewSet("bad", "undoes itself", Measure{},
		Rule{Name: "there", Doc: "x + y = x - (-y).", From: add(x, y), To: sub(x, neg(y))},
		Rule{Name: "back", Doc: "x - y = x + (-y).", From: sub(x, y), To: add(x, neg(y))},
	)
	a := ir.NewArena()
	arg := a.Make(ir.OpArg, ir.F32, ir.IntArg(0))
	_, _, err := Apply(a, a.Add(arg, arg), set)
	var cycle *CycleError
	if !errors.As(err, &cycle) || len(cycle.Rules) != 2 || !strings.Contains(err.Error(), "bad/back, bad/there") {
		t.Fatalf("got %v, want a cycle of bad/back and bad/there", err)
	}
}

// The engine must not recurse: a chain of 200,000 nodes.
func TestDeepGraph(t *testing.T) {
	a := ir.NewArena()
	x := a.Make(ir.OpArg, ir.F32, ir.IntArg(0))
	one := a.Const(ir.F32, 1)
	u := x
	for range 100_000 {
		u = a.Mul(a.Unary(ir.OpExp2, u), one)
	}
	e := NewEngine(a, Sets()...)
	out, err := e.Do(u)
	if err != nil || out.Op != ir.OpExp2 {
		t.Fatalf("got %v, %v", out, err)
	}
	if n := e.Fired(); len(n) != 1 || n[0].N != 100_000 {
		t.Fatalf("fired %v", n)
	}
}

func TestTraceSeesEveryFiring(t *testing.T) {
	a := ir.NewArena()
	x := a.Make(ir.OpArg, ir.F32, ir.IntArg(0))
	e := NewEngine(a, Sets()...)
	var trace []string
	e.Trace = func(f Firing) { trace = append(trace, f.Rule.String()) }
	if _, err := e.Do(a.Binary(ir.OpSub, a.Mul(a.Const(ir.F32, 1), x), a.Const(ir.F32, 3))); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(trace, " "); got != "order/commute float/mul-one float/sub-const fold/constants" {
		t.Fatalf("got %s", got)
	}
}

// RANGE nodes are identities of loops: they stay even when only one iteration
// is left, and their extents are not touched.
func TestRangesStay(t *testing.T) {
	a := ir.NewArena()
	extent := a.Make(ir.OpAdd, ir.Idx, nil, a.Index(3), a.Index(4))
	r := a.Range(0, extent)
	if got := Simplify(a, r); got != r {
		t.Fatalf("a RANGE became %s", ir.Text(got))
	}
	single := a.Range(1, a.Index(1))
	if got := Simplify(a, a.Add(a.Mul(single, a.Index(5)), a.Index(2))); !got.IsInt(2) {
		t.Fatalf("5*r + 2 with one iteration is %s, want 2", ir.Text(got))
	}
}

// BenchmarkSimplify reports nanoseconds per node of a reshape chain as
// rangeify makes them.
func BenchmarkSimplify(b *testing.B) {
	nodes := 0
	for b.Loop() {
		a := ir.NewArena()
		s := NewSimplifier(a)
		k := a.Range(0, a.Index(2048))
		n := a.Range(1, a.Index(4096))
		for i := range int64(200) {
			flat := a.Add(a.Mul(n, a.Index(2048)), a.Add(k, a.Index(i)))
			row, col := a.Div(flat, a.Index(64)), a.Mod(flat, a.Index(64))
			s.Do(a.Add(a.Mul(a.Mod(row, a.Index(32)), a.Index(64)), a.Add(col, a.Div(row, a.Index(32)))))
		}
		nodes += a.Len()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(nodes), "ns/node")
}
