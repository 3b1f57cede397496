package kernel_test

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/kernel"
	"tgc/kernel/plan"
	"tgc/runtime/interp"
	"tgc/target"
)

// masked is out[h,q,d] = a reduce over n of what a condition on q and n leaves: of a
// softmax of scores x[q,n] the weighted sum of v[n,d], or the sum or the largest of
// x[q,n]*v[n,d]. start is an i32 buffer of one element.
func masked(b *builder, what string, queries, length, dim int64, cond func(q, n, start *ir.UOp) *ir.UOp) *ir.UOp {
	x, v := b.param(0, ir.F32, queries, length), b.param(1, ir.F32, length, dim)
	start, out := b.param(2, ir.I32, 1), b.param(3, ir.F32, queries, dim)
	q, d, n := b.rng(queries), b.rng(dim), b.rng(length)
	seen := cond(b.Cast(q, ir.I32), b.Cast(n, ir.I32), b.Load(start, b.n(0)))
	value := b.Mul(b.Load(x, q, n), b.Load(v, n, d))
	switch what {
	case "sum":
		value = b.sum(b.Where(seen, value, b.f(0)), n)
	case "max":
		value = b.Reduce(ir.OpMax, b.Where(seen, value, b.f(math.Inf(-1))), n)
	default:
		score := b.Where(seen, b.Load(x, q, n), b.f(math.Inf(-1)))
		values := []*ir.UOp{score, b.f(1), b.Load(v, n, d)}
		tuple := b.Fold(ir.Softmax(b.f(math.Log2E)), values, n)
		value = b.Mul(b.Unary(ir.OpRecip, b.Proj(tuple, 1)), b.Proj(tuple, 2))
	}
	return b.sink(b.Store(out, value, list(q, d), list(q, d)))
}

func (b *builder) i(v int64) *ir.UOp             { return b.ConstInt(ir.I32, v) }
func (b *builder) not(x *ir.UOp) *ir.UOp         { return b.Unary(ir.OpNot, x) }
func (b *builder) or(x, y *ir.UOp) *ir.UOp       { return b.Binary(ir.OpOr, x, y) }
func (b *builder) notAfter(x, y *ir.UOp) *ir.UOp { return b.not(b.Lt(y, x)) }

// limitCases are conditions, and whether the loop over n ends behind the last
// point that they leave.
var limitCases = []struct {
	name string
	ends bool
	cond func(b *builder, q, n, start *ir.UOp) *ir.UOp
}{
	{"causal", true, func(b *builder, q, n, start *ir.UOp) *ir.UOp { return b.notAfter(n, b.Add(q, start)) }},
	{"before", true, func(b *builder, q, n, start *ir.UOp) *ir.UOp { return b.Lt(n, b.Add(q, b.i(1))) }},
	{"window", true, func(b *builder, q, n, start *ir.UOp) *ir.UOp {
		return b.And(b.notAfter(n, b.Add(q, start)), b.Lt(b.Sub(q, b.i(5)), n))
	}},
	{"either", true, func(b *builder, q, n, start *ir.UOp) *ir.UOp {
		return b.or(b.Lt(n, q), b.Lt(b.Add(n, b.i(3)), b.Add(start, q)))
	}},
	{"steps", true, func(b *builder, q, n, start *ir.UOp) *ir.UOp {
		return b.Lt(b.Mul(n, b.i(2)), b.Mul(b.Div(q, b.i(4)), b.i(16)))
	}},
	{"behind", false, func(b *builder, q, n, start *ir.UOp) *ir.UOp { return b.Lt(q, n) }},
	{"loaded", false, func(b *builder, q, n, start *ir.UOp) *ir.UOp { return b.Lt(n, start) }},
	{"one side", false, func(b *builder, q, n, start *ir.UOp) *ir.UOp { return b.or(b.Lt(n, q), b.Lt(start, n)) }},
	{"wraps", false, func(b *builder, q, n, start *ir.UOp) *ir.UOp {
		return b.Lt(b.Mul(n, b.i(1<<30)), b.Add(q, start))
	}},
}

var limitPlans = []struct {
	desc func(t fataler) *target.Desc
	text string
}{
	{func(fataler) *target.Desc { return avx512 }, ""},
	{func(fataler) *target.Desc { return avx512 }, "VECTOR s1 8; UNROLL r0 2"},
	{hopper, "WARP r0 4; LOCAL s1 8"},
	{hopper, "LOCAL s0 2; UPCAST s0 2; GROUP r0 2; UNROLL r0 2"},
	{hopper, "LOCAL s1 8; GROUP r0 2"},
}

// Loops end where only identities come: what lies there is not even read, so that
// its NaNs reach no result. A plain sum or maximum never shows them.
func TestLoopsEndAtMasks(t *testing.T) {
	const queries, length, dim, start = 8, 64, 8, 3
	for _, c := range limitCases {
		for _, pl := range limitPlans {
			t.Run(c.name+"/"+pl.text, func(t *testing.T) {
				b := newBuilder()
				sink := masked(b, "softmax", queries, length, dim, func(q, n, start *ir.UOp) *ir.UOp { return c.cond(b, q, n, start) })
				p := lowerText(t, b, sink, pl.text, pl.desc(t))
				x, v := ones(queries*length), ones(length*dim)
				for i := 48 * dim; i < len(v); i++ { // no condition of the table with an end leaves these
					v[i].F = math.NaN()
				}
				out := make([]byte, queries*dim*4)
				args := limitArgs(p, map[int][]byte{0: encode(ir.F32, x), 1: encode(ir.F32, v), 2: encode(ir.I32, []ir.Scalar{{I: start}}), 3: out})
				if err := interp.RunProgram(p, args, 0, p.Units()); err != nil {
					t.Fatal(err)
				}
				finite := !math.IsNaN(decode(ir.F32, out)[queries*dim-1].F)
				if finite != c.ends {
					t.Errorf("the last query is finite: %v, want %v\n%s", finite, c.ends, show(p))
				}
			})
		}
	}
}

func ones(n int) []ir.Scalar {
	out := make([]ir.Scalar, n)
	for i := range out {
		out[i].F = 1
	}
	return out
}

func lowerText(t testing.TB, b *builder, sink *ir.UOp, text string, desc *target.Desc) *program.Program {
	t.Helper()
	plan, err := plan.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	p, err := kernel.Lower(b.Arena, sink, plan, desc)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func limitArgs(p *program.Program, slots map[int][]byte) []interp.Arg {
	args := make([]interp.Arg, len(p.Params))
	for i, param := range p.Params {
		args[i].Bytes = slots[param.Slot]
	}
	return args
}

// Whatever the condition says, limits change no value: the kernel's own evaluator
// knows none.
func TestRandomMasks(t *testing.T) {
	plans := []string{"", "UNROLL r0 2", "VECTOR s1 4; UPCAST s0 2", "LOCAL s1 4; WARP r0 2", "LOCAL s0 2; GROUP r0 2", "GROUP r0 2; UPCAST s0 2",
		"UPCAST s0 4; WARP r0 2; GROUP r0 2", "ROLL s0 2; UNROLL r0 3", "ROLL s0; WARP r0 4; LOCAL s1 4"}
	rapid.Check(t, func(rt *rapid.T) {
		b := newBuilder()
		what := rapid.SampledFrom([]string{"sum", "max", "softmax"}).Draw(rt, "what")
		queries, length := int64(rapid.IntRange(1, 12).Draw(rt, "queries")), int64(rapid.IntRange(8, 48).Draw(rt, "length"))
		sink := masked(b, what, queries, length, 4, func(q, n, start *ir.UOp) *ir.UOp { return randomMask(rt, b, q, n, start, 2) })
		plan, err := plan.Parse(rapid.SampledFrom(plans).Draw(rt, "plan"))
		if err != nil {
			rt.Fatal(err)
		}
		for _, desc := range []*target.Desc{avx512, hopper(rt)} {
			if kernel.Feasible(b.Arena, sink, plan, desc) != nil {
				continue
			}
			p, err := kernel.Lower(b.Arena, sink, plan, desc)
			if err != nil {
				rt.Fatalf("%s: feasible, but: %v", plan, err)
			}
			compare(rt, b.Arena, sink, p, plan, nil)
		}
	})
}

// randomMask is a condition of comparisons of linear forms.
func randomMask(rt *rapid.T, b *builder, q, n, start *ir.UOp, depth int) *ir.UOp {
	draw := func(lo, hi int) int64 { return int64(rapid.IntRange(lo, hi).Draw(rt, "number")) }
	form := func() *ir.UOp {
		sum := b.i(draw(-4, 20))
		for _, x := range []*ir.UOp{q, n, start} {
			switch c := draw(-2, 4); {
			case c == 4:
				sum = b.Add(sum, b.Div(x, b.i(3)))
			case c != 0:
				sum = b.Add(sum, b.Mul(x, b.i(c)))
			}
		}
		return sum
	}
	if depth > 0 {
		switch draw(0, 4) {
		case 0:
			return b.not(randomMask(rt, b, q, n, start, depth-1))
		case 1:
			return b.And(randomMask(rt, b, q, n, start, depth-1), randomMask(rt, b, q, n, start, depth-1))
		case 2:
			return b.or(randomMask(rt, b, q, n, start, depth-1), randomMask(rt, b, q, n, start, depth-1))
		}
	}
	if draw(0, 2) == 0 {
		return b.Lt(n, b.Add(b.Mul(q, b.i(draw(1, 3))), b.Add(start, b.i(draw(-2, 9)))))
	}
	return b.Lt(form(), form())
}

// Work units with longer loops start first on a GPU; on a CPU they alternate with
// short ones.
func TestOrderOfLimits(t *testing.T) {
	const queries, length, dim = 8, 64, 8
	for _, c := range []struct {
		desc *target.Desc
		want []int64 // the query of each work unit
	}{
		{avx512, []int64{0, 7, 1, 6, 2, 5, 3, 4}},
		{hopper(t), []int64{7, 6, 5, 4, 3, 2, 1, 0}},
	} {
		b := newBuilder()
		sink := masked(b, "sum", queries, length, dim, func(q, n, start *ir.UOp) *ir.UOp { return b.notAfter(n, q) })
		p := lowerText(t, b, sink, "ROLL s1", c.desc)
		for unit, q := range c.want {
			out := make([]byte, queries*dim*4)
			args := limitArgs(p, map[int][]byte{0: encode(ir.F32, ones(queries*length)), 1: encode(ir.F32, ones(length*dim)), 2: make([]byte, 4), 3: out})
			if err := interp.RunProgram(p, args, int64(unit), int64(unit)+1); err != nil {
				t.Fatal(err)
			}
			got := fmt.Sprint(decode(ir.F32, out)[q*dim].F)
			if want := fmt.Sprint(float64(q + 1)); got != want {
				t.Errorf("%s: unit %d leaves %s at query %d, want %s", c.desc.Name, unit, got, q, want)
			}
		}
	}
}

// Of two sums over one range, one does not depend on the loop over a store axis: their
// common limit does not either, and it is summed up once, outside of that loop.
func TestLimitLeavesSumsOutsideOfLoops(t *testing.T) {
	const queries, length, dim = 8, 64, 12
	for _, desc := range []*target.Desc{avx512, hopper(t)} {
		b := newBuilder()
		x, v, out := b.param(0, ir.F32, queries, length), b.param(1, ir.F32, length, dim), b.param(2, ir.F32, queries, dim)
		q, d, n := b.rng(queries), b.rng(dim), b.rng(length)
		inner := b.sum(b.Where(b.Lt(n, b.Add(q, d)), b.Mul(b.Load(x, q, n), b.Load(v, n, d)), b.f(0)), n)
		outer := b.sum(b.Where(b.Lt(n, b.Add(q, b.n(1))), b.Load(x, q, n), b.f(0)), n)
		for _, value := range []*ir.UOp{b.Add(inner, outer), b.Add(outer, inner)} {
			sink := b.sink(b.Store(out, value, list(q, d), list(q, d)))
			p := lowerText(t, b, sink, "ROLL s1", desc)
			compare(t, b.Arena, sink, p, plan.Plan{}, nil)
			loops := 0
			for _, in := range gridBody(t, p).Instrs {
				if in.Op == program.For {
					loops++
				}
			}
			if loops != 2 {
				t.Errorf("%s: %d loops in a work unit, want the outer sum's and the one over s1\n%s", desc.Name, loops, show(p))
			}
		}
	}
}
