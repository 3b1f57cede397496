package kernel_test

import (
	"testing"

	"tgc/ir/program"
	"tgc/kernel"
)

// rowsReread: a thread takes two rows at a time, 64 weights of each; the activations
// for them would take 64 registers over the whole loop.
const rowsReread = "VECTOR r0 16; UNROLL r0 4; WARP r0 32; UPCAST s0 2; ROLL s0; STAGE r0; PRELOAD p2; FMA"

// A loop over rows that would hold too many activations reads them from shared
// memory anew, a group after the other for both rows, and loads weights ahead. With
// few of them, they stay in registers.
func TestRowsReadActivationsAnew(t *testing.T) {
	for _, c := range []struct {
		plan   string
		k      int64
		reread bool
	}{{rowsReread, 2048, true}, {"VECTOR r0 4; WARP r0 32; UPCAST s0 2; ROLL s0; STAGE r0; PRELOAD p2; FMA", 128, false}} {
		b := newBuilder()
		plan, err := kernel.Parse(c.plan)
		if err != nil {
			t.Fatal(err)
		}
		desc := *hopper(t)
		desc.Planes = true
		sink := packedMatvec(b, "Q8_0", 12, c.k, true)
		p, err := kernel.Lower(b.Arena, sink, plan, &desc)
		if err != nil {
			t.Fatal(err)
		}
		if err := program.VerifyGPU(p); err != nil {
			t.Fatal(err)
		}
		var reads, lanes, guarded, late int
		from := make(map[*program.Value]int) // the read, from 1, that a value is, or a lane of
		var walk func(block *program.Block, inLoop bool)
		walk = func(block *program.Block, inLoop bool) {
			for i := range block.Instrs {
				in := &block.Instrs[i]
				for _, a := range in.Args {
					if n := from[a]; n > 0 && n < reads {
						late++
					} else if n > 0 && in.Op == program.Extract {
						from[in.Result] = n
					}
				}
				switch {
				case inLoop && in.Op == program.Load && in.Args[0].Type.Space == program.SharedSpace:
					reads, lanes = reads+1, lanes+in.Result.Type.Lanes
					from[in.Result] = reads
				case inLoop && in.Op == program.Guarded:
					guarded++
				}
				if in.Body != nil {
					walk(in.Body, inLoop || in.Op == program.For && len(in.Results) > 0)
				}
			}
		}
		walk(p.Body, false)
		if c.reread && (lanes != 64 || guarded == 0 || late > 0) {
			t.Errorf("%s: %d activations in %d reads of the loop, %d uses behind the next read, %d loads of weights for the next rows; want 64, no late uses, some loads\n%s",
				c.plan, lanes, reads, late, guarded, show(p))
		}
		if !c.reread && reads != 0 {
			t.Errorf("%s: %d reads in the loop, want the activations in registers\n%s", c.plan, reads, show(p))
		}
	}
}
