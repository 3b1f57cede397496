package kernel_test

import (
	"testing"

	"pgregory.net/rapid"

	"tgc/ir"
	"tgc/kernel"
	"tgc/kernel/plan"
	"tgc/runtime/interp"
	"tgc/target"
)

// chosen is out[q,d] = what pick makes of sum_n x[q,n]*v[n,d] and flag[q].
func chosen(b *builder, queries, length, dim int64, pick func(flag, q, d, sum *ir.UOp) *ir.UOp) *ir.UOp {
	x, v := b.param(0, ir.F32, queries, length), b.param(1, ir.F32, length, dim)
	flags, out := b.param(2, ir.I32, queries), b.param(3, ir.F32, queries, dim)
	q, d, n := b.rng(queries), b.rng(dim), b.rng(length)
	sum := b.sum(b.Mul(b.Load(x, q, n), b.Load(v, n, d)), n)
	value := pick(b.Load(flags, q), b.Cast(q, ir.I32), b.Cast(d, ir.I32), sum)
	return b.sink(b.Store(out, value, list(q, d), list(q, d)))
}

// A sum in an arm that is not taken reads nothing: the memory of its operand ends
// before it. The condition has to have one value for the loop, and all uses of the
// sum have to stand in that arm.
func TestSumsOfOtherArmsAreSkipped(t *testing.T) {
	const queries, length, dim, some = 8, 64, 8, 3 // the first queries have flags
	for name, c := range map[string]struct {
		skips bool
		pick  func(b *builder, flag, q, d, sum *ir.UOp) *ir.UOp
	}{
		"first arm":  {true, func(b *builder, flag, _, _, sum *ir.UOp) *ir.UOp { return b.Where(b.Lt(b.i(0), flag), sum, b.f(5)) }},
		"second arm": {true, func(b *builder, flag, _, _, sum *ir.UOp) *ir.UOp { return b.Where(b.Lt(flag, b.i(1)), b.f(5), sum) }},
		"arithmetic": {true, func(b *builder, _, q, _, sum *ir.UOp) *ir.UOp {
			return b.Where(b.Lt(q, b.i(some)), b.Mul(sum, sum), b.f(5))
		}},
		"twice": {true, func(b *builder, flag, q, _, sum *ir.UOp) *ir.UOp {
			return b.Where(b.Lt(b.i(0), flag), b.Where(b.Lt(q, b.i(1)), b.f(7), sum), b.f(5))
		}},
		"used elsewhere": {false, func(b *builder, flag, _, _, sum *ir.UOp) *ir.UOp {
			return b.Add(sum, b.Where(b.Lt(b.i(0), flag), sum, b.f(5)))
		}},
		"of the condition": {false, func(b *builder, _, _, _, sum *ir.UOp) *ir.UOp {
			return b.Where(b.Lt(b.f(1), sum), b.f(7), b.f(5))
		}},
		"differs in a block": {false, func(b *builder, flag, _, d, sum *ir.UOp) *ir.UOp {
			return b.Where(b.Lt(d, flag), sum, b.f(5))
		}},
	} {
		for _, pl := range limitPlans {
			if pl.text == "" && name == "differs in a block" {
				continue // there d is a work unit, too
			}
			if pl.text == "LOCAL s0 2; UPCAST s0 2; GROUP r0 2; UNROLL r0 2" {
				continue // there queries differ in a block
			}
			t.Run(name+"/"+pl.text, func(t *testing.T) {
				b := newBuilder()
				sink := chosen(b, queries, length, dim, func(flag, q, d, sum *ir.UOp) *ir.UOp { return c.pick(b, flag, q, d, sum) })
				p := lowerText(t, b, sink, pl.text, pl.desc(t))
				flags := make([]ir.Scalar, queries)
				for i := range some {
					flags[i].I = 1
				}
				out := make([]byte, queries*dim*4)
				args := limitArgs(p, map[int][]byte{0: encode(ir.F32, ones(some*length)), 1: encode(ir.F32, ones(length*dim)), 2: encode(ir.I32, flags), 3: out})
				if err := interp.RunProgram(p, args, 0, p.Units()); (err == nil) != c.skips {
					t.Errorf("reading behind the operand: %v, want an error: %v\n%s", err, !c.skips, show(p))
				}
			})
		}
	}
}

// Whatever the conditions say, skipping changes no value.
func TestRandomArms(t *testing.T) {
	plans := []string{"", "UNROLL r0 2", "VECTOR s1 4; UPCAST s0 2", "LOCAL s1 4; WARP r0 2", "LOCAL s0 2; GROUP r0 2", "ROLL s0; WARP r0 4; LOCAL s1 4"}
	rapid.Check(t, func(rt *rapid.T) {
		b := newBuilder()
		queries, length := int64(rapid.IntRange(1, 8).Draw(rt, "queries")), int64(rapid.IntRange(2, 24).Draw(rt, "length"))
		sink := chosen(b, queries, length, 4, func(flag, q, d, sum *ir.UOp) *ir.UOp {
			for range rapid.IntRange(1, 3).Draw(rt, "arms") {
				other := d
				if rapid.Bool().Draw(rt, "of the query") {
					other = q
				}
				cond := randomMask(rt, b, q, other, flag, 1)
				if rapid.Bool().Draw(rt, "second") {
					cond = b.not(cond)
				}
				sum = b.Where(cond, sum, b.Const(ir.F32, float64(rapid.IntRange(0, 3).Draw(rt, "instead"))))
			}
			return sum
		})
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

// Rows that counted elements name, where a flag is set: the counts stand in an address, which
// is simplified when it is written, whatever order their operands have then.
func TestSkippedSumsInAddresses(t *testing.T) {
	const queries, dim = 8, 8
	for length := int64(5); length < 40; length++ {
		b := newBuilder()
		x, v := b.param(0, ir.I32, queries, length), b.param(1, ir.F32, length, dim)
		flags, out := b.param(2, ir.I32, queries), b.param(3, ir.F32, queries, dim)
		q, d, j, k := b.rng(queries), b.rng(dim), b.rng(length), b.rng(length)
		one := func(c *ir.UOp) *ir.UOp { return b.Where(c, b.i(1), b.i(0)) }
		same := b.sum(one(b.Eq(b.Load(x, q, k), b.Load(x, q, j))), k)
		alone := b.sum(one(b.Eq(same, b.i(1))), j)
		row := b.Cast(b.Binary(ir.OpMin, alone, b.i(length-1)), ir.Idx)
		value := b.Where(b.Lt(b.i(0), b.Load(flags, q)), b.Load(v, row, d), b.f(0))
		sink := b.sink(b.Store(out, value, list(q, d), list(q, d)))
		for _, text := range []string{"", "VECTOR r0 4; VECTOR r1 4; VECTOR s1 8"} {
			compare(t, b.Arena, sink, lowerText(t, b, sink, text, avx512), plan.Plan{}, nil)
		}
	}
}
