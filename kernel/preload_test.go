package kernel_test

import (
	"testing"

	"tgc/ir"
	"tgc/ir/program"
	"tgc/kernel"
	"tgc/kernel/plan"
	"tgc/packed"
)

// Ahead of its wait a kernel loads only what no kernel before it writes: packed
// weights, at places that nothing loaded says. Plain buffers, and weights in rows
// that a plain buffer chooses, come after the wait.
func TestLoadsAheadOfTheWait(t *testing.T) {
	chosen := func(b *builder) *ir.UOp { // out[n] = sum_k x[k] * W[row[0], n, k]
		const rows, k = 8, 256
		f, _ := packed.Lookup("Q8_0")
		x, row, out := b.param(0, ir.F32, k), b.param(1, ir.I32, 1), b.param(3, ir.F32, rows)
		w := b.packed(2, "Q8_0", 4*rows, k)
		n, r := b.rng(rows), b.rng(k)
		first := b.Mul(b.Binary(ir.OpMax, b.Binary(ir.OpMin, b.Cast(b.Load(row, b.n(0)), ir.Idx), b.n(3)), b.n(0)), b.n(rows))
		v := b.sum(b.Mul(b.Load(x, r), f.Decode(b.Arena, w, b.Add(first, n), r)), r)
		return b.sink(b.Store(out, v, list(n), list(n)))
	}
	for _, c := range []struct {
		name, plan string
		build      func(b *builder) *ir.UOp
		slot       int // that PRELOAD names
		ahead      bool
	}{
		{"packed", "VECTOR r0 16; WARP r0 16; UPCAST s0 2; PRELOAD p2; FMA", func(b *builder) *ir.UOp { return packedMatvec(b, "Q8_0", 8, 256, false) }, 2, true},
		{"chosen rows", "VECTOR r0 16; WARP r0 16; UPCAST s0 2; PRELOAD p2; FMA", chosen, 2, false},
		{"plain", "VECTOR r0 4; WARP r0 16; UPCAST s0 2; PRELOAD p1; FMA", func(b *builder) *ir.UOp { return matvec(b, 8, 64) }, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			chosen, err := plan.Parse(c.plan)
			if err != nil {
				t.Fatal(err)
			}
			b := newBuilder()
			sink := c.build(b)
			p, err := kernel.Lower(b.Arena, sink, chosen, hopper(t))
			if err != nil {
				t.Fatal(err)
			}
			compare(t, b.Arena, sink, p, chosen, nil)
			slots := make(map[*program.Value]int) // of pointers, from 1
			for _, x := range p.Params {
				slots[x.Value] = x.Slot + 1
			}
			ahead, after, waited := 0, 0, false
			for _, in := range append(p.Body.Instrs[:len(p.Body.Instrs)-1:len(p.Body.Instrs)-1], gridBody(t, p).Instrs...) {
				switch in.Op {
				case program.PtrAdd, program.Alu:
					slots[in.Result] = slots[in.Args[0]]
				case program.WaitGrid:
					waited = true
				case program.Load, program.Gather:
					from := slots[in.Args[0]] - 1
					switch {
					case waited && from == c.slot:
						after++
					case !waited && from == c.slot:
						ahead++
					case !waited:
						t.Errorf("slot %d is loaded ahead of the wait\n%s", from, show(p))
					}
				}
			}
			if (ahead > 0) != c.ahead || (after > 0) == c.ahead || !waited {
				t.Errorf("%d loads of slot %d ahead of the wait and %d after it, want them ahead: %v\n%s", ahead, c.slot, after, c.ahead, show(p))
			}
		})
	}
}
