package kernel_test

import (
	"strings"
	"testing"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/kernel/plan"
)

// Lanes of which only some are inside of a buffer are loaded one by one inside; all of a run
// that divides the buffer are brought there together, without a mask, and those of a run that
// lies before or past it as a whole read at its start, under masks that hold nowhere.
func TestLanesReachTheirBuffer(t *testing.T) {
	for _, c := range []struct {
		size, half    int64
		turned        bool
		guarded, back int // loads with masks, runs that are brought back
	}{
		{size: 64, half: 32},
		{size: 64, half: 16},
		{size: 62, half: 31, guarded: 2, back: 2},
		{size: 48, half: 11, guarded: 2, back: 1},
		{size: 62, half: 31, turned: true, guarded: 2, back: 2},
	} {
		b := newBuilder()
		x, out := b.param(0, ir.F32, c.size), b.param(1, ir.F32, c.size)
		loop := b.rng(c.size)
		i := loop
		if c.turned {
			i = b.Add(b.n(c.size-1), b.Mul(loop, b.n(-1)))
		}
		turned := b.Where(b.Lt(i, b.n(c.size-c.half)), b.Load(x, b.Add(i, b.n(c.half))), b.Load(x, b.Add(i, b.n(c.half-c.size))))
		sink := b.sink(b.Store(out, turned, list(loop), list(loop)))
		p := lowerText(t, b, sink, "VECTOR s0 16", avx512)
		compare(t, b.Arena, sink, p, plan.Plan{}, nil)
		text := program.Print(p)
		if n := strings.Count(text, "= guarded"); n != c.guarded {
			t.Errorf("%+v: %d loads with masks\n%s", c, n, text)
		}
		if n := strings.Count(text, ":i64 = where"); n != c.back {
			t.Errorf("%+v: %d runs brought back\n%s", c, n, text)
		}
	}
}

// Rows of 75 that were computed in rows of 64: the quotient and the rest of a position are
// that position again, also where the rest was reduced by multiples of 64, and where its
// position is one of groups.
func TestDigitsOfCongruentPositions(t *testing.T) {
	for name, rest := range map[string]func(b *builder, i, j *ir.UOp) *ir.UOp{
		"reduced": func(b *builder, i, j *ir.UOp) *ir.UOp { return b.Add(b.Mul(i, b.n(11)), j) },
		"of groups": func(b *builder, i, j *ir.UOp) *ir.UOp {
			at := b.Add(b.Mul(i, b.n(75)), j)
			return b.Add(b.Mul(b.Div(at, b.n(75)), b.n(11)), b.Mod(at, b.n(75)))
		},
	} {
		b := newBuilder()
		x, out := b.param(0, ir.F32, 5, 64), b.param(1, ir.F32, 4, 75)
		i, j := b.rng(4), b.rng(75)
		at := b.Add(b.Mul(i, b.n(75)), j)
		sink := b.sink(b.Store(out, b.Load(x, b.Div(at, b.n(64)), b.Mod(rest(b, i, j), b.n(64))), list(i, j), list(i, j)))
		p := lowerText(t, b, sink, "VECTOR s1 16", avx512)
		compare(t, b.Arena, sink, p, plan.Plan{}, nil)
		if text := program.Print(p); strings.Contains(text, "gather") {
			t.Errorf("%s: neighbours are gathered\n%s", name, text)
		}
	}
}

// Lanes along rows of an image that is wider than they are: at most two runs of neighbours, which
// are loaded as such; rows shorter than the lanes have more.
func TestLanesGoOnInTheNextRow(t *testing.T) {
	for _, c := range []struct {
		rows, length, width, step int64
		gather                    bool
	}{
		{rows: 5, length: 38, width: 40, step: 1},
		{rows: 7, length: 16, width: 19, step: 1},
		{rows: 3, length: 31, width: 64, step: 2},
		{rows: 9, length: 12, width: 14, step: 1, gather: true},
		{rows: 4, length: 21, width: 21, step: 1},
	} {
		b := newBuilder()
		n := c.rows * c.length
		x, out := b.param(0, ir.F32, 3, c.rows+1, c.width), b.param(1, ir.F32, 3, n)
		k, i := b.rng(3), b.rng(n)
		down := b.Add(b.Div(i, b.n(c.length)), b.Div(k, b.n(2)))
		along := b.Mul(b.n(c.step), b.Mod(i, b.n(c.length)))
		sink := b.sink(b.Store(out, b.Load(x, k, down, along), list(k, i), list(k, i)))
		p := lowerText(t, b, sink, "VECTOR s1 16", avx512)
		compare(t, b.Arena, sink, p, plan.Plan{}, nil)
		if text := program.Print(p); strings.Contains(text, "gather") != c.gather {
			t.Errorf("%+v:\n%s", c, text)
		}
	}
}
