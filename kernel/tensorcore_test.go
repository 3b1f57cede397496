package kernel_test

import (
	"strings"
	"testing"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/kernel"
	"tgc/target"
)

// matrixCases are kernels with plans that use matrix instructions: how many of
// them the program has.
var matrixCases = []struct {
	name  string
	build func(b *builder) *ir.UOp
	plan  string
	count int
}{
	// Two floats: six products of terms.
	{"floats", func(b *builder) *ir.UOp { return floatMatmul(b, ir.F32, 8, 16, 64) },
		"UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; MMA r0; FMA", 6},
	// Weights that are bf16, or halves.
	{"bf16", func(b *builder) *ir.UOp { return floatMatmul(b, ir.BF16, 16, 32, 64) },
		"UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; MMA r0; FMA", 3},
	{"f16", func(b *builder) *ir.UOp { return floatMatmul(b, ir.F16, 8, 16, 64) },
		"UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; MMA r0; UNROLL r0 2; FMA", 10},
	// Integers against floats, with sums of the activations beside them; tiles
	// of rows share the split activations.
	{"factored", func(b *builder) *ir.UOp { return factoredMatmul(b, 16, 64, 4, 64) },
		"UPCAST s0 2; LOCAL s0 4; UPCAST s0 2; LOCAL s1 8; UPCAST s1 2; LOCAL s1 2; UPCAST s1 2; MMA r1; FMA", 18},
	// Bytes against bytes; an offset joins its product, and a sum of activations
	// is a product with 1.
	{"bytes", func(b *builder) *ir.UOp { return byteMatmul(b, 16, 32, 4, 32) },
		"UPCAST s0 2; LOCAL s0 4; UPCAST s0 2; LOCAL s1 8; UPCAST s1 2; LOCAL s1 2; MMA r1; FMA", 4},
	{"Q6_K", func(b *builder) *ir.UOp { return superblockMatmul(b, "Q6_K", 8, 16, 512) },
		"UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; MMA r1; FMA", 6},
	{"Q6_K in a panel", func(b *builder) *ir.UOp { return superblockMatmul(b, "Q6_K", 8, 32, 512) },
		"UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; UPCAST s1 2; LOCAL s1 2; STAGE s1 256; MMA r1; FMA", 6},
}

// floatMatmul is y[t, n] = sum over k of x[t, k]*w[n, k].
func floatMatmul(b *builder, dtype ir.DType, tokens, rows, k int64) *ir.UOp {
	x, w, out := b.param(0, ir.F32, tokens, k), b.param(1, dtype, rows, k), b.param(3, ir.F32, tokens, rows)
	t, n, r := b.rng(tokens), b.rng(rows), b.rng(k)
	weight := b.Load(w, n, r)
	if dtype != ir.F32 {
		weight = b.Cast(weight, ir.F32)
	}
	return b.sink(b.Store(out, b.sum(b.Mul(b.Load(x, t, r), weight), r), list(t, n), list(t, n)))
}

// byteMatmul is a product of quantised activations and weights, with a scale and
// a minimum of each group of weights, whose integers have an offset.
func byteMatmul(b *builder, tokens, rows, groups, size int64) *ir.UOp {
	x, w, out := b.param(0, ir.I8, tokens, groups*size), b.param(1, ir.U8, rows, groups*size), b.param(3, ir.I32, tokens, rows)
	scale, least := b.param(2, ir.I8, rows, groups), b.param(4, ir.I8, rows, groups)
	t, n, g, j := b.rng(tokens), b.rng(rows), b.rng(groups), b.rng(size)
	k := b.Add(b.Mul(g, b.n(size)), j)
	v := b.Cast(b.Load(x, t, k), ir.I32)
	q := b.Cast(b.And(b.Load(w, n, k), b.ConstInt(ir.U8, 63)), ir.I32)
	inner := b.Add(b.Mul(b.sum(v, j), b.ConstInt(ir.I32, -32)), b.sum(b.Mul(v, q), j))
	product := b.sum(b.Mul(b.Cast(b.Load(scale, n, g), ir.I32), inner), g)
	total := b.Sub(product, b.sum(b.Mul(b.Cast(b.Load(least, n, g), ir.I32), b.sum(v, j)), g))
	return b.sink(b.Store(out, total, list(t, n), list(t, n)))
}

func TestMatrixPlans(t *testing.T) {
	for _, c := range matrixCases {
		t.Run(c.name, func(t *testing.T) {
			b := newBuilder()
			sink := c.build(b)
			plan, err := kernel.Parse(c.plan)
			if err != nil {
				t.Fatal(err)
			}
			p, err := kernel.Lower(b.Arena, sink, plan, hopper(t))
			if err != nil {
				t.Fatal(err)
			}
			if err := program.VerifyGPU(p); err != nil {
				t.Fatalf("%v\n%s", err, show(p))
			}
			if n := strings.Count(program.Print(p), "= mma "); n != c.count {
				t.Errorf("%d matrix instructions, want %d\n%s", n, c.count, show(p))
			}
			compare(t, b.Arena, sink, p, plan, nil)
		})
	}
}

// Tiles that do not fit are refused; so are targets without the instructions.
func TestMatrixRefusals(t *testing.T) {
	turing, err := target.ForGPU(75, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ plan, want string }{
		{"MMA r0", "MMA needs store axes"},
		{"UPCAST s0 2; LOCAL s0 4; LOCAL s1 8; MMA r0", "MMA needs store axes"},
		{"LOCAL s0 8; UPCAST s0 2; LOCAL s1 8; UPCAST s1 2; MMA r0", "MMA needs store axes"},
	} {
		plan, err := kernel.Parse(c.plan)
		if err != nil {
			t.Fatal(err)
		}
		b := newBuilder()
		sink := floatMatmul(b, ir.F32, 16, 16, 64)
		if _, err := kernel.Lower(b.Arena, sink, plan, hopper(t)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.plan, err, c.want)
		}
		for _, desc := range []*target.Desc{turing, target.Interp()} {
			if _, err := kernel.Lower(b.Arena, sink, plan, desc); err == nil || !strings.Contains(err.Error(), "no matrix instruction") {
				t.Errorf("%s: %s: got %v", desc.Name, c.plan, err)
			}
		}
	}
}
