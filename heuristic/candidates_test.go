package heuristic_test

import (
	"strings"
	"testing"

	"tgc/heuristic"
	"tgc/ir"
)

// What a sum needs besides its weight is computed once for a block or by each thread, unless
// something else makes the block wait: a norm's sum of all squares.
func TestStagesAreAChoice(t *testing.T) {
	desc := mustTarget(t, "ptx:sm_90a")
	scaled := func(b *builder, norm bool) *ir.UOp {
		const rows, k = 1024, 2048
		x, gain, out := b.param(0, ir.F32, k), b.param(3, ir.F32, k), b.param(2, ir.F32, rows)
		n, r := b.rng(rows), b.rng(k)
		value := b.sum(b.Mul(b.Mul(b.Load(x, r), b.Load(gain, r)), b.weight(1, "Q6_K", rows, k)(n, r)), r)
		if norm {
			value = b.Mul(b.rsqrtMean(x, k, b.rng(k)), value)
		}
		return b.sink(b.Store(out, value, list(n), list(n)))
	}
	for _, norm := range []bool{false, true} {
		b := newBuilder()
		candidates, err := heuristic.Candidates(b.Arena, scaled(b, norm), desc, heuristic.Knobs{})
		if err != nil {
			t.Fatal(err)
		}
		with, without := 0, 0
		for _, c := range candidates {
			if strings.Contains(c.Plan.String(), "STAGE") {
				with++
			} else {
				without++
			}
		}
		if with == 0 || norm != (without == 0) || !norm && with != without {
			t.Errorf("norm %v: %d candidates with a stage, %d without", norm, with, without)
		}
	}
}

// The blocks of a grid are counted as lowering makes them: groups of rows that do not divide
// an axis leave some of the last without rows.
func TestBlocksAreCounted(t *testing.T) {
	desc := mustTarget(t, "ptx:sm_90a")
	for _, rows := range []int64{1024, 72, 37} {
		b := newBuilder()
		candidates, err := heuristic.Candidates(b.Arena, b.matvec("Q8_0", rows, 1024, variant{}), desc, heuristic.Knobs{})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range candidates {
			f := c.Features
			if each := f["thread_rows"] * f["groups"] * f["turns"]; f["blocks"]*each < float64(rows) || (f["blocks"]-1)*each >= float64(rows) {
				t.Errorf("%d rows: %v blocks of %v: %s", rows, f["blocks"], each, c.Plan)
			}
		}
	}
}
