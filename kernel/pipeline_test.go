package kernel_test

import (
	"strings"
	"testing"

	"tgc/ir/program"
	"tgc/kernel"
	"tgc/kernel/plan"
)

// rowsLoadedAhead: a thread takes two rows at a time, six times; of each row four
// groups of 16, whose scales lie two bytes apart, between those of its neighbour.
const rowsLoadedAhead = "VECTOR r0 4; WARP r0 8; UNROLL r0 4; WARP r0 4; UPCAST s0 2; ROLL s0; PRELOAD p2; FMA"

// The loop over rows loads the rows of its next iteration, under a guard, and
// nothing of its own; the first ones are loaded ahead of the wait.
func TestRowsAreLoadedAhead(t *testing.T) {
	b := newBuilder()
	plan, err := plan.Parse(rowsLoadedAhead)
	if err != nil {
		t.Fatal(err)
	}
	desc := *hopper(t)
	desc.Planes = true
	p, err := kernel.Lower(b.Arena, packedMatvec(b, "Q6_K", 12, 512, true), plan, &desc)
	if err != nil {
		t.Fatal(err)
	}
	text := show(p)
	var before, guarded, unguarded int
	var walk func(block *program.Block, inLoop bool)
	waited := false
	walk = func(block *program.Block, inLoop bool) {
		for i := range block.Instrs {
			in := &block.Instrs[i]
			ofWeight := in.Cache == program.CacheConst || in.Cache == program.CacheStream
			switch {
			case in.Op == program.WaitGrid:
				waited = true
			case in.Op == program.Guarded && inLoop && ofWeight:
				guarded++
			case in.Op == program.Load && ofWeight && !waited:
				before++
			case in.Op == program.Load && ofWeight:
				unguarded++
			}
			if in.Body != nil {
				walk(in.Body, inLoop || in.Op == program.For)
			}
		}
	}
	walk(p.Body, false)
	if before == 0 || guarded != before || unguarded != 0 {
		t.Errorf("%d loads ahead of the wait, %d guarded in the loop, %d others, want as many of the first two and no others\n%s", before, guarded, unguarded, text)
	}
	// The scales of a row: one word of eight bytes, and none by themselves.
	for part, want := range map[string]int{":u32x2 = load": 2, ":u32x2 = guarded": 2, ":i8 = load": 0, ":i8 = guarded": 0} {
		if got := strings.Count(text, part); got != want {
			t.Errorf("%d of %q, want %d\n%s", got, part, want, text)
		}
	}
}

// A loop over parts of long rows carries their sums and the loads of its next part.
func TestPartsAreLoadedAhead(t *testing.T) {
	body := gridBody(t, lowered(t, "VECTOR r0 16; WARP r0 8; UPCAST s0 2; PRELOAD p2; FMA", "Q8_0", 8, 512))
	waited, ahead, guarded, others := false, 0, 0, 0
	var walk func(b *program.Block, inLoop bool)
	walk = func(b *program.Block, inLoop bool) {
		for i := range b.Instrs {
			in := &b.Instrs[i]
			waited = waited || in.Op == program.WaitGrid
			switch {
			case in.Cache != program.CacheStream:
			case in.Op == program.Guarded && inLoop:
				guarded++
			case !waited:
				ahead++
			default:
				others++
			}
			if in.Body != nil {
				walk(in.Body, true)
			}
		}
	}
	walk(body, false)
	if ahead != 2 || guarded != 2 || others != 0 {
		t.Errorf("%d loads ahead of the wait, %d guarded in the loop and %d others, want one of each of two rows, and no others", ahead, guarded, others)
	}
}
