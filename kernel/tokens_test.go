package kernel_test

import (
	"fmt"
	"testing"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/kernel"
	"tgc/kernel/plan"
)

// What tokens share is in a program once, however many tokens a work unit has.
func TestTokensShareWeights(t *testing.T) {
	cases := []struct {
		name  string
		build func(b *builder, tokens int64) *ir.UOp
		plan  string // with the tokens
		op    program.Op
		alu   ir.Op // of an Alu
	}{
		{"bytes are masked", func(b *builder, tokens int64) *ir.UOp { return packedMatmul(b, "Q6_K", tokens, 4, 512) }, "UPCAST s0 %d; PACK r0; FMA", program.Alu, ir.OpAnd},
		{"loops over staged rows", stagedRows, "UPCAST s0 %d; VECTOR r1 16; FMA", program.For, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var counts []int
			for tokens := int64(2); tokens <= 4; tokens++ {
				b := newBuilder()
				sink := c.build(b, tokens)
				chosen, err := plan.Parse(fmt.Sprintf(c.plan, tokens))
				if err != nil {
					t.Fatal(err)
				}
				p, err := kernel.Lower(b.Arena, sink, chosen, avx512)
				if err != nil {
					t.Fatal(err)
				}
				compare(t, b.Arena, sink, p, chosen, nil)
				n := 0
				p.Body.Each(func(in *program.Instr) {
					if in.Op == program.GridLoop {
						in.Body.Each(func(in *program.Instr) {
							if in.Op == program.Gather {
								t.Errorf("%d tokens: activations are gathered for each row", tokens)
							}
							if in.Op == c.op && (c.op != program.Alu || in.Ir == c.alu) {
								n++
							}
						})
					}
				})
				counts = append(counts, n)
			}
			if counts[0] == 0 || counts[0] != counts[1] || counts[1] != counts[2] {
				t.Errorf("of 2, 3 and 4 tokens: %v, want as many of each", counts)
			}
		})
	}
}

// stagedRows: the largest of four neighbouring rows of a product, out[t,g].
func stagedRows(b *builder, tokens int64) *ir.UOp {
	x, w, out := b.param(0, ir.F32, tokens, 96), b.param(1, ir.F32, 12, 96), b.param(3, ir.F32, tokens, 3)
	t, g, z, e, r := b.rng(tokens), b.rng(3), b.rng(4), b.rng(4), b.rng(96)
	row := b.Add(b.Mul(g, b.n(4)), z)
	tile := b.Make(ir.OpStage, ir.F32, ir.StageArg{}, b.sum(b.Mul(b.Load(x, t, r), b.Load(w, row, r)), r), z)
	return b.sink(b.Store(out, b.Reduce(ir.OpMax, b.Load(tile, e), e), list(t, g), list(t, g)))
}
