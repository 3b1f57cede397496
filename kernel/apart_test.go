package kernel_test

import (
	"fmt"
	"testing"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/packed"
	"tgc/target"
)

// gatedTokens are out[t,n] = sum_k x[t,k] * G[n,k] * sum_k x[t,k] * U[n,k].
func gatedTokens(b *builder, format string, tokens, rows, k int64) *ir.UOp {
	f, _ := packed.Lookup(format)
	x, out := b.param(0, ir.F32, tokens, k), b.param(3, ir.F32, tokens, rows)
	t, n, r := b.rng(tokens), b.rng(rows), b.rng(k)
	product := func(slot int) *ir.UOp {
		return b.sum(b.Mul(b.Load(x, t, r), f.Decode(b.Arena, b.packed(slot, format, rows, k), n, r)), r)
	}
	return b.sink(b.Store(out, b.Mul(product(2), product(4)), list(t, n), list(t, n)))
}

// Sums of two matrices have loops of their own from the number of tokens on for which registers do not hold what both need, or as the plan
// says: each asks for the lines of its own weights, all of them once.
func TestSumsApart(t *testing.T) {
	desc := target.ForCPU("znver5", nil, 1)
	desc.Records = packed.MostRecordBits
	lines := make(map[string]int)
	for _, c := range []struct {
		format string
		tokens int64
		sums   string
		apart  bool
	}{
		{"Q6_K", 2, "", false},
		{"Q6_K", 5, "", false}, // 30 registers
		{"Q6_K", 6, "", true},  // 34
		{"Q6_K", 6, "; SUMS together", false},
		{"Q6_K", 2, "; SUMS apart", true},
		{"Q8_0", 16, "", false}, // codes and a scale: nothing to hold
		{"Q8_0", 16, "; SUMS apart", false},
	} {
		t.Run(fmt.Sprintf("%s, %d tokens%s", c.format, c.tokens, c.sums), func(t *testing.T) {
			b := newBuilder()
			sink := gatedTokens(b, c.format, c.tokens, 32, 512)
			text := fmt.Sprintf("UPCAST s0 %d; VECTOR s1 16; PACK r0 1; PREFETCH p2 8192; PREFETCH p4 8192; FMA%s", c.tokens, c.sums)
			p := lowerText(t, b, sink, text, desc)
			if got := readsApart(p); got != c.apart {
				t.Errorf("loops apart: %v, want %v", got, c.apart)
			}
			asked := instructions(p, program.Prefetch)
			if known, ok := lines[c.format]; ok && asked != known {
				t.Errorf("the loops ask for %d lines, want %d", asked, known)
			}
			lines[c.format] = asked
		})
	}
}

// readsApart reports that no loop asks for lines of both matrices.
func readsApart(p *program.Program) bool {
	from := make(map[*program.Value]*program.Value) // of pointers
	p.Body.Each(func(in *program.Instr) {
		if in.Op == program.PtrAdd {
			from[in.Result] = in.Args[0]
		}
	})
	apart := true
	p.Body.Each(func(in *program.Instr) {
		if in.Op != program.For {
			return
		}
		asked := make(map[*program.Value]bool)
		in.Body.Each(func(x *program.Instr) {
			if x.Op == program.Prefetch {
				v := x.Args[0]
				for from[v] != nil {
					v = from[v]
				}
				asked[v] = true
			}
		})
		apart = apart && len(asked) < 2
	})
	return apart
}
