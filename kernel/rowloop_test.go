package kernel_test

import (
	"testing"

	"tgc/ir/program"
	"tgc/kernel"
	"tgc/kernel/plan"
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
		plan, err := plan.Parse(c.plan)
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

// Three rows of a thread at once, and a loop along a row: neither has registers for all
// activations, and both have the weights that they begin with loaded ahead of the wait.
const (
	rowsAtOnce    = "VECTOR r0 16; UNROLL r0 4; WARP r0 32; UPCAST s0 3; PRELOAD p2; FMA"
	loopAlongARow = "VECTOR r0 16; WARP r0 32; LOCAL s0 2; PRELOAD p2; FMA"
)

func TestWeightsAheadOfTheWait(t *testing.T) {
	for _, c := range []struct {
		plan           string
		k              int64
		ahead, guarded int // bytes of weights a thread
		behind         int
	}{{rowsAtOnce, 2048, 3 * 64, 0, 0}, {loopAlongARow, 1536, 16, 16, 0}} {
		b := newBuilder()
		plan, err := plan.Parse(c.plan)
		if err != nil {
			t.Fatal(err)
		}
		desc := *hopper(t)
		desc.Planes = true
		p, err := kernel.Lower(b.Arena, packedMatvec(b, "Q8_0", 12, c.k, false), plan, &desc)
		if err != nil {
			t.Fatal(err)
		}
		var ahead, guarded, behind int
		waited := false
		var walk func(block *program.Block)
		walk = func(block *program.Block) {
			for i := range block.Instrs {
				in := &block.Instrs[i]
				switch {
				case in.Op == program.WaitGrid:
					waited = true
				case in.Cache != program.CacheStream:
				case in.Op == program.Guarded:
					guarded += in.Result.Type.Lanes
				case waited:
					behind += in.Result.Type.Lanes
				default:
					ahead += in.Result.Type.Lanes
				}
				if in.Body != nil {
					walk(in.Body)
				}
			}
		}
		walk(p.Body)
		if ahead != c.ahead || guarded != c.guarded || behind != c.behind {
			t.Errorf("%s: %d bytes of weights ahead of the wait, %d in the loop for its next iteration, %d behind, want %d, %d, %d\n%s",
				c.plan, ahead, guarded, behind, c.ahead, c.guarded, c.behind, show(p))
		}
	}
}
