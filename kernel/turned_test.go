package kernel_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/kernel"
	"tgc/kernel/plan"
)

// scaledRows stores x[i,j] times i + 1, which lies in lanes of i where these are, in a row of each i.
func scaledRows(b *builder, rows, columns int64, dtype ir.DType) *ir.UOp {
	x, y := b.param(0, dtype, columns, rows), b.param(1, dtype, rows, columns)
	i, j := b.rng(rows), b.rng(columns)
	v := b.Mul(b.Load(x, j, i), b.Cast(b.Add(i, b.n(1)), dtype))
	return b.sink(b.Store(y, v, list(i, j), list(i, j)))
}

// Copies side by side of lanes far apart are turned by shuffles: no lane is stored by itself, whether all lanes have a
// point or not.
func TestTurnedStores(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := newBuilder()
		rows, columns := int64(rapid.IntRange(2, 40).Draw(rt, "rows")), int64(rapid.IntRange(4, 40).Draw(rt, "columns"))
		dtype := rapid.SampledFrom([]ir.DType{ir.F32, ir.F16, ir.F64, ir.I32}).Draw(rt, "type")
		sink := scaledRows(b, rows, columns, dtype)
		lanes, copies := rapid.SampledFrom([]int64{2, 3, 4, 8, 16}).Draw(rt, "lanes"), rapid.SampledFrom([]int64{2, 4, 6, 8, 16, 24}).Draw(rt, "copies")
		chosen, err := plan.Parse(fmt.Sprintf("VECTOR s0 %d; UPCAST s1 %d", lanes, copies))
		if err != nil {
			rt.Fatal(err)
		}
		if lanes >= 2*rows || copies >= 2*columns || kernel.Feasible(b.Arena, sink, chosen, avx512) != nil {
			return
		}
		p, err := kernel.Lower(b.Arena, sink, chosen, avx512)
		if err != nil {
			rt.Fatalf("%s: %v", chosen, err)
		}
		compare(rt, b.Arena, sink, p, chosen, nil)
	})
	for _, c := range []struct {
		rows, columns int64
		plan          string
		stores        int
	}{
		{32, 32, "VECTOR s0 16; UPCAST s1 16", 16},
		{32, 64, "VECTOR s0 16; UPCAST s1 32", 32},
		{32, 8, "VECTOR s0 8; UPCAST s1 8", 8},
		{37, 16, "VECTOR s0 16; UPCAST s1 16", 16}, // the last vector begins earlier
	} {
		b := newBuilder()
		sink := scaledRows(b, c.rows, c.columns, ir.F32)
		chosen, err := plan.Parse(c.plan)
		if err != nil {
			t.Fatal(err)
		}
		p, err := kernel.Lower(b.Arena, sink, chosen, avx512)
		if err != nil {
			t.Fatal(err)
		}
		text := program.Print(p)
		if n := strings.Count(text, "store %"); n != c.stores || strings.Contains(text, "scatter") {
			t.Errorf("%d x %d, %s: %d stores, want %d and no scatter:\n%s", c.rows, c.columns, c.plan, n, c.stores, show(p))
		}
	}
}
