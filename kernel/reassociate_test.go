package kernel_test

import (
	"strings"
	"testing"

	"tgc/ir"
	"tgc/ir/program"
)

// However the factors of a product stand, the panel holds their whole product:
// one array, filled once.
func TestPanelHoldsAllFactors(t *testing.T) {
	for name, order := range map[string]func(b *builder, y, w, s, g *ir.UOp) *ir.UOp{
		"weight apart":      func(b *builder, y, w, s, g *ir.UOp) *ir.UOp { return b.Mul(b.Mul(y, g), b.Mul(w, s)) },
		"activations first": func(b *builder, y, w, s, g *ir.UOp) *ir.UOp { return b.Mul(b.Mul(b.Mul(y, w), s), g) },
		"mixed":             func(b *builder, y, w, s, g *ir.UOp) *ir.UOp { return b.Mul(w, b.Mul(g, b.Mul(y, s))) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBuilder()
			sink := fourFactors(b, order)
			p := evaluate(t, b.Arena, sink, "STAGE s1; UPCAST s0 3; UPCAST s1 2; ROLL s0; VECTOR r0 16; FMA", nil)
			if n := strings.Count(program.Print(p), "alloca"); n != 1 {
				t.Errorf("%d arrays, want 1\n%s", n, show(p))
			}
		})
	}
}

// fourFactors is a matrix product of activations and weights with a factor each, in
// an order of multiplication.
func fourFactors(b *builder, order func(b *builder, y, w, s, g *ir.UOp) *ir.UOp) *ir.UOp {
	const tokens, rows, k = 6, 4, 64
	x, out := b.param(0, ir.F32, tokens, k), b.param(4, ir.F32, tokens, rows)
	tok, n, r := b.rng(tokens), b.rng(rows), b.rng(k)
	y, w := b.Load(x, tok, r), b.Load(b.param(1, ir.F32, rows, k), n, r)
	s, g := b.Load(b.param(2, ir.F32, rows, k/16), n, b.Div(r, b.n(16))), b.Load(b.param(3, ir.F32, k), r)
	return b.sink(b.Store(out, b.sum(order(b, y, w, s, g), r), list(tok, n), list(tok, n)))
}
