package heuristic_test

import (
	"strings"
	"testing"

	"tgc/heuristic"
	"tgc/ir"
)

// Rows shorter than registers have lanes of several: beside one another where each goes on in the next, else picked out
// of what lies between, and folds of a few registers run side by side.
func TestShortRows(t *testing.T) {
	desc := mustTarget(t, "llvm:x86-64-v4")
	scaled := func(b *builder, rows, n int64) *ir.UOp {
		i, j := b.rng(rows), b.rng(n)
		value := b.Mul(b.Load(b.param(0, ir.F32, rows, n), i, j), b.Load(b.param(1, ir.F32, rows), i))
		return b.sink(b.Store(b.param(2, ir.F32, rows, n), value, list(i, j), list(i, j)))
	}
	cut := func(b *builder, rows, n int64) *ir.UOp { // three of four
		i, j := b.rng(rows), b.rng(n)
		return b.sink(b.Store(b.param(1, ir.F32, rows, n), b.Load(b.param(0, ir.F32, rows, n+1), i, j), list(i, j), list(i, j)))
	}
	columns := func(b *builder, rows, n int64) *ir.UOp {
		j, r := b.rng(n), b.rng(rows)
		return b.sink(b.Store(b.param(1, ir.F32, n), b.sum(b.Load(b.param(0, ir.F32, rows, n), r, j), r), list(j), list(j)))
	}
	for _, c := range []struct {
		name    string
		build   func(b *builder, rows, n int64) *ir.UOp
		rows, n int64
		want    string
	}{
		{"scaled rows of 3", scaled, 1003, 3, "VECTOR s0 16; VECTOR s1 3; FMA"},
		{"scaled rows of 6", scaled, 1003, 6, "VECTOR s0 8; VECTOR s1 6; FMA"},
		{"scaled rows of 16", scaled, 1003, 16, "VECTOR s1 16; FMA"},
		{"scaled rows of 17", scaled, 1003, 17, "VECTOR s1 16; ROLL s1 2"},
		{"rows of 3 that do not go on", cut, 1003, 3, ""},
		{"sums of 3 columns", columns, 1003, 3, "VECTOR r0 16; VECTOR s0 3; UNROLL r0 4"},
		{"sums of 12 columns", columns, 1003, 12, "VECTOR r0 4; VECTOR s0 12; UNROLL r0 4"},
		{"sums of rows of 3", (*builder).rowSums, 1003, 3, "VECTOR s0 32; UNROLL r0 3"},
		{"sums of rows of 5", (*builder).rowSums, 1003, 5, "VECTOR r0 5"},
		{"sums of rows of 35", (*builder).rowSums, 1003, 35, "VECTOR r0 16; UPCAST s0 4"},
		{"sums of rows of 350", (*builder).rowSums, 1003, 350, "VECTOR r0 16; UNROLL r0 2; FMA"},
		{"sums of rows of 96", (*builder).rowSums, 1003, 96, "VECTOR r0 16; UNROLL r0 2; UPCAST s0 2"},
		{"sums of rows of 1024", (*builder).rowSums, 1003, 1024, "VECTOR r0 16; UNROLL r0 4; FMA"},
	} {
		b := &builder{Arena: ir.NewArena()}
		sink := c.build(b, c.rows, c.n)
		plan := choose(t, b, sink, desc, heuristic.Knobs{}).Plan
		if !strings.Contains(plan.String(), c.want) || c.want == "" && len(plan.Opts) > 0 {
			t.Errorf("%s: plan %s, want %s in it", c.name, plan, c.want)
		}
		checkPlan(t, b.Arena, sink, plan, desc, nil)
	}
}

// Results that fold the same lanes, each by factors of its own, are made together, a tile of two sums with half as many rows.
func TestResultsShareLanes(t *testing.T) {
	desc := mustTarget(t, "llvm:x86-64-v4")
	transform := func(b *builder, sums int) *ir.UOp {
		i, j, r := b.rng(32), b.rng(128), b.rng(32)
		factors := make([]float64, 32*32)
		for k := range factors {
			factors[k] = float64(k%7) - 3
		}
		table := b.Make(ir.OpTable, ir.F32, ir.TableArg{Data: ir.EncodeTable(ir.F32, factors)}, b.Index(32), b.Index(32))
		value := b.f(0)
		for n := range sums {
			x := b.Load(b.param(n, ir.F32, 32, 128), r, j)
			value = b.Binary(ir.OpSub, b.sum(b.Mul(x, b.Load(table, i, r)), r), value)
		}
		return b.sink(b.Store(b.param(20, ir.F32, 32, 128), value, list(i, j), list(i, j)))
	}
	for sums, want := range map[int]string{1: "UPCAST s0 16; UNROLL r0 4", 2: "UPCAST s0 8; UNROLL r0 8"} {
		b := &builder{Arena: ir.NewArena()}
		sink := transform(b, sums)
		plan := choose(t, b, sink, desc, heuristic.Knobs{}).Plan
		if !strings.Contains(plan.String(), want) {
			t.Errorf("%d sums: plan %s, want %s in it", sums, plan, want)
		}
		checkPlan(t, b.Arena, sink, plan, desc, nil)
	}
}
